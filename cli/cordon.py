"""`sluice cordon` and `sluice uncordon`: take an SFU out of placement by hand, and put it back."""

from __future__ import annotations

from cli.confirm import confirm_last
from cli.output import out, plain, print_json
from operators.config import HERE, Where
from operators.core.orders import leaves_none
from operators.shell.operations import command, open_store
from operators.shell.target import find_target
from shared.records import CommandVerb


async def cordon(
    sfu: str,
    /,
    *,
    where: Where = HERE,
    reason: str = "",
    wait: bool = True,
    yes: bool = False,
    json: bool = False,
) -> None:
    """Take an SFU out of placement. What it carries goes on, and it is held until you uncordon or drain it.

    Its players are told and may move; none has to:

        sluice cordon sfu-2 --reason "new kernel"

    Parameters
    ----------
    sfu
        Id of the SFU, as `sluice status` shows it.
    reason
        Why; it is shown to everyone who looks at the fleet.
    wait
        Wait until the SFU has followed; an SFU that does not is an error.
    yes
        Do not ask, where it is the last SFU that takes new players.
    json
        Print what became of it as JSON.
    """
    if not yes:
        await _check_last(sfu, where=where)
    await _give(CommandVerb.CORDON, sfu, where=where, reason=reason, wait=wait, json=json, done="is cordoned")


async def uncordon(sfu: str, /, *, where: Where = HERE, wait: bool = True, json: bool = False) -> None:
    """Put a hand-cordoned or hand-drained SFU back into placement. One that got SIGTERM stays cordoned.

    For example:

        sluice uncordon sfu-2

    Parameters
    ----------
    sfu
        Id of the SFU, as `sluice status` shows it.
    wait
        Wait until the SFU has followed; an SFU that does not is an error.
    json
        Print what became of it as JSON.
    """
    await _give(CommandVerb.UNCORDON, sfu, where=where, reason="", wait=wait, json=json, done="takes new work again")


async def _check_last(sfu: str, *, where: Where) -> None:
    async with open_store(find_target(where)) as store:
        if leaves_none(sfu, await store.hear_sfus()):
            confirm_last(sfu, verb="Cordon")


async def _give(verb: CommandVerb, sfu: str, *, where: Where, reason: str, wait: bool, json: bool, done: str) -> None:
    async with open_store(find_target(where)) as store:
        await command(store, verb, sfu, reason=reason, wait=wait)
    if json:
        print_json({"sfu": sfu, "command": verb.value, "applied": wait})
    else:
        out.print(plain(f"{sfu} {done}" if wait else f"{verb} of {sfu} is ordered"))
