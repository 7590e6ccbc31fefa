"""Which forced exits (D8) and which operator's commands (D12) the SFUs linked here are to hear."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from shared.messages.link import Cordon, Uncordon
from shared.records import CommandVerb, ExitOrder, ExitScope, SfuCommand, SfuStatus

MAX_REMEMBERED = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkedSfu:
    """An SFU linked to this router, with what Redis' clock says of it; None: not stamped yet."""

    sfu: str
    incarnation: int
    version: str
    status: SfuStatus
    started_at: float | None = None
    cordoned_at: float | None = None


def applies(order: ExitOrder, sfu: LinkedSfu) -> bool:
    """A forced exit reaches only an SFU in scope that was started and cordoned before the order was given (D8).

    All three times are Redis' clock. An SFU not stamped yet is left alone: it will be by the next sync.
    """
    in_scope = {
        ExitScope.ALL_CORDONED.value: True,
        ExitScope.VERSION.value: order.target == sfu.version,
        ExitScope.SFU.value: order.target == sfu.sfu,
    }.get(order.scope, False)
    if not in_scope or sfu.status is not SfuStatus.CORDONED:
        return False
    if sfu.started_at is None or sfu.cordoned_at is None:
        return False
    return sfu.started_at < order.at and sfu.cordoned_at < order.at


def concerns(command: SfuCommand, sfu: LinkedSfu) -> bool:
    """A command is for the process that ran when it was given, not for one of the same id started since."""
    if command.sfu != sfu.sfu or command.verb not in set(CommandVerb):
        return False
    return sfu.started_at is not None and sfu.started_at <= command.at


def message_of(command: SfuCommand) -> Cordon | Uncordon:
    """A command as the SFU hears it: with its lease and its token, which only the SFU judges (A6, A7)."""
    if command.verb == CommandVerb.UNCORDON:
        return Uncordon(command=command.command, by=command.by, token=command.token)
    return Cordon(
        command=command.command,
        by=command.by,
        reason=command.reason,
        exit_when_empty=command.verb == CommandVerb.DRAIN,
        lease_s=command.lease_s,
        drain_max_s=command.drain_max_s,
        token=command.token,
    )


class OrderBook:
    """Remembers what was sent, so that each order and command goes to each SFU once per link."""

    def __init__(self) -> None:
        self._sent: dict[tuple[str, int, str], None] = {}

    def exits(self, orders: Iterable[ExitOrder], linked: Iterable[LinkedSfu]) -> list[tuple[LinkedSfu, ExitOrder]]:
        """What to send now."""
        orders = list(orders)
        return [
            (sfu, order)
            for sfu in linked
            for order in orders
            if applies(order, sfu) and self._first(sfu, f"exit:{order.scope}:{order.target}:{order.at}")
        ]

    def commands(
        self, commands: Iterable[SfuCommand], linked: Iterable[LinkedSfu]
    ) -> list[tuple[LinkedSfu, SfuCommand]]:
        """What to send now."""
        newest = {command.sfu: command for command in sorted(commands, key=lambda command: command.at)}
        return [
            (sfu, command)
            for sfu in linked
            if (command := newest.get(sfu.sfu)) is not None
            and concerns(command, sfu)
            and self._first(sfu, f"command:{command.command}")
        ]

    def forget(self, sfu: str) -> None:
        """The link is new: what was sent over an older one may not have arrived."""
        for key in [key for key in self._sent if key[0] == sfu]:
            del self._sent[key]

    def _first(self, sfu: LinkedSfu, what: str) -> bool:
        key = (sfu.sfu, sfu.incarnation, what)
        if key in self._sent:
            return False
        while len(self._sent) >= MAX_REMEMBERED:
            del self._sent[next(iter(self._sent))]
        self._sent[key] = None
        return True
