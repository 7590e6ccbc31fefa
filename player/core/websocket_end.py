"""What a player does when its websocket to an SFU has ended: signalling is not media (docs/protocol.md section 1.3)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from shared.messages.codes import CloseCode

AWAY_S = 15.0
"""So long a websocket may be away before another SFU is looked for: the SFU keeps a session without one for 30 s
(`sfu/core/session.py`), and half of that is left for a move."""
ENTRY_S = 5.0
"""A websocket over which the SFU has not let us in by then is given up: TCP and TLS fit."""
STEADY_S = 5.0
"""One that has lasted so long has worked: the next back-off begins from the beginning."""
CUTTING = frozenset({CloseCode.TERMINATING, CloseCode.REPLACED, CloseCode.BAD_MESSAGE})
"""Close codes after which the SFU has dropped our media as well."""
FINAL = CUTTING | {CloseCode.REFUSED, CloseCode.BAD_TOKEN, CloseCode.NO_JOIN}
"""Close codes after which it will not have us back as we are."""
ENDING = frozenset({"terminating"})
"""What an SFU says when its media ends too."""

_KNOWN = frozenset(CloseCode)


class ComeBack(StrEnum):
    """What to do about it."""

    AT_ONCE = "at-once"
    """There is no media to wait for, or another credential to show."""
    LATER = "later"
    """With back-off: the media goes on."""
    WITH_TOKEN = "with-token"
    """Only a token from the router can let us in; the media goes on."""
    NEVER = "never"
    """The link is over."""


@dataclass(frozen=True, kw_only=True, slots=True)
class WebsocketEnd:
    """How it ended."""

    code: int
    refusal: str = ""
    """What the SFU said instead of letting us in, or of its own end."""
    let_in: bool = False
    """The SFU had let us in over this one ..."""
    was_inside: bool = False
    """... or over an earlier one."""
    media: bool = False
    """A peer connection lives, by its own consent."""
    token_left: bool = False
    """We showed the re-entry credential, and have a token as well."""


def come_back(end: WebsocketEnd) -> ComeBack:
    """Whether to open another, and when."""
    if end.code in CUTTING or end.refusal in ENDING or not end.was_inside:
        return ComeBack.NEVER
    if end.code == CloseCode.BAD_TOKEN and end.token_left:
        return ComeBack.AT_ONCE
    if end.media:
        return ComeBack.WITH_TOKEN if end.code == CloseCode.BAD_TOKEN else ComeBack.LATER
    if end.let_in and end.code not in FINAL and not end.refusal:
        return ComeBack.AT_ONCE
    return ComeBack.NEVER


def word_of(end: WebsocketEnd, *, opened: bool) -> str:
    """How observers are told of it."""
    if not opened:
        return "unreachable"
    if end.refusal:
        return end.refusal
    if end.code in _KNOWN:
        return CloseCode(end.code).name.lower().replace("_", "-")
    return "websocket-broke"
