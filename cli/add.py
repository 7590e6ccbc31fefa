"""`sluice add`: one more SFU in the fleet that `sluice up` runs here."""

from __future__ import annotations

from cli.output import out, plain, print_json
from operators.config import HERE, Where
from operators.shell.roll.platform import ask_door
from operators.shell.target import find_door


async def add(sfu: str = "", /, *, where: Where = HERE, version: str = "", json: bool = False) -> None:
    """Start one more SFU in the fleet that `sluice up` runs on this machine; returns when it takes players.

    It ends with the fleet, or with `sluice drain`:

        sluice add

        sluice add sfu-9 --version v2

    Parameters
    ----------
    sfu
        Its id; without one it gets the next number. One that runs already is left as it is.
    version
        Its version label; the fleet's own without it.
    json
        Print its id as JSON.
    """
    started = await ask_door(find_door(where), "sfus", sfu=sfu, version=version)
    if json:
        print_json(started)
    else:
        out.print(plain(f"{started['sfu']} takes players"))
