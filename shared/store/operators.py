"""What operators order through the store, and what drains report back."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import TypeVar

import msgspec

from shared.keys import COMMAND_TTL_S, DRAIN_REPORTS_KEPT, EXIT_TTL_S
from shared.records import DrainReport, ExitOrder, SfuCommand, write_record
from shared.store.calls import Calls, WrongType

Order = TypeVar("Order", ExitOrder, SfuCommand)


class Operators(Calls):
    """Exit orders, commands and drain reports."""

    async def order_exit(self, scope: str, target: str, by: str) -> ExitOrder:
        """Order a forced termination, dated now by Redis' clock; `scope` is an `ExitScope` (D8)."""
        order = {"scope": str(scope), "target": target, "by": by}
        raw = await self._run("put_order", [self.keys.exits], f"{scope}:{target}", _head(order), EXIT_TTL_S)
        return msgspec.json.decode(raw, type=ExitOrder)

    async def read_exits(self) -> list[ExitOrder]:
        """The exit orders of the last `EXIT_TTL_S`, the newest of each scope and target."""
        return await self._orders(ExitOrder, self.keys.exits, EXIT_TTL_S)

    async def command_sfu(self, verb: str, sfu: str, by: str, reason: str) -> SfuCommand:
        """Leave a command for one SFU, in place of an earlier one; `verb` is a `CommandVerb` (D12)."""
        command = {"command": secrets.token_hex(8), "verb": str(verb), "sfu": sfu, "by": by, "reason": reason}
        raw = await self._run("put_order", [self.keys.commands], sfu, _head(command), COMMAND_TTL_S)
        return msgspec.json.decode(raw, type=SfuCommand)

    async def read_commands(self, sfus: Sequence[str]) -> list[SfuCommand]:
        """The newest command for each of these SFUs, if it was given within `COMMAND_TTL_S`."""
        if not sfus:
            return []
        return await self._orders(SfuCommand, self.keys.commands, COMMAND_TTL_S, *sfus)

    async def push_drain_report(self, report: DrainReport) -> None:
        """Keep a drain's report; the same one from several routers is kept once."""
        await self._run("push_report", [self.keys.drain_reports], write_record(report), DRAIN_REPORTS_KEPT)

    async def read_drain_reports(self, n: int) -> list[DrainReport]:
        """The last `n` drain reports, newest first."""
        key = self.keys.drain_reports
        try:
            raws = await self._send("read_drain_reports", "LRANGE", key, 0, n - 1) if n > 0 else []
        except WrongType:
            return []
        return [report for raw in raws if (report := self._record(DrainReport, raw, key))]

    async def _orders(self, kind: type[Order], key: str, ttl_s: float, *names: str) -> list[Order]:
        try:
            now_at, *raws = await self._run("read_orders", [key], *names)
        except WrongType:
            return []
        orders = (self._record(kind, raw, key) for raw in raws)
        return [order for order in orders if order and order.at > float(now_at) - ttl_s]


def _head(order: dict[str, str]) -> bytes:
    """The order without the time that the script adds; empty fields are left out as in any record."""
    return msgspec.json.encode({name: value for name, value in order.items() if value})
