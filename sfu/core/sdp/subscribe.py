"""One player's subscribe connection, negotiated offer by offer: which m-line carries what, which offer is in flight.

The SFU offers, one offer at a time; an m-line whose publication has gone is offered `inactive` and taken again by the
next publication of its kind. Its owner asks `next_offer` after every change of what is wanted or carried.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from sfu.core.sdp.formats import MediaFormat, refusal_of
from sfu.core.sdp.payload_types import PayloadTypes
from sfu.core.sdp.transport import LocalTransport, RemoteTransport, remote_transport
from shared.errors import BadSdp
from shared.messages.media import TrackOffer
from shared.rtc.sdp import (
    MAX_MEDIA,
    TRANSPORT_CC,
    Codec,
    Direction,
    Extension,
    ExtensionUri,
    MediaSection,
    SessionDescription,
    Ssrc,
    describe,
)

ANSWER_TIMEOUT_S = 10.0
"""An offer without an answer for this long is made again with a higher number."""
_EXTENSIONS: dict[str, tuple[Extension, ...]] = {
    "audio": (
        Extension(id=1, uri=ExtensionUri.MID),
        Extension(id=2, uri=ExtensionUri.ABS_SEND_TIME),
        Extension(id=3, uri=ExtensionUri.AUDIO_LEVEL),
        Extension(id=5, uri=ExtensionUri.TRANSPORT_CC),
    ),
    "video": (
        Extension(id=1, uri=ExtensionUri.MID),
        Extension(id=2, uri=ExtensionUri.ABS_SEND_TIME),
        Extension(id=4, uri=ExtensionUri.VIDEO_ORIENTATION),
        Extension(id=5, uri=ExtensionUri.TRANSPORT_CC),
    ),
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Carried:
    """A publication that this SFU carries."""

    publication: str
    generation: int
    player: str
    """Session id of its publisher; its tracks share it as CNAME and stream, so that they play in sync."""
    format: MediaFormat
    producer: int
    """Its name in the media plane."""
    identity: str = ""
    """Of its publisher: a newer session of the same person may publish it again."""

    @property
    def version(self) -> tuple[str, int, int]:
        """Changes when the same publication is carried again."""
        return (self.publication, self.generation, self.producer)


@dataclass(frozen=True, kw_only=True, slots=True)
class Accepted:
    """A track that the player has agreed to get: forward it with these numbers."""

    mid: str
    carried: Carried
    ssrc: int
    codec: Codec
    rtx_ssrc: int | None
    rtx_pt: int | None
    extensions: Mapping[str, int]


@dataclass(frozen=True, kw_only=True, slots=True)
class NextOffer:
    """An offer to send; `tracks` lists the m-lines in use."""

    negotiation: int
    description: SessionDescription
    tracks: tuple[TrackOffer, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Negotiated:
    """The result of the player's answer."""

    remote: RemoteTransport | None
    """None when it took nothing at all."""
    accepted: tuple[Accepted, ...] = ()
    refused: tuple[str, ...] = ()
    """Publications whose codec or m-line the player did not take; not offered again."""


@dataclass(slots=True)
class _Line:
    """One m-line, in its place for ever."""

    mid: str
    kind: str
    carried: Carried | None = None
    ssrc: int = 0
    rtx_ssrc: int = 0
    codecs: tuple[Codec, ...] = ()
    taken: bool = False
    """The player has accepted what it carries now."""
    dead: bool = False
    """The player has rejected the m-line; it stays at port zero."""


