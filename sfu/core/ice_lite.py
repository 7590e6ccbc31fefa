"""ICE-lite for all peers of one port: which credentials a check must have, its answer, and when consent ends (RFC 8445
section 2.5, RFC 7675). Which address a peer is sent to is for `sfu.core.media.addresses`."""

from __future__ import annotations

import secrets
import string
from dataclasses import dataclass, field
from enum import StrEnum

from shared.errors import BadPacket
from shared.rtc import stun, stun_check

Address = tuple[str, int]

CONSENT_S = 15.0
"""Neither an authentic check nor authentic media for this long: the peer is gone. Browsers check every 1.6 to 2.5 s, so
this is six missed in a row; RFC 7675 allows 30 s. GStreamer's libnice stops checking once it has nominated a pair and
sends indications, which are not signed (RFC 8445 section 11): only its media and reports show that it is there."""

MAX_UFRAGS = 4
"""Credentials of one peer that are answered: those in use, and of restarts that it has asked for and not used yet."""
FIRST_CHECK_S = 30.0
"""A peer that has never been heard is given up after this; its answer may still be on its way."""

_ICE_CHARS = string.ascii_letters + string.digits


class IceDrop(StrEnum):
    """Why a STUN message got no answer."""

    MALFORMED = "stun-malformed"
    INDICATION = "stun-indication"
    """A keep-alive that wants no answer and proves nothing."""
    UNKNOWN_UFRAG = "stun-unknown-ufrag"
    BAD_INTEGRITY = "stun-bad-integrity"


@dataclass(frozen=True, slots=True)
class IceCredentials:
    """What the peer must know of us: `a=ice-ufrag` and `a=ice-pwd`."""

    ufrag: str
    pwd: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class AnsweredCheck:
    """An authentic check. It shows an address of the peer unless the peer has to change its role first."""

    peer: int
    reply: bytes
    nominated: bool = False
    role_conflict: bool = False


@dataclass(slots=True)
class _Remote:
    ufrags: list[str]
    """Oldest first; more than one between an ICE restart and the first check that uses it. The oldest is in use."""
    deadline: float
    checked_at: float | None = None


def new_credentials() -> IceCredentials:
    """Random credentials: 47 bits of ufrag, so that no two peers share one, 142 of password (RFC 8445 section 5.3)."""
    return IceCredentials(
        ufrag="".join(secrets.choice(_ICE_CHARS) for _ in range(8)),
        pwd="".join(secrets.choice(_ICE_CHARS) for _ in range(24)),
    )


class IceLite:
    """The table of peers. The caller sends `AnsweredCheck.reply` back to where the check came from."""

    def __init__(self) -> None:
        self._by_ufrag: dict[str, tuple[int, str]] = {}
        self._remotes: dict[int, _Remote] = {}

    def register(self, peer: int, credentials: IceCredentials, *, now: float) -> None:
        """Accept checks with these credentials; a second time for a peer is an ICE restart."""
        self._by_ufrag[credentials.ufrag] = (peer, credentials.pwd)
        remote = self._remotes.get(peer)
        if remote is None:
            self._remotes[peer] = _Remote([credentials.ufrag], now + FIRST_CHECK_S)
        else:
            remote.ufrags.append(credentials.ufrag)
            if len(remote.ufrags) > MAX_UFRAGS:
                del self._by_ufrag[remote.ufrags.pop(1)]

    def forget(self, peer: int) -> None:
        """The peer is closed; its checks are not answered any more."""
        remote = self._remotes.pop(peer, None)
        for ufrag in remote.ufrags if remote is not None else ():
            del self._by_ufrag[ufrag]

    def receive(self, datagram: bytes, source: Address, *, now: float) -> AnsweredCheck | IceDrop:
        """Judge a STUN message. What is not authentic is never answered: it may come from a forged address."""
        try:
            check = stun_check.parse_check(datagram)
        except BadPacket:
            return IceDrop.INDICATION if stun_check.is_indication(datagram) else IceDrop.MALFORMED
        known = self._by_ufrag.get(check.local_ufrag)
        if known is None:
            return IceDrop.UNKNOWN_UFRAG
        peer, pwd = known
        if not stun_check.verify(check, pwd):
            return IceDrop.BAD_INTEGRITY
        remote = self._remotes[peer]
        remote.deadline, remote.checked_at = now + CONSENT_S, now
        self._retire_older(remote, check.local_ufrag)
        if check.peer_is_controlled:
            return AnsweredCheck(peer, stun.role_conflict_response(check, password=pwd), role_conflict=True)
        reply = stun_check.binding_response(check, source=source, password=pwd)
        return AnsweredCheck(peer, reply, nominated=check.use_candidate)

    def _retire_older(self, remote: _Remote, used: str) -> None:
        while remote.ufrags[0] != used:
            del self._by_ufrag[remote.ufrags.pop(0)]

    def checked_at(self, peer: int) -> float | None:
        """When the last authentic check of the peer came [monotonic s]; None: never."""
        remote = self._remotes.get(peer)
        return remote.checked_at if remote is not None else None

    def heard(self, peer: int, *, at: float) -> None:
        """Authentic media came from the peer at that moment, which proves as much as a check."""
        remote = self._remotes.get(peer)
        if remote is not None:
            remote.deadline = max(remote.deadline, at + CONSENT_S)

    def grant(self, stalled_s: float) -> None:
        """This process has not listened for so long [s]: no peer's silence of that time counts."""
        for remote in self._remotes.values():
            remote.deadline += stalled_s

    def silent(self, *, now: float) -> list[int]:
        """Peers whose consent has run out."""
        return [peer for peer, remote in self._remotes.items() if remote.deadline <= now]
