"""Errors of the command line; part of the tree in `shared.errors`."""

from __future__ import annotations

from shared.errors import SluiceError


class SystemRefused(SluiceError):
    """An error of the operating system that a command does not explain better."""

    code = "system-refused"

    def __init__(self, error: OSError) -> None:
        super().__init__()
        self.error = error

    def sentence(self) -> str:
        words = self.error.strerror or str(self.error) or type(self.error).__name__
        return f"{self.error.filename}: {words}" if self.error.filename else words
