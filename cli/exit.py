"""`sluice exit`: end cordoned SFUs now, with the players that are on them (D8)."""

from __future__ import annotations

from dataclasses import dataclass

from cyclopts import Parameter

from cli.confirm import confirm
from cli.output import out, plain, print_json
from operators.config import HERE, Where
from operators.core.orders import touched
from operators.shell.operations import known_state, open_store, order_exit, wait_gone
from operators.shell.target import find_target
from shared.errors import BadSetting, Refused
from shared.records import ExitScope

GONE_WITHIN_S = 30.0
"""A sync interval, the final sequence of at most 10 s, and unregistering; three times that is a fault."""


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True, slots=True)
class Scope:
    """Which SFUs to end; exactly one of these."""

    sfu: str = ""
    """One SFU, if it is cordoned."""
    version: str = ""
    """Every cordoned SFU of this version label."""
    all_cordoned: bool = False
    """Every cordoned SFU."""


def read_scope(scope: Scope, sfu: str = "") -> tuple[ExitScope, str]:
    """Scope and target of the order. Raises `BadSetting` unless exactly one was given."""
    given = [
        (ExitScope.SFU, sfu) if sfu else None,
        (ExitScope.SFU, scope.sfu) if scope.sfu else None,
        (ExitScope.VERSION, scope.version) if scope.version else None,
        (ExitScope.ALL_CORDONED, "") if scope.all_cordoned else None,
    ]
    chosen = [one for one in given if one is not None]
    if len(chosen) != 1:
        raise BadSetting(setting="exit", detail="give exactly one of an SFU, --version and --all-cordoned")
    return chosen[0]


async def exit_(
    sfu: str = "",
    /,
    *,
    scope: Scope = Scope(),
    where: Where = HERE,
    yes: bool = False,
    wait: bool = True,
    json: bool = False,
) -> None:
    """End cordoned SFUs at once, even with players on them: those are told and rejoin elsewhere, with a gap.

    It ends only SFUs that are cordoned at this moment, never one that is cordoned or started later:

        sluice exit sfu-1

        sluice exit --version v6 --yes

        sluice exit --all-cordoned

    Parameters
    ----------
    sfu
        Id of one SFU, as `sluice status` shows it; the same as `--sfu`.
    yes
        Do not ask.
    wait
        Wait until they are gone.
    json
        Print what was ended as JSON; needs `--yes`.
    """
    kind, target = read_scope(scope, sfu)
    async with open_store(find_target(where)) as store:
        if kind is ExitScope.SFU:
            await known_state(store, target)
        sfus = touched(kind, target, await store.read_sfus())
        if not sfus:
            raise Refused(
                "nothing-cordoned", "no SFU in that scope is cordoned; 'sluice cordon' or 'sluice drain' it first"
            )
        if not yes:
            names = ", ".join(sfus)
            question = f"End {names} now, even with players on them?"
            confirm(question, would=f"end {names}", refused="nothing was ended")
        await order_exit(store, kind, target)
        if wait:
            await wait_gone(store, sfus, within_s=GONE_WITHIN_S)
    if json:
        print_json({"scope": kind.value, "target": target, "sfus": sfus, "gone": wait})
    else:
        out.print(plain(f"{', '.join(sfus)} {'ended' if wait else 'told to end'}"))
