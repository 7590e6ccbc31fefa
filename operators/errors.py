"""Errors of an operator's commands; part of the tree in `shared.errors`."""

from __future__ import annotations

from shared.errors import SluiceError


class NotApplied(SluiceError):
    """An operator's command is in Redis, but was not applied in time."""

    code = "not-applied"

    command: str
    waited_s: float
    fix: str

    def sentence(self) -> str:
        return f"{self.command} was not applied within {self.waited_s:.0f} s; {self.fix}"


class NoFleet(SluiceError):
    """There is nothing to act on."""

    code = "no-fleet"

    def __init__(self, fleet: str = "") -> None:
        super().__init__()
        self.fleet = fleet

    def sentence(self) -> str:
        which = f"no fleet {self.fleet!r} runs here" if self.fleet else "no fleet runs here"
        return f"{which}: start one with 'sluice up', or name its Redis with --redis (or SLUICE_REDIS)"
