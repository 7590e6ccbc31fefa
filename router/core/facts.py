"""What players are to hear about SFUs. Past facts: by the time one exists, the directory has applied it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from shared.records import SfuState


class GoneReason(StrEnum):
    """Why an SFU is gone; the words of `sfu-gone.reason`."""

    TERMINATING = "terminating"
    """It runs, or has run, its final sequence."""
    LOST = "lost"
    """It vanished without a word."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cordoned:
    """The SFU takes no new work."""

    sfu: str
    state: SfuState


@dataclass(frozen=True, slots=True, kw_only=True)
class Uncordoned:
    """The SFU takes new work again."""

    sfu: str
    state: SfuState


@dataclass(frozen=True, slots=True, kw_only=True)
class Gone:
    """The SFU ends or has ended."""

    sfu: str
    state: SfuState
    reason: GoneReason
    told: bool = False
    """Players have heard of it before (when the final sequence began); nothing to tell again."""


Fact = Cordoned | Uncordoned | Gone
