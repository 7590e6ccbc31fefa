"""Datagrams on a TCP connection, each after its length (RFC 4571), as ICE over TCP carries them (RFC 6544)."""

from __future__ import annotations

from shared.errors import BadPacket
from shared.rtc.demux import MAX_DATAGRAM

_HEAD = 2


def framed(datagram: bytes) -> bytes:
    """A datagram of at most 65,535 bytes as it goes on the wire."""
    return len(datagram).to_bytes(_HEAD, "big") + datagram


class Deframer:
    """Takes bytes as they come, in pieces of any size; keeps at most one unfinished datagram."""

    __slots__ = ("_rest",)

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> list[bytes]:
        """The datagrams that these bytes complete. Empty ones are left out: they are legal, and say nothing.

        Raises `BadPacket` for one that is longer than any peer has reason to send; nothing after it can be read.
        """
        data = self._rest + data
        found, at = [], 0
        while len(data) - at >= _HEAD:
            length = int.from_bytes(data[at : at + _HEAD], "big")
            if length > MAX_DATAGRAM:
                raise BadPacket(protocol="framing", detail=f"a datagram of {length} bytes")
            end = at + _HEAD + length
            if end > len(data):
                break
            if length:
                found.append(data[at + _HEAD : end])
            at = end
        self._rest = data[at:]
        return found
