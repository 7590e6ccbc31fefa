"""Which settings come from SLUICE_… in the environment."""

from __future__ import annotations

from cyclopts import App, ArgumentCollection
from cyclopts.config import Env

PREFIX = "SLUICE_"
WHERE_FLAGS = frozenset({"--fleet", "--redis", "--secret"})

every_setting = Env(PREFIX, command=False)
"""For programs: everything."""


class WhereOnly(Env):
    """For operators' commands: only which fleet. Which SFU to end, and whether to ask, must be given on the command
    line: a container's environment names an SFU and a version too."""

    def __call__(self, app: App, commands: tuple[str, ...], arguments: ArgumentCollection) -> None:
        """Fill in what was not given as a flag."""
        kept = ArgumentCollection([a for a in arguments if a.name in WHERE_FLAGS])  # type: ignore[no-untyped-call]
        Env.__call__(self, app, commands, kept)


where_only = WhereOnly(PREFIX, command=False, show=False)
