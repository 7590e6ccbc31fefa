"""`python -m sfu`: run one SFU."""

from __future__ import annotations

import asyncio
import sys

import uvloop
from cyclopts import App
from cyclopts.config import Env

from sfu.config import SfuConfig
from sfu.shell.program import Program
from shared.errors import BadSetting
from shared.logs import setup

BAD_SETTING = 2
NO_PORT = 1


def sfu_command(config: SfuConfig | None = None) -> int:
    """Run one SFU until it has drained; SIGTERM drains it, and it ends with status 0."""
    config = config or SfuConfig()
    log = setup("sfu", level=config.log_level)
    try:
        program = Program(config)
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            return runner.run(program.run())
    except BadSetting as error:
        log.error("[sfu] %s", error)
        return BAD_SETTING
    except OSError as error:
        log.error("[sfu] can't listen: %s", error)
        return NO_PORT


def main() -> None:
    """The module's entry point."""
    app = App(name="sfu", help="Run one SFU.", config=Env("SLUICE_", command=False), result_action="return_value")
    app.default(sfu_command)
    status = app(sys.argv[1:])
    sys.exit(status if isinstance(status, int) else 0)


if __name__ == "__main__":
    main()
