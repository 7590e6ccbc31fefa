"""The `sluice` command: one file per command, loaded when it is asked for."""

from __future__ import annotations

import logging
import os
import select
import sys
from importlib.metadata import version

from cyclopts import App, CycloptsError, Parameter

from cli.environment import every_setting, take_secret_file, where_only
from cli.errors import PartMissing, SystemRefused
from cli.output import err, show_error
from shared.errors import BadInput, BadSetting, SluiceError
from shared.logs import visible

HELP = """Roll a fleet of SFUs without cutting a call.

Start with a fleet on this machine, and drain one of its SFUs:

    sluice up --bots 6

    sluice drain sfu-1 --watch

or let a private fleet do it and measure the gaps:

    sluice rehearse drain

Every setting can also be given as SLUICE_… in the environment."""
FAILED, MISUSED, INTERRUPTED = 1, 2, 130

COMMANDS = {
    "up": ("cli.up:up", "Start routers and SFUs on this machine and watch them."),
    "status": ("cli.status:status", "Show the fleet's SFUs and routers."),
    "cordon": ("cli.cordon:cordon", "Take an SFU out of new placements; its calls go on."),
    "uncordon": ("cli.cordon:uncordon", "Let an SFU take new players again."),
    "drain": ("cli.drain:drain", "Cordon an SFU and let it end once its last player has left."),
    "roll": ("cli.roll:roll", "Replace every SFU, and restart the routers."),
    "add": ("cli.add:add", "Start one more SFU in the fleet that runs here."),
    "drains": ("cli.drains:drains", "List the results of past drains."),
    "explain": ("cli.explain:explain", "Tell why a room or a player is where it is."),
    "exit": ("cli.exit:exit_", "End cordoned SFUs now; their players rejoin elsewhere."),
    "token": ("cli.token:token", "Make a player's or an operator's token."),
    "scaling": ("cli.scaling:app", "Show what the autoscaler decided and why; check its settings."),
    "rehearse": ("cli.rehearse:app", "Drain, end, roll, scale or trouble a private fleet of bots."),
    "bench": ("cli.bench:app", "Measure what this machine can carry."),
    "capacity": ("cli.capacity:capacity", "Find how many streams this machine holds."),
    "demo": ("cli.demo:app", "Look at the fleet page with simulated SFUs."),
    "bots": ("cli.bots:bots", "Run players that talk, move and measure gaps."),
    "control": ("cli.control:control", "Run a controller that grows and shrinks the fleet."),
    "router": ("router.command:router_command", "Run a router."),
    "sfu": ("sfu.command:sfu_command", "Run an SFU."),
}
"""Where each command is, and its line in the list of commands."""
OPERATORS = {"status", "cordon", "uncordon", "drain", "roll", "add", "drains", "explain", "exit"}
"""Commands that act on a running fleet."""


def make_app(asked: str = "") -> App:
    """The command tree; no command's module is imported yet. The command that is `asked` for shows its own help page;
    otherwise its line in the list would be shown instead."""
    app = App(
        name="sluice",
        help=HELP,
        version=lambda: version("sluice"),
        config=every_setting,
        default_parameter=Parameter(consume_multiple=True),  # `--routers A B`, as the help pages show it
        result_action="return_value",
        help_format="markdown",
    )
    for name, (target, words) in COMMANDS.items():
        said = None if name == asked else words
        if name in OPERATORS:
            app.command(target, name=name, help=said, config=where_only)
        else:
            app.command(target, name=name, help=said)
    return app


def run(tokens: list[str]) -> int:
    """Run one command; its exit status. 1: it failed; 2: it was misused."""
    logging.lastResort = logging.NullHandler()  # a command's error is enough; programs set up a log of their own
    try:
        check_text(tokens)
        take_secret_file()
        asked = next((token for token in tokens if not token.startswith("-")), "")
        result = make_app(asked)(tokens, exit_on_error=False, error_console=err)
    except CycloptsError:
        return MISUSED  # cyclopts has said what is wrong
    except BadInput as error:
        show_error(error)
        return MISUSED
    except SluiceError as error:
        show_error(error)
        return FAILED
    except ImportError as error:
        if (missing := PartMissing.of(error, tokens)) is None:
            raise
        show_error(missing)
        return MISUSED
    except OSError as error:
        if not isinstance(error, BrokenPipeError) or not reader_is_gone():
            show_error(SystemRefused(error))
        return FAILED
    except KeyboardInterrupt:
        return INTERRUPTED
    return result if isinstance(result, int) else 0


def check_text(tokens: list[str]) -> None:
    """Raise `BadSetting` for bytes that are not UTF-8: no name in a fleet has them."""
    for token in tokens:
        if any("\ud800" <= each <= "\udfff" for each in token):
            raise BadSetting(setting="arguments", detail=f"{visible(token)} is not UTF-8")


def reader_is_gone() -> bool:
    """The reader of our output has gone away, as after `sluice ... | head`."""
    poll = select.poll()
    poll.register(1, 0)
    return bool(poll.poll(0))  # poll tells an error of the pipe unasked


def main() -> None:
    """Run the command that `sys.argv` names, and end with its status. `cli.__main__` is where the script begins."""
    status = run(sys.argv[1:])
    if reader_is_gone():
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # or the interpreter would complain at its end
    sys.exit(status)


if __name__ == "__main__":
    main()
