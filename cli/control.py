"""`sluice control`: the controller that grows and shrinks the fleet."""

from __future__ import annotations

import os
from pathlib import Path

import uvloop

from control.config import ControlConfig
from control.shell.program import load_settings, open_pool, run_control
from shared.errors import BadSetting, SluiceError
from shared.host.files import raise_open_files
from shared.host.secret_files import with_files_read
from shared.logs import setup

_DEFAULT = ControlConfig()


def control(config: ControlConfig = _DEFAULT, *, scaling: Path, dry_run: bool = False) -> None:
    """Grow and shrink a pool of SFUs by what runs out first: egress, forwarded streams or CPU.

    Several controllers may run; one leads at a time. Runs until SIGTERM or SIGINT, then gives up the lease and ends
    with status 0; nodes stay as they are. docs/autoscaling.md has every setting.

        sluice scaling check scaling.toml

        sluice control --scaling scaling.toml --dry-run

    Parameters
    ----------
    scaling
        The autoscaler's settings, a TOML file.
    dry_run
        Decide, log and record, but change nothing.
    """
    log = setup("control", level=config.log_level)
    try:
        config = with_files_read(config)
        settings = load_settings(scaling)
        pool = open_pool(settings, fleet=config.fleet, environ=os.environ)
        raise_open_files()
        status = uvloop.run(run_control(config.check(), settings, pool, dry_run=dry_run))
    except (SluiceError, OSError) as error:
        log.error("[scale] %s", error)
        raise SystemExit(2 if isinstance(error, BadSetting) else 1) from None
    raise SystemExit(status)
