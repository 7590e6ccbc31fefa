"""What commands print: results on standard output, progress and errors on standard error."""

from __future__ import annotations

import sys
from typing import Annotated, Any

import msgspec
from cyclopts import Parameter
from rich.console import Console
from rich.text import Text

from localfleet.errors import FleetFailed
from shared.errors import SluiceError
from shared.logs import visible

AsJson = Annotated[bool, Parameter(help="Print the report as JSON.")]
"""The type of a command's `json`, where that is all to say of it."""
PIPED_WIDTH = 160
"""Columns of a table that goes to a file or a pipe, which have no width."""
out = Console(highlight=False, soft_wrap=True, width=None if sys.stdout.isatty() else PIPED_WIDTH)
err = Console(stderr=True, highlight=False, soft_wrap=True)


def print_json(value: Any) -> None:
    """One JSON document on standard output."""
    text = msgspec.json.format(msgspec.json.encode(value), indent=2).decode()
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def plain(text: str, style: str = "") -> Text:
    """Text from others, shown literally: no markup, no control characters."""
    return Text(visible(text), style=style)


def step(text: str) -> None:
    """A line of progress."""
    err.print(Text.assemble(("·", "dim"), " ", visible(text)))


def show_error(error: SluiceError) -> None:
    """The error as one sentence, and the end of the log of a program that failed."""
    if isinstance(error, FleetFailed) and error.log:
        err.print(error.log.rstrip(), style="dim", markup=False)
    err.print("sluice:", style="bold red", end=" ")
    err.print(error.sentence(), markup=False)
