"""Where programs keep what belongs to this user on this host: run files, nodes of a process pool."""

from __future__ import annotations

import os
from pathlib import Path


def state_directory(environ: dict[str, str] | os._Environ[str] = os.environ) -> Path:
    """`$XDG_STATE_HOME/sluice`, or `~/.local/state/sluice`."""
    home = environ.get("XDG_STATE_HOME") or ""
    return (Path(home) if home else Path.home() / ".local" / "state") / "sluice"
