"""Between an SFU and a router. The SFU connects and speaks first, with `hello`."""

from __future__ import annotations

import msgspec

from shared.errors import WrongProtocol
from shared.messages import OLDEST_VERSION, PROTOCOL_VERSION
from shared.messages.base import Message, Reader
from shared.records import DrainReport, Int, SfuState, read_record, write_record


def pack_state(state: SfuState) -> msgspec.Raw:
    """The state as it goes into a link message, unknown fields included."""
    return msgspec.Raw(write_record(state))


def unpack_state(raw: msgspec.Raw) -> SfuState:
    """The state in a link message, with fields of a newer SFU kept in `extra` (D9). Raises `BadRecord`."""
    return read_record(SfuState, bytes(raw), key="link")


def check_protocol(theirs: int) -> None:
    """Raise `WrongProtocol` when this release does not speak the version in an SFU's `hello`."""
    if not OLDEST_VERSION <= theirs <= PROTOCOL_VERSION:
        raise WrongProtocol(theirs=theirs, oldest=OLDEST_VERSION, newest=PROTOCOL_VERSION)


# --- sfu -> router ---


class Hello(Message, frozen=True, kw_only=True):
    """Who is calling. The token's subject must be the SFU's id."""

    token: str
    boot: str
    """Random per process start: tells an SFU that reconnects from another one with its id."""
    state: msgspec.Raw
    protocol: Int = PROTOCOL_VERSION
    """Version that the SFU speaks. A router that does not closes the link with `WRONG_PROTOCOL`."""


class SfuReport(Message, frozen=True, kw_only=True):
    """The state, once a second and on each change that is not a change of status."""

    state: msgspec.Raw


class CordonReport(Message, frozen=True, kw_only=True, tag="cordoned-sfu"):
    """The SFU takes no new work from now on. The router applies it, tells its players, then Redis (D3)."""

    state: msgspec.Raw


class UncordonReport(Message, frozen=True, kw_only=True, tag="uncordoned-sfu"):
    """An operator's cordon was taken back."""

    state: msgspec.Raw


class TerminatingSfu(Message, frozen=True, kw_only=True):
    """The final sequence has begun."""

    state: msgspec.Raw


class Drained(Message, frozen=True, kw_only=True):
    """The last message of a drained SFU: the result of the drain. The router unregisters the SFU."""

    report: DrainReport
    state: msgspec.Raw


ToRouter = Hello | SfuReport | CordonReport | UncordonReport | TerminatingSfu | Drained

# --- router -> sfu ---


class Linked(Message, frozen=True, kw_only=True):
    """The link is up."""

    router: str
    incarnation_floor: Int = 0
    """Highest incarnation known of this id from another boot; the SFU raises its own above it (invariant 2)."""


class Stamped(Message, frozen=True, kw_only=True):
    """What Redis' clock says of this SFU; the SFU puts it into its next report."""

    started_at: float | None = None
    cordoned_at: float | None = None


class Cordon(Message, frozen=True, kw_only=True):
    """An operator's cordon or drain, or a controller's leased cordon. The fields are those of `SfuCommand`."""

    command: str
    by: str = ""
    reason: str = ""
    exit_when_empty: bool = False
    """True: a drain. False: hold, never end."""
    lease_s: float | None = None
    """The SFU takes the cordon back after this long unless another such message renews it."""
    drain_max_s: float | None = None
    """Of a leased cordon: seconds to asking the remaining players to move."""
    token: Int = 0
    """Fencing token; 0: a person's."""


class Uncordon(Message, frozen=True, kw_only=True):
    """An operator takes a cordon back, a controller (`token` over 0) its own. Without effect after SIGTERM."""

    command: str
    by: str = ""
    token: Int = 0


class Exit(Message, frozen=True, kw_only=True):
    """Forced termination (D8): a cordoned SFU runs its final sequence at once; any other SFU ignores it."""

    at: float = 0.0
    by: str = ""
    reason: str = ""


class Registered(Message, frozen=True, kw_only=True):
    """Answer to `drained`: the router has unregistered the SFU; the link can close."""


ToSfu = Linked | Stamped | Cordon | Uncordon | Exit | Registered

to_router: Reader[ToRouter] = Reader(ToRouter, direction="sfu-to-router")
to_sfu: Reader[ToSfu] = Reader(ToSfu, direction="router-to-sfu")
