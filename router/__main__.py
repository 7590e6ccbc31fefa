"""`python -m router`."""

from __future__ import annotations

from cyclopts import App
from cyclopts.config import Env

from router.command import router_command

app = App(name="router", help="A router of a Sluice fleet.", version_flags=(), config=Env("SLUICE_", command=False))
app.default(router_command)

if __name__ == "__main__":
    app()
