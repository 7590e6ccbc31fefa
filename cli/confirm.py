"""Asking an operator before something that can't be taken back, or that leaves players nowhere to go."""

from __future__ import annotations

import sys

from cli.output import err, plain
from shared.errors import BadSetting, Refused


def confirm(question: str, *, would: str, refused: str) -> None:
    """Ask at the terminal. Raises `BadSetting` without a terminal, with what it `would` do, and `Refused` for a no."""
    if not sys.stdin.isatty():
        raise BadSetting(setting="--yes", detail=f"this would {would}; give --yes, there is no terminal to ask at")
    answer = err.input(plain(f"{question} [y/N] "))
    if answer.strip().lower() not in ("y", "yes"):
        raise Refused("declined", refused)


def confirm_last(sfu: str, *, verb: str) -> None:
    """Ask before the last SFU that takes new players is taken out. Raises as `confirm`."""
    what = f"{sfu}, the last SFU that takes new players"
    question = f"{verb} {what}? Players could not join, and those on it have nowhere to move to."
    confirm(question, would=f"{verb.lower()} {what}", refused=f"{sfu} goes on")
