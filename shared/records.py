"""Every record kept in Redis, and how one is read and rewritten without losing what a newer version put there (D1)."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any, TypeVar

import msgspec

from shared.errors import BadRecord

Int = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
"""A whole number in a record or message. JSON has no bound of its own: a peer could send one of a million digits."""


class SfuStatus(StrEnum):
    """The application's word on an SFU; liveness and health are other matters (invariant 3)."""

    ONLINE = "ONLINE"
    """Takes new work."""
    CORDONED = "CORDONED"
    """Takes no new work, forwards everything it carries."""
    TERMINATING = "TERMINATING"
    """Runs its final sequence; gone within seconds."""
    UNKNOWN = "UNKNOWN"
    """A value of a newer version: alive, not placeable. Never written."""


class DrainCause(StrEnum):
    """What began a drain."""

    SIGTERM = "sigterm"
    """The process got SIGTERM: can't be taken back."""
    OPERATOR = "operator"
    """An operator cordoned or drained it by hand: `uncordon` takes it back."""


class Record(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A JSON record. Use `read_record` and `write_record`: they keep fields this version does not know."""


class LoadParts(Record, frozen=True, kw_only=True):
    """What a node's load is made of. `None` means "don't know", which is not zero (invariant 4)."""

    cpu: float | None = None
    """CPU used now, as a share of the node's cores [0..1]."""
    sysload: float | None = None
    """One-minute load average per core."""
    egress_bps: float | None = None
    """Bits sent a second, from byte deltas."""
    ingress_bps: float | None = None
    """Bits received a second."""
    streams: Int | None = None
    """Forwarded outbound streams."""
    rooms: Int | None = None
    """Rooms with a player here."""
    clients: Int | None = None
    """Players connected here."""
    tracks: Int | None = None
    """Published tracks here."""
    cpu_process: float | None = None
    """CPU of the SFU's process per core it may use."""
    cpu_machine: float | None = None
    """CPU of the whole machine [0..1], its neighbours included."""
    loop_lag_s: float | None = None
    """Longest that the event loop kept something due waiting since the sample before [s]."""


class Capacities(Record, frozen=True, kw_only=True):
    """What a node can carry (A2)."""

    egress_mbps: float = 700.0
    """Egress ceiling [Mbit/s]: 70 % of a 1 Gbit/s port."""
    streams: Int = 1200
    """Ceiling of forwarded outbound streams."""
    cores: Int = 1
    """Cores the node may use."""
    cpu_guard: float = 0.85
    """CPU share at which the node is full (A1)."""


class Milestones(Record, frozen=True, kw_only=True):
    """How an SFU came up: seconds since its process started; None: not yet."""

    healthy_s: float | None = None
    """It answers health checks."""
    linked_s: float | None = None
    """A first router has welcomed it."""
    first_packet_s: float | None = None
    """It has forwarded its first packet, the probe call's or a player's (A5)."""


class Drain(Record, frozen=True, kw_only=True):
    """The facts of a drain in progress."""

    cause: str = DrainCause.OPERATOR.value
    """A `DrainCause`."""
    by: str = ""
    """Who: `signal`, or the operator's name."""
    reason: str = ""
    """Why, in the operator's words."""
    exit_when_empty: bool = True
    """False for a plain hand cordon, which holds the SFU and never ends it."""
    elapsed_s: float = 0.0
    """Seconds since the drain began, by the SFU's monotonic clock, as of this revision."""
    drain_max_s: float | None = None
    """Seconds after its beginning at which the remaining players are asked to move; None: never."""
    grace_s: float | None = None
    """Seconds after its beginning at which the process is killed from outside; None: no such bound."""
    asking: bool = False
    """Past `drain_max_s`: the remaining players are being asked to move."""
    since_at: float | None = None
    """When it began, by the Redis server's clock [Unix seconds]; None until a router has stamped it."""
    command: str = ""
    """Id of the operator's command that caused it."""
    lease_left_s: float | None = None
    """Seconds, as of this revision, after which a leased cordon lapses unless it is renewed; None: it never does."""
    token: Int = 0
    """Fencing token of the controller whose lease it is; 0: it has no lease."""


class SfuState(Record, frozen=True, kw_only=True):
    """One SFU as routers, operators and Redis know it. Merged by `(incarnation, revision)`, never by time."""

    address: str
    """Websocket URL at which players reach it."""
    load: float | None = None
    """Node load (A1): the fullest of its parts, 1.0 at the ceiling. None: no report yet."""
    status: str | None = None
    """A `SfuStatus`; missing means ONLINE. Use `status_of`, which also reads values of newer versions."""
    sfu: str = ""
    """Id; an older program's record has none, then the address is the id. Use `sfu_id`."""
    incarnation: Int = 0
    """Grows with each start of an SFU of this id."""
    revision: Int = 0
    """Grows with each report of one incarnation."""
    cell: str = "default"
    """The cell it belongs to."""
    version: str = ""
    """Version label of the release it runs."""
    warmed_up: bool = False
    """Has forwarded its first packet since it started: that of its probe call, or a player's (A5)."""
    capacities: Capacities = Capacities()
    load_parts: LoadParts = LoadParts()
    drain: Drain | None = None
    """Present while cordoned or terminating."""
    players: Int | None = None
    """Player sessions here, subscribe-only ones included."""
    producers: Int | None = None
    consumers: Int | None = None
    started_at: float | None = None
    """First seen, by the Redis server's clock [Unix seconds]; stamped by routers."""
    milestones: Milestones = Milestones()
    probe_failure: str = ""
    """Why the last probe call through the announced address failed, in one word; empty when none did."""
    boot: str = ""
    """Random per process start, put in by its router from `hello`: tells two processes with one id apart."""
    extra: dict[str, Any] | None = None
    """Fields of a newer version, kept for the next rewrite. Never a wire field of its own."""


def status_of(state: SfuState) -> SfuStatus:
    """The status, with missing read as ONLINE and an unfamiliar value as UNKNOWN (D1)."""
    if state.status is None:
        return SfuStatus.ONLINE
    try:
        return SfuStatus(state.status)
    except ValueError:
        return SfuStatus.UNKNOWN


def sfu_id(state: SfuState) -> str:
    """The SFU's id; an older record is identified by its address."""
    return state.sfu or state.address


def version_of(state: SfuState) -> tuple[int, int]:
    """`(incarnation, revision)`: the only order between two states of one SFU (invariant 2)."""
    return (state.incarnation, state.revision)


class Presence(Record, frozen=True, kw_only=True):
    """What a player says about itself; the inputs of the rule "safe to move" (D5)."""

    at_desk: bool = True
    in_ambient_meeting: bool = False
    in_conversation: bool = False


class StayReason(Record, frozen=True, kw_only=True):
    """Why a player has not moved off a cordoned SFU."""

    sfu: str
    move: bool = False
    reason: str = ""


class PlayerRecord(Record, frozen=True, kw_only=True):
    """A player of a room, as every router and player of the room sees it."""

    player: str
    """Session id; public."""
    identity: str
    name: str = ""
    sfu: str = ""
    """The SFU it publishes to."""
    presence: Presence = Presence()
    stay: StayReason | None = None
    """Its last decision about a cordoned SFU it is on."""
    router: str = ""
    """The router that holds its websocket."""
    epoch: Int = 0
    """Grows with each join of an identity in this room; the newest wins."""
    lost: bool = False
    """Its router has lost touch with it: its websocket broke and is not back, or is silent. Its media may go on; where
    that has stopped, too, its machine or network has died."""
    extra: dict[str, Any] | None = None


class PublicationRecord(Record, frozen=True, kw_only=True):
    """A track that a player publishes. Its id survives moves; its generation grows with each."""

    publication: str
    player: str
    """Session id of the publisher."""
    kind: str
    """`audio` or `video`."""
    source: str = ""
    """`camera`, `microphone`, `screen`, or the app's own word."""
    sfu: str = ""
    """Where to subscribe from (P6)."""
    generation: Int = 1
    extra: dict[str, Any] | None = None


class RoomPlacement(Record, frozen=True, kw_only=True):
    """Which SFU new work of a room goes to."""

    sfu: str
    generation: Int = 1
    """Grows with each change of `sfu`."""


class MissingMedia(Record, frozen=True, kw_only=True):
    """A player that said that its media does not get through."""

    who: str
    """Its name, or its identity if it has none."""
    room: str
    missing: tuple[str, ...]
    """`send`, `receive`, or both."""


class RouterRecord(Record, frozen=True, kw_only=True):
    """A router that is alive, and where to ask it."""

    router: str
    http: str = ""
    """Base URL of its HTTP API."""
    ws: str = ""
    """URL players connect to."""
    version: str = ""
    boot: str = ""
    """Random per process start: tells a router that was started again from the one before."""
    players: Int = 0
    sfus: tuple[str, ...] = ()
    """SFUs linked to it."""
    without_media: Int | None = None
    """Players of it whose media does not get through; None: an older router does not say."""
    who_without_media: tuple[MissingMedia, ...] = ()
    """The first few of them."""
    extra: dict[str, Any] | None = None


class ExitScope(StrEnum):
    """Whom a forced termination is for (D8)."""

    ALL_CORDONED = "all-cordoned"
    VERSION = "version"
    SFU = "sfu"


class ExitOrder(Record, frozen=True, kw_only=True):
    """A forced termination: every cordoned SFU in scope that was cordoned and started before `at` exits at once."""

    scope: str
    """An `ExitScope`."""
    at: float
    """When it was given, by the Redis server's clock [Unix seconds]."""
    target: str = ""
    """Version label or SFU id; empty for all."""
    by: str = ""


class CommandVerb(StrEnum):
    """What an operator tells one SFU through Redis and the routers linked to it (D12)."""

    CORDON = "cordon"
    DRAIN = "drain"
    UNCORDON = "uncordon"


class SfuCommand(Record, frozen=True, kw_only=True):
    """The newest operator's command for one SFU."""

    command: str
    """Unique id; an SFU applies it once."""
    verb: str
    """A `CommandVerb`."""
    sfu: str
    by: str = ""
    reason: str = ""
    at: float = 0.0
    """When, by the Redis server's clock [Unix seconds]."""
    lease_s: float | None = None
    """A leased cordon (A6): the SFU takes it back this long after the last such command; None: it holds."""
    drain_max_s: float | None = None
    """Of a leased cordon: seconds from its beginning to asking the remaining players to move; None: never."""
    token: Int = 0
    """Fencing token of the controller that gave it (A7); an SFU ignores one older than it has seen. 0: a person's."""


class DrainReport(Record, frozen=True, kw_only=True):
    """The result of one drain (D10), written once by the SFU's final sequence."""

    sfu: str
    version: str = ""
    cause: str = ""
    outcome: str = ""
    """`empty`, `grace`, `forced`."""
    to_exit_s: float = 0.0
    """Seconds from the cordon to the end."""
    players_at_cordon: Int = 0
    players_at_exit: Int = 0
    producers_at_exit: Int = 0
    consumers_at_exit: Int = 0
    asked: Int = 0
    """Players that were asked to move at `drain_max`."""
    evicted: Int = 0
    """Players that were still there when the transports were closed."""
    last_move_s: float | None = None
    """Seconds from the cordon until the last player left on its own."""
    conversations_s: tuple[float, ...] = ()
    """For each player that left during the drain: seconds it stayed on after the cordon."""


R = TypeVar("R", bound=Record)

_decoders: dict[type[Record], msgspec.json.Decoder[Any]] = {}


def read_record(kind: type[R], raw: bytes | str, *, key: str = "") -> R:
    """Decode a record, keeping unknown fields in `extra` where the kind has one.

    Raises `BadRecord` with the key when it is no JSON object of that shape.
    """
    decoder = _decoders.get(kind)
    if decoder is None:
        decoder = _decoders[kind] = msgspec.json.Decoder(kind)
    try:
        record: R = decoder.decode(raw)
        if "extra" not in kind.__struct_fields__:
            return record
        fields: dict[str, Any] = msgspec.json.decode(raw, type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise BadRecord(key=key, detail=str(error)[:200]) from None
    unknown = {name: value for name, value in fields.items() if name not in kind.__struct_fields__}
    return msgspec.structs.replace(record, extra=unknown or None)


def write_record(record: Record) -> bytes:
    """Encode a record; fields kept in `extra` come back where they were found, at the top level."""
    extra: dict[str, Any] | None = getattr(record, "extra", None)
    if not extra:
        return msgspec.json.encode(record)
    fields = msgspec.to_builtins(record)
    fields.pop("extra", None)
    return msgspec.json.encode({**extra, **fields})


def every_field(value: Any) -> Any:
    """A record as a program gives it to people and scripts: with all its fields, so that they need not know the
    defaults, but without those of a newer version."""
    if isinstance(value, msgspec.Struct):
        return {name: every_field(getattr(value, name)) for name in value.__struct_fields__ if name != "extra"}
    return [every_field(each) for each in value] if isinstance(value, tuple) else value
