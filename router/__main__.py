"""`python -m router`: run one router."""

from __future__ import annotations

from shared.host.early import end_on_sigterm


def main() -> None:
    """The module's entry point."""
    end_on_sigterm()
    from router.command import app  # takes a second, in which SIGTERM may come

    app()


if __name__ == "__main__":
    main()
