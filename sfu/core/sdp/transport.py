"""The transport half of a session description: what ours says, what the peer's must (RFC 8445, 8842, 9143)."""

from __future__ import annotations

from dataclasses import dataclass, replace

from shared.errors import BadSdp
from shared.rtc.sdp import Candidate, Fingerprint, MediaSection, SessionDescription

USABLE_HASHES = ("sha-256", "sha-384", "sha-512")
"""Hashes that DTLS verification supports; a peer with sha-1 only is refused."""


@dataclass(frozen=True, kw_only=True, slots=True)
class LocalTransport:
    """One of our ends: ICE-lite on an announced address, passive in DTLS."""

    ufrag: str
    pwd: str
    fingerprint: Fingerprint
    candidates: tuple[Candidate, ...]

    def fill(self, section: MediaSection, *, setup: str) -> MediaSection:
        """The section with this transport in it."""
        return replace(
            section,
            ufrag=self.ufrag,
            pwd=self.pwd,
            fingerprints=(self.fingerprint,),
            setup=setup,
            candidates=self.candidates,
            end_of_candidates=True,
            rtcp_mux=True,
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class RemoteTransport:
    """The peer's end. Its address is learned from its checks."""

    ufrag: str
    pwd: str
    fingerprints: tuple[Fingerprint, ...]


def remote_transport(description: SessionDescription, *, setups: tuple[str, ...]) -> RemoteTransport:
    """The one transport of a bundled description. Raises `BadSdp` naming what is missing.

    `setups` are the DTLS roles the peer may state; we are always the server.
    """
    live = [section for section in description.media if not section.rejected]
    if not live:
        raise BadSdp(detail="there is no m-line in use")
    if not description.bundle:
        raise BadSdp(detail="a=group:BUNDLE is missing; bundle every m-line")
    for section in live:
        if section.mid not in description.bundle:
            raise BadSdp(detail=f"m-line {section.mid or '?'} is not in the BUNDLE group")
    first = description.section(description.bundle[0])
    owner = first if first is not None and not first.rejected and first.ufrag else live[0]
    if not owner.ufrag or not owner.pwd:
        raise BadSdp(detail="ice-ufrag or ice-pwd is missing")
    usable = tuple(fingerprint for fingerprint in owner.fingerprints if fingerprint.algorithm in USABLE_HASHES)
    if not usable:
        raise BadSdp(detail=f"no fingerprint of {', '.join(USABLE_HASHES)}")
    if owner.setup not in setups:
        raise BadSdp(detail=f"setup is {owner.setup or 'missing'}; it must be {' or '.join(setups)}")
    return RemoteTransport(ufrag=owner.ufrag, pwd=owner.pwd, fingerprints=usable)
