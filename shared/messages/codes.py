"""Websocket close codes and refusal words that peers act on. Stable: clients compare them."""

from __future__ import annotations

from enum import IntEnum, StrEnum


class CloseCode(IntEnum):
    """Why a websocket was closed (4000-4999 is the range for applications, RFC 6455 section 7.4.2)."""

    REPLACED = 4001
    """A newer session of the same identity took over; do not reconnect."""
    BAD_TOKEN = 4003
    """The token was refused; get a new one from the app."""
    BAD_MESSAGE = 4004
    """A frame was no message; fix the client."""
    TOO_FAST = 4005
    """More messages than the connection's limit; reconnect after a pause."""
    SLOW_READER = 4008
    """The reader fell behind its bounded queue; reconnect and resume, a snapshot follows."""
    NOT_RESUMABLE = 4009
    """The session to resume is gone; join again."""
    NO_JOIN = 4010
    """The first message did not come in time, or was not the one expected."""
    REFUSED = 4011
    """The SFU refused the session; the `error` message sent before says why."""
    TERMINATING = 4012
    """The SFU is running its final sequence; rejoin elsewhere."""
    IDLE = 4013
    """Nothing was heard from the peer for too long."""
    WRONG_PROTOCOL = 4014
    """The router speaks no version of the protocol that the SFU speaks; the reason names both."""
    NAME_TAKEN = 4015
    """Another SFU process with the same id is alive; the reason names the id. Give each an id of its own."""


class Refusal(StrEnum):
    """Words in `error.code` that a client may act on."""

    SFU_CORDONED = "sfu-cordoned"
    """The SFU takes no new players; ask the router for another."""
    SFU_TERMINATING = "sfu-terminating"
    """The SFU is closing; ask the router for another."""
    NO_SFU = "no-sfu"
    """No SFU is alive and placeable; retry with jitter."""
    NOT_ALLOWED = "not-allowed"
    """The token lacks the grant for this."""
    NOT_IN_ROOM = "not-in-room"
    """The thing named is not in the player's room."""
    TOO_MANY = "too-many"
    """A bound on count was reached."""
    BAD_SDP = "bad-sdp"
    """The session description can't be used; the message says what is missing."""
    STALE = "stale"
    """An older generation than the one known; the newer one is kept."""
    CODEC_REFUSED = "codec-refused"
    """The player's answer does not take a publication, most often because it has no decoder for it."""
    UNKNOWN_SFU = "unknown-sfu"
    """No such SFU is known here."""
