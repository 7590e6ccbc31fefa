"""Errors of a local fleet; part of the tree in `shared.errors`."""

from __future__ import annotations

from shared.errors import SluiceError


class FleetFailed(SluiceError):
    """A program of a local fleet did not do what it must; `log` holds its last lines."""

    code = "fleet-failed"

    program: str
    detail: str
    log: str = ""

    def sentence(self) -> str:
        return f"{self.program} {self.detail}"