@dataclass(slots=True)
class SubscribeSession:
    """The negotiation's state. Methods return values; nothing is sent from here."""

    local: LocalTransport
    rng: random.Random
    negotiation: int = 0
    in_flight: bool = False
    left_out: int = 0
    """Publications of the last offer's time for which there was no m-line left."""
    _lines: list[_Line] = field(default_factory=list)
    _refused: set[tuple[str, int, int]] = field(default_factory=set)
    _types: PayloadTypes = field(default_factory=PayloadTypes)
    _dirty: bool = False
    _restarted: bool = False
    """The player has not answered with our newest ICE credentials yet."""
    _deadline: float | None = None
    _session_id: str = field(init=False)

    def __post_init__(self) -> None:
        self._session_id = str(int.from_bytes(self.local.ufrag.encode()[:7], "big"))

    def next_offer(self, wanted: Iterable[Carried], *, now: float) -> NextOffer | None:
        """The offer that brings the m-lines in step with `wanted`; None when they are, or while one is in flight.

        Let go first of what is not wanted: see `release`.
        """
        if self.in_flight:
            return None
        carried = {item.publication: item for item in wanted if item.version not in self._refused}
        self._let_go(carried)
        self._take_in(carried)
        if not self._dirty:
            return None
        self._dirty, self.in_flight, self._deadline = False, True, now + ANSWER_TIMEOUT_S
        self.negotiation += 1
        return self._offer()

    def release(self, wanted: Mapping[str, Carried]) -> list[str]:
        """Free the m-lines of what is no longer wanted or carried, at once, also while an offer is in flight.

        Returns the publications that had been accepted: stop forwarding them.
        """
        return self._let_go(wanted)

    def answer(self, negotiation: int, description: SessionDescription) -> Negotiated | None:
        """Take the player's answer; None for one to an older offer. Raises `BadSdp`; nothing is in flight then."""
        if not self.in_flight or negotiation != self.negotiation:
            return None
        self.abandon()
        if len(description.media) != len(self._lines):
            raise BadSdp(detail=f"the answer has {len(description.media)} m-lines, the offer {len(self._lines)}")
        if all(section.rejected for section in description.media):
            remote = None
        else:
            remote = remote_transport(description, setups=("active",))
        self._restarted = False
        pairs = list(zip(self._lines, description.media, strict=True))
        for line, section in pairs:
            if section.mid != line.mid and not section.rejected:
                raise BadSdp(detail=f"m-line {line.mid} is answered with mid {section.mid or '?'}")
        accepted: list[Accepted] = []
        refused: list[str] = []
        for line, section in pairs:
            line.dead = line.dead or section.rejected
            if line.carried is None or line.taken:
                continue
            taken = self._accept(line, line.carried, section)
            if taken is None:
                refused.append(line.carried.publication)
                self._refused.add(line.carried.version)
                self._free(line)
            else:
                line.taken = True
                accepted.append(taken)
        return Negotiated(remote=remote, accepted=tuple(accepted), refused=tuple(refused))

    def abandon(self) -> None:
        """Nothing is in flight any more: the answer came, could not be used, or the websocket was lost."""
        self.in_flight, self._deadline = False, None

    def offer_again(self) -> None:
        """Make the next `next_offer` speak even when nothing changed: the last offer or its answer got lost."""
        self.abandon()
        untaken = any(line.carried and not line.taken for line in self._lines)
        self._dirty = self._dirty or self._restarted or untaken

    def restart(self, local: LocalTransport) -> None:
        """We have new ICE credentials: the next offer tells them, whatever is in flight."""
        self.abandon()
        self.local = local
        self._restarted = bool(self._lines)
        self._dirty = self._dirty or self._restarted

    def overdue(self, *, now: float) -> bool:
        """True when the answer in flight should have come by now."""
        return self._deadline is not None and now >= self._deadline

    def _let_go(self, wanted: Mapping[str, Carried]) -> list[str]:
        released: list[str] = []
        for line in self._lines:
            if line.carried is None:
                continue
            now_carried = wanted.get(line.carried.publication)
            if now_carried is None or now_carried.version != line.carried.version:
                if line.taken:
                    released.append(line.carried.publication)
                self._free(line)
        return released

    def _free(self, line: _Line) -> None:
        line.carried, line.taken = None, False
        self._dirty = True

    def _take_in(self, wanted: Mapping[str, Carried]) -> None:
        present = {line.carried.publication for line in self._lines if line.carried}
        self.left_out = 0
        for publication, carried in wanted.items():
            if publication in present:
                continue
            codecs = self._types.codecs(carried.format)
            line = self._line_for(carried.format.kind) if codecs else None
            if line is None:
                self.left_out += 1
                continue
            line.carried, line.taken, line.codecs = carried, False, codecs
            line.ssrc, line.rtx_ssrc = self._new_ssrc(), self._new_ssrc()
            self._dirty = True

    def _line_for(self, kind: str) -> _Line | None:
        """An m-line to reuse, or a new one; None when there are as many as a description may have."""
        for line in self._lines:
            if line.kind == kind and line.carried is None and not line.dead:
                return line
        if len(self._lines) >= MAX_MEDIA:
            return None
        line = _Line(mid=str(len(self._lines)), kind=kind)
        self._lines.append(line)
        return line

    def _new_ssrc(self) -> int:
        used = {number for line in self._lines for number in (line.ssrc, line.rtx_ssrc)}
        while (ssrc := self.rng.randrange(1, 2**32)) in used:
            pass
        return ssrc

    def _offer(self) -> NextOffer:
        sections = [self._section(line) for line in self._lines]
        tracks = tuple(
            TrackOffer(
                mid=line.mid,
                publication=line.carried.publication,
                kind=line.kind,
                generation=line.carried.generation,
            )
            for line in self._lines
            if line.carried is not None
        )
        description = describe(sections, session_id=self._session_id, version=self.negotiation, ice_lite=True)
        return NextOffer(negotiation=self.negotiation, description=description, tracks=tracks)

    def _section(self, line: _Line) -> MediaSection:
        section = MediaSection(
            kind=line.kind,
            mid=line.mid,
            port=0 if line.dead else 9,
            direction=Direction.INACTIVE,
            codecs=line.codecs,
            extensions=_EXTENSIONS[line.kind],
            rtcp_rsize=True,
        )
        if line.dead:
            return section
        section = self.local.fill(section, setup="actpass")
        if line.carried is None:
            return section
        cname = line.carried.player
        pairs = ((line.ssrc, line.rtx_ssrc),) if len(line.codecs) > 1 else ()
        ssrcs = (line.ssrc, line.rtx_ssrc) if pairs else (line.ssrc,)
        return replace(
            section,
            direction=Direction.SENDONLY,
            msid=f"{cname} {line.carried.publication}",
            fid_groups=pairs,
            ssrcs=tuple(Ssrc(ssrc=ssrc, cname=cname) for ssrc in ssrcs),
        )

    def _accept(self, line: _Line, carried: Carried, section: MediaSection) -> Accepted | None:
        """What the player took of a line; None when it did not take the codec, or will not receive."""
        codec = line.codecs[0]
        answered = section.codec(codec.pt)
        if section.rejected or not section.direction.receives or answered is None or refusal_of(codec, answered):
            return None
        repairs = section.rtx_for(codec.pt)
        rtx_pt = repairs.pt if repairs is not None and len(line.codecs) > 1 and repairs.pt == codec.pt + 1 else None
        ours = {(extension.uri, extension.id) for extension in _EXTENSIONS[line.kind]}
        agreed = {e.uri: e.id for e in section.extensions if (e.uri, e.id) in ours}
        if TRANSPORT_CC not in answered.feedback:
            agreed.pop(ExtensionUri.TRANSPORT_CC, None)
        return Accepted(
            mid=line.mid,
            carried=carried,
            ssrc=line.ssrc,
            codec=codec,
            rtx_ssrc=line.rtx_ssrc if rtx_pt is not None else None,
            rtx_pt=rtx_pt,
            extensions=agreed,
        )
