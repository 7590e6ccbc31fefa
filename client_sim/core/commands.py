"""What may be told to running bots, one JSON object a line."""

from __future__ import annotations

from typing import Annotated

import msgspec

from shared.errors import BadMessage

ALL_BOTS = "*"


def _word(name: str) -> str:
    """`MarkCommand` -> `mark`."""
    return name.removesuffix("Command").lower()


class Command(msgspec.Struct, frozen=True, kw_only=True, tag_field="cmd", tag=_word, forbid_unknown_fields=True):
    """A command; its word is the beginning of its class name."""


class PresenceCommand(Command, frozen=True, kw_only=True):
    """A bot's situation changes; inputs that are not named stay as they are."""

    bot: str = ALL_BOTS
    """Its identity, or `*`."""
    at_desk: bool | None = None
    in_ambient_meeting: bool | None = None
    in_conversation: bool | None = None


class JoinCommand(Command, frozen=True, kw_only=True):
    """More players come."""

    room: Annotated[str, msgspec.Meta(min_length=1, max_length=128)]
    bots: Annotated[int, msgspec.Meta(ge=1, le=1000)] = 1


class LeaveCommand(Command, frozen=True, kw_only=True):
    """A player leaves for good; what it met stays in the reports."""

    bot: str
    """Its identity, or `*`."""


class MarkCommand(Command, frozen=True, kw_only=True):
    """From here on `marked_..._gap_ms` of the reports count from zero."""


class ReportCommand(Command, frozen=True, kw_only=True):
    """Print a report as an event."""


class StopCommand(Command, frozen=True, kw_only=True):
    """All bots leave, and the final report is printed."""


AnyCommand = PresenceCommand | JoinCommand | LeaveCommand | MarkCommand | ReportCommand | StopCommand
_decoder: msgspec.json.Decoder[AnyCommand] = msgspec.json.Decoder(AnyCommand)


def read(line: bytes) -> AnyCommand:
    """The command in a line. Raises `BadMessage`."""
    try:
        return _decoder.decode(line)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise BadMessage(direction="bots-command", detail=str(error)[:200]) from None
