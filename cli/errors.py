"""Errors of the command line; part of the tree in `shared.errors`."""

from __future__ import annotations

from collections.abc import Sequence

from shared.errors import SluiceError

PARTS = {
    "aiodocker": "docker",
    "kubernetes_asyncio": "kubernetes",
    "matplotlib": "plot",
    "numpy": "bots",
    "playwright": "browser",
}
"""Packages that only some commands need, and the extra of pyproject.toml that brings each."""


class SystemRefused(SluiceError):
    """An error of the operating system that a command does not explain better."""

    code = "system-refused"

    def __init__(self, error: OSError) -> None:
        super().__init__()
        self.error = error

    def sentence(self) -> str:
        words = self.error.strerror or str(self.error) or type(self.error).__name__
        return f"{self.error.filename}: {words}" if self.error.filename else words


class PartMissing(SluiceError):
    """A command needs a package that is not installed, because it is optional."""

    code = "part-missing"

    def __init__(self, *, package: str, command: str) -> None:
        super().__init__()
        self.package = package
        self.command = command

    @classmethod
    def of(cls, error: ImportError, tokens: Sequence[str]) -> PartMissing | None:
        """The error in words; None for a package that is not optional, which is a fault of ours."""
        cause = error.__cause__  # a command's module is loaded for us, and what fails in it is wrapped
        name = error.name or (cause.name if isinstance(cause, ImportError) else "")
        package = (name or "").partition(".")[0]
        if package not in PARTS:
            return None
        words = [token for token in tokens[:2] if not token.startswith("-")]
        return cls(package=package, command=" ".join(("sluice", *words)))

    def sentence(self) -> str:
        return (
            f"{self.command} needs {self.package}, which is not installed: pip install 'sluice[{PARTS[self.package]}]'"
        )
