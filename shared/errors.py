"""Everything Sluice raises on purpose.

    SluiceError                 has a `code` that peers, logs and metrics use
     +- BadInput                what was sent or written can't be read; the sender is at fault
     |   +- BadMessage          a frame that is no message of its direction
     |   +- UnknownMessage      a well-formed message with a tag of another version
     |   +- WrongProtocol       a peer that speaks no version of the protocol that we speak
     |   +- NameTaken           an SFU whose id another living process has
     |   +- BadToken            a token that is expired, forged or for something else
     |   +- BadRecord           a record in Redis of the wrong shape
     |   +- BadSdp              a session description that is garbage or lacks what we need
     |   +- BadPacket           a datagram that is no RTP, RTCP or STUN we can read
     |   +- BadSetting          a setting that can't be used, with the fix in the sentence
     +- Refused                 understood, and the answer is no; `code` says why
     |   +- Fenced              a write under a fencing token that is no longer the newest
     +- StoreUnavailable        Redis did not answer in time; the caller goes on with what it last knew
     |   +- NoRedis             nothing answers where the fleet's Redis should be
     +- NoPort                  every port that could be taken is
     +- FleetFailed             localfleet: a program did not come up or ended on its own
     +- NotApplied              operators: a command was written, but the fleet did not follow it in time
     +- NoFleet                 operators: no fleet was named and none runs here
     +- PoolError               control: a pool of nodes did not answer, or refused
     +- JoinFailed              player: no router has let us in; `reason` says why
     +- SessionOver             player: something was asked of a session that has ended
     +- SystemRefused           cli: a file, a socket or a process that the system does not give us

Errors keep their facts as attributes and compose their sentence from them.
"""

from __future__ import annotations

from dataclasses import dataclass
from inspect import get_annotations
from typing import dataclass_transform


@dataclass_transform(eq_default=False, kw_only_default=True)
class SluiceError(Exception):
    """The root; `code` is a stable kebab-case word, safe as a metric label.

    Attributes that a subclass declares with a type are the facts that its constructor takes, by keyword.
    """

    code = "internal"

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if get_annotations(cls):
            dataclass(eq=False, repr=False, kw_only=True)(cls)

    def sentence(self) -> str:
        """The error as one sentence for people."""
        return self.code

    def __str__(self) -> str:
        return self.sentence()


class BadInput(SluiceError):
    """What a peer, a file, an environment variable or Redis gave us can't be used."""

    code = "bad-input"


class BadMessage(BadInput):
    """A frame that is no message of its direction."""

    code = "bad-message"

    direction: str
    detail: str

    def sentence(self) -> str:
        return f"not a {self.direction} message: {self.detail}"


class UnknownMessage(BadInput):
    """A tag this version does not know; skip it, the connection is fine (requirement D9)."""

    code = "unknown-message"

    direction: str
    tag: str

    def sentence(self) -> str:
        return f"{self.direction} message of unknown type {self.tag!r}"


class WrongProtocol(BadInput):
    """An SFU that speaks a version of the protocol that this router does not."""

    code = "wrong-protocol"

    theirs: int
    oldest: int
    newest: int

    def sentence(self) -> str:
        ours = f"{self.newest}" if self.oldest == self.newest else f"{self.oldest} to {self.newest}"
        return f"the SFU speaks protocol version {self.theirs}, this router {ours}: run releases that share one"


class NameTaken(BadInput):
    """An SFU has the id of another process that is alive."""

    code = "name-taken"

    sfu: str

    def sentence(self) -> str:
        return f"another SFU named {self.sfu[:48]!r} is alive: give each process an id of its own (--sfu)"


class BadToken(BadInput):
    """A token that does not open what was asked for. `reason`: `malformed`, `expired`, `not-yet`, `forged`,
    `wrong-audience`, `bad-claims`."""

    code = "bad-token"

    reason: str
    detail: str = ""

    def sentence(self) -> str:
        return f"token refused ({self.reason}){': ' + self.detail if self.detail else ''}"


class BadRecord(BadInput):
    """A record in Redis of the wrong shape; it is skipped and counted."""

    code = "bad-record"

    key: str
    detail: str

    def sentence(self) -> str:
        return f"record {self.key} can't be read: {self.detail}"


class BadSdp(BadInput):
    """A session description that is garbage, or that lacks something; `detail` names what."""

    code = "bad-sdp"

    detail: str

    def sentence(self) -> str:
        return f"session description refused: {self.detail}"


class BadPacket(BadInput):
    """A datagram, or part of one, that can't be read as what it claims to be."""

    code = "bad-packet"

    protocol: str
    detail: str

    def sentence(self) -> str:
        return f"bad {self.protocol} packet: {self.detail}"


class BadSetting(BadInput):
    """A setting that can't be used; the sentence names the setting and the fix."""

    code = "bad-setting"

    setting: str
    detail: str

    def sentence(self) -> str:
        return f"{self.setting}: {self.detail}"


class Refused(SluiceError):
    """Understood and declined. Codes in use: see `shared.messages.codes`."""

    def __init__(self, code: str, detail: str = "") -> None:
        super().__init__()
        self.code = code
        self.detail = detail

    def sentence(self) -> str:
        return f"{self.code}{': ' + self.detail if self.detail else ''}"


class Fenced(Refused):
    """Another controller leads now: nothing was written; this token must not be used again (invariant 9)."""

    def __init__(self, *, token: int, newest: int) -> None:
        super().__init__("fenced", f"token {token} is not the newest, which is {newest}")
        self.token = token
        self.newest = newest


class StoreUnavailable(SluiceError):
    """Redis did not answer in time. Media, sessions and placement go on with the last known state (invariant 5)."""

    code = "store-unavailable"

    operation: str
    detail: str

    def sentence(self) -> str:
        return f"Redis can't do {self.operation}: {self.detail}"


class NoRedis(StoreUnavailable):
    """Redis did not answer the first question of a command."""

    code = "no-redis"

    def __init__(self, *, url: str, detail: str) -> None:
        """`url` is shown to people: without a password. `detail` is why, in a few words."""
        super().__init__(operation="ping", detail=detail)
        self.url = url

    def sentence(self) -> str:
        return (
            f"nothing of use answers at {self.url} ({self.detail}): "
            "start Redis there, or name another one with --redis or SLUICE_REDIS"
        )


class NoPort(SluiceError):
    """Programs here have no port left to listen on."""

    code = "no-port"

    host: str
    least: int
    most: int

    def sentence(self) -> str:
        return f"no port from {self.least} to {self.most} is free on {self.host}: end a program that has one"
