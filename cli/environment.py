"""Which settings come from SLUICE_… in the environment."""

from __future__ import annotations

import os
from collections.abc import MutableMapping
from pathlib import Path

from cyclopts import App, ArgumentCollection
from cyclopts.config import Env

from shared.errors import BadSetting

PREFIX = "SLUICE_"
SECRET, SECRET_FILE = PREFIX + "SECRET", PREFIX + "SECRET_FILE"
WHERE_FLAGS = frozenset({"--fleet", "--redis", "--redis-file", "--secret", "--secret-file"})

every_setting = Env(PREFIX, command=False)
"""For programs: everything."""


class WhereOnly(Env):
    """For operators' commands: only which fleet. Which SFU to end, and whether to ask, must be given on the command
    line: a container's environment names an SFU and a version too."""

    def __call__(self, app: App, commands: tuple[str, ...], arguments: ArgumentCollection) -> None:
        """Fill in what was not given as a flag."""
        kept = ArgumentCollection([a for a in arguments if a.name in WHERE_FLAGS])  # type: ignore[no-untyped-call]
        Env.__call__(self, app, commands, kept)


def take_secret_file(environ: MutableMapping[str, str] = os.environ) -> None:
    """SLUICE_SECRET_FILE in place of SLUICE_SECRET, for secrets that a platform mounts. Raises `BadSetting`."""
    path = environ.pop(SECRET_FILE, "")  # read here, for the pools of a controller as well
    if not path or environ.get(SECRET):
        return
    try:
        environ[SECRET] = Path(path).read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        words = error.strerror if isinstance(error, OSError) else "is not UTF-8"
        raise BadSetting(setting=SECRET_FILE, detail=f"{path}: {words}") from None


where_only = WhereOnly(PREFIX, command=False, show=False)
