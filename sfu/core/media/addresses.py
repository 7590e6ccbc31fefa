"""Where a peer is: the addresses that it showed by authentic checks, and the one that its media is sent to.

A check alone earns nothing: who has seen one can send it again from a forged address. What DTLS or SRTP has found
authentic, and no replay, can't be forged; it is taken from any address of the peer, and earns that address the traffic.
"""

from __future__ import annotations

from dataclasses import dataclass, field

Address = tuple[str, int] | tuple[str, int, str]
"""IP address in numbers and UDP port, and our own IP address that was asked, where the socket is bound to all of them:
another one is another way to the same peer, and answers leave from the one that was asked. An IPv4 address stands as
such, also where an IPv6 socket heard from it. In the place of our address stands `tcp/17` where it is the 17th TCP
connection: no address of UDP is the same, and no other connection (see `sfu.core.streams`)."""

MAX_ADDRESSES = 8
"""Addresses kept of a peer; browsers try two or three. The one seen longest ago is evicted."""

MOVE_EVERY_S = 1.0
"""Between two moves of what is sent to a peer: two paths that both live must not flap."""

QUIET_S = 1.0
"""After so long without anything from the address in use, another that is heard takes its place without a nomination:
NAT has given the peer another port. Well over the gaps of a stream, under the 3 s that a listener forgives."""

OWNED_S = 5.0
"""So long after it was last seen an address belongs to its peer, whatever checks another one sends from there. Browsers
check each 2.5 s."""


@dataclass(slots=True, eq=False)
class KnownAddress:
    """One address of a peer."""

    address: Address
    seen_at: float
    """When anything authentic came from there, be it a check."""
    heard_at: float | None = None
    """When anything came that earns traffic; None: not with the keys in use."""

    def is_owned(self, *, now: float) -> bool:
        """Another peer can't have it."""
        return now - self.seen_at < OWNED_S


@dataclass(slots=True)
class PeerAddresses:
    """All addresses of one peer."""

    known: list[KnownAddress] = field(default_factory=list)
    sending: KnownAddress | None = None
    """Where its media is sent to."""
    nominated: KnownAddress | None = None
    """Which one the peer prefers, as its last nomination said."""
    moved_at: float = 0.0

    def add(self, address: KnownAddress) -> KnownAddress | None:
        """Know another address; returns the one that is evicted for it."""
        self.known.append(address)
        if len(self.known) <= MAX_ADDRESSES:
            return None
        evicted = min((one for one in self.known[:-1] if one is not self.sending), key=lambda one: one.seen_at)
        self.remove(evicted)
        return evicted

    def remove(self, address: KnownAddress) -> None:
        """Forget one of them."""
        self.known.remove(address)
        self.sending = None if self.sending is address else self.sending
        self.nominated = None if self.nominated is address else self.nominated

    def start_again(self) -> None:
        """There are new keys: what came with the old ones earns nothing any more."""
        self.sending = None
        for one in self.known:
            one.heard_at = None

    def heard(self, address: KnownAddress, *, now: float) -> bool:
        """Something that can't be forged came from there. True when media is sent there from now on."""
        address.seen_at = address.heard_at = now
        if address is self.sending or not self._may_move_to(address, now=now):
            return False
        self.sending, self.moved_at = address, now
        return True

    def _may_move_to(self, address: KnownAddress, *, now: float) -> bool:
        if self.sending is None or self.sending.heard_at is None:
            return True
        if now - self.moved_at < MOVE_EVERY_S:
            return False
        return address is self.nominated or now - self.sending.heard_at >= QUIET_S
