"""Asks our own announced address for an answer: an SFU that can't be reached should say so before players notice."""

from __future__ import annotations

import asyncio

from shared.errors import BadPacket
from shared.rtc.stun import binding_request, parse_response

TRIES = 3
WAIT_S = 1.0
"""For one try; a container's port map answers within a millisecond."""


class _Probe(asyncio.DatagramProtocol):
    def __init__(self, remote_password: str) -> None:
        self._password = remote_password
        self.answered = asyncio.Event()

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        try:
            parse_response(data, remote_password=self._password)
        except BadPacket:
            return  # not ours: something else answers on that address, which is no proof
        self.answered.set()


async def reachable(ip: str, port: int, *, ufrag: str, pwd: str) -> bool:
    """True when an authenticated STUN check to `ip`:`port` is answered with our own password.

    `ufrag` and `pwd` are credentials that our ICE side answers to. Never raises for an address that can't be used.
    """
    try:
        transport, probe = await asyncio.get_running_loop().create_datagram_endpoint(
            lambda: _Probe(pwd), remote_addr=(ip, port)
        )
    except OSError:
        return False
    try:
        for _ in range(TRIES):
            transport.sendto(
                binding_request(remote_ufrag=ufrag, local_ufrag="self", remote_password=pwd, tie_breaker=1)
            )
            try:
                await asyncio.wait_for(probe.answered.wait(), WAIT_S)
            except TimeoutError:
                continue
            return True
        return False
    finally:
        transport.close()
