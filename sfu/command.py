"""`sluice sfu`: reads the settings, runs the SFU."""

from __future__ import annotations

import asyncio

import uvloop
from cyclopts import App
from cyclopts.config import Env

from sfu.config import SfuConfig
from sfu.shell.program import run_sfu
from shared.errors import BadSetting
from shared.front.websocket import WAITING
from shared.host.files import OTHERS, allow_open_files
from shared.host.secret_files import with_files_read
from shared.logs import setup

BAD_SETTING = 2
NO_PORT = 1


def sfu_command(config: SfuConfig | None = None) -> int:
    """Run one SFU until it has drained; SIGTERM drains it, and it ends with status 0."""
    config = config or SfuConfig()
    log = setup("sfu", level=config.log_level)
    try:
        config = with_files_read(config)
        config.check()
        allow_open_files(log, tag="sfu", most=config.max_players, others=WAITING + OTHERS)
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            return runner.run(run_sfu(config))
    except BadSetting as error:
        log.error("[sfu] %s", error)
        return BAD_SETTING
    except OSError as error:
        log.error("[sfu] can't listen: %s", error)
        return NO_PORT


app = App(name="sfu", help="Run one SFU.", version_flags=(), config=Env("SLUICE_", command=False))
app.default(sfu_command)
