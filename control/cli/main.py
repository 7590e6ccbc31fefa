"""The `sluice` command: one file per command, loaded when it is asked for."""

from __future__ import annotations

import logging
import sys
from importlib.metadata import version

from cyclopts import App, CycloptsError

from control.cli.environment import every_setting, where_only
from control.cli.output import err, show_error
from control.errors import SystemRefused
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
    "up": "control.cli.up:up",
    "status": "control.cli.status:status",
    "cordon": "control.cli.cordon:cordon",
    "uncordon": "control.cli.cordon:uncordon",
    "drain": "control.cli.drain:drain",
    "drains": "control.cli.drains:drains",
    "explain": "control.cli.explain:explain",
    "exit": "control.cli.exit:exit_",
    "token": "control.cli.token:token",
    "scaling": "control.cli.scaling:app",
    "rehearse": "control.cli.rehearse:app",
    "bench": "control.cli.bench:app",
    "capacity": "bench.capacity:capacity",
    "demo": "control.cli.demo:app",
    "bots": "client_sim.__main__:bots_command",
    "control": "control.cli.control:control",
    "router": "router.command:router_command",
    "sfu": "sfu.__main__:sfu_command",
}
OPERATORS = {"status", "cordon", "uncordon", "drain", "drains", "explain", "exit"}
"""Commands that act on a fleet somebody else runs."""


def make_app() -> App:
    """The command tree; no command's module is imported yet."""
    app = App(
        name="sluice",
        help=HELP,
        version=lambda: version("sluice"),
        config=every_setting,
        result_action="return_value",
        help_format="markdown",
    )
    for name, target in COMMANDS.items():
        if name in OPERATORS:
            app.command(target, name=name, config=where_only)
        else:
            app.command(target, name=name)
    return app


def run(tokens: list[str]) -> int:
    """Run one command; its exit status. 1: it failed; 2: it was misused."""
    logging.lastResort = logging.NullHandler()  # a command's error says it all; programs set up a log of their own
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
    except OSError as error:
        show_error(SystemRefused(error))
        return FAILED
    except KeyboardInterrupt:
        return INTERRUPTED
    return result if isinstance(result, int) else 0


def main() -> None:
    """The console script."""
    sys.exit(run(sys.argv[1:]))


if __name__ == "__main__":
    main()
