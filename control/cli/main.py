"""The `sluice` command: one file per command, loaded when it is asked for."""

from __future__ import annotations

import sys
from importlib.metadata import version

from cyclopts import App, CycloptsError
from cyclopts.config import Env

from control.cli.output import err, show_error
from shared.errors import BadInput, SluiceError

HELP = """Roll a fleet of SFUs without cutting a call.

Start with a fleet on this machine, and drain one of its SFUs:

    sluice up --bots 6

    sluice drain sfu-1 --watch

or let a private fleet do it and measure the gaps:

    sluice rehearse drain

Every setting can also be given as SLUICE_… in the environment."""
FAILED, MISUSED, INTERRUPTED = 1, 2, 130

COMMANDS = {
    "up": ("control.cli.up:up", "Start a fleet on this machine and watch it."),
    "status": ("control.cli.status:status", "Show SFUs, routers and drains."),
    "cordon": ("control.cli.cordon:cordon", "Take an SFU out of placement; its calls go on."),
    "uncordon": ("control.cli.cordon:uncordon", "Put a hand-cordoned SFU back."),
    "drain": ("control.cli.drain:drain", "Cordon an SFU and let it end when its last player has left."),
    "drains": ("control.cli.drains:drains", "List what past drains came to."),
    "exit": ("control.cli.exit:exit_", "Force cordoned SFUs to end now."),
    "token": ("control.cli.token:token", "Make a player's token."),
    "rehearse": ("control.cli.rehearse:app", "Drain, exit or roll a private fleet of bots and measure."),
    "bench": ("control.cli.bench:app", "Measure what this machine carries."),
    "bots": ("control.cli.programs:bots", "Join simulated players with real media."),
    "router": ("control.cli.programs:router", "Run one router."),
    "sfu": ("control.cli.programs:sfu", "Run one SFU."),
}


def make_app() -> App:
    """The command tree; no command's module is imported yet."""
    app = App(
        name="sluice",
        help=HELP,
        version=lambda: version("sluice"),
        config=Env("SLUICE_", command=False),
        result_action="return_value",
        help_format="markdown",
    )
    for name, (target, summary) in COMMANDS.items():
        app.command(target, name=name, help=summary)
    return app


def run(tokens: list[str]) -> int:
    """Run one command; its exit status. 1: it failed; 2: it was misused."""
    try:
        result = make_app()(tokens, exit_on_error=False, error_console=err)
    except CycloptsError:
        return MISUSED  # cyclopts has said what is wrong
    except BadInput as error:
        show_error(error)
        return MISUSED
    except SluiceError as error:
        show_error(error)
        return FAILED
    except KeyboardInterrupt:
        return INTERRUPTED
    return result if isinstance(result, int) else 0


def main() -> None:
    """The console script."""
    sys.exit(run(sys.argv[1:]))


if __name__ == "__main__":
    main()
