"""The `sluice` console script, and `python -m cli`: what has to be done before the command line is loaded."""

from __future__ import annotations

import sys

from shared.host.early import end_on_sigterm

PROGRAMS = {"bots", "control", "router", "sfu"}
"""Commands that run as process 1 of a container."""


def main() -> None:
    """Run the command that `sys.argv` names."""
    if sys.argv[1:2] and sys.argv[1] in PROGRAMS:
        end_on_sigterm()
    from cli.main import main as run_command  # takes a while, in which SIGTERM may come

    run_command()


if __name__ == "__main__":
    main()
