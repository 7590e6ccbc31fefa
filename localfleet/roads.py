"""The ways between the programs of a local fleet: direct ones, unless something of ours stands in between."""

from __future__ import annotations

from typing import Protocol


class Roads(Protocol):
    """For each port that a program listens on: the port that the others are told instead.

    A program that is started again has new ports; those that the others know stay the same.
    """

    async def to_router(self, router: str, port: int) -> int:
        """The port of a router's websockets that players are told."""

    async def link(self, sfu: str, router: str, port: int) -> int:
        """The port of a router that one SFU is told for its link."""

    async def to_sfu(self, sfu: str, port: int) -> int:
        """The port of an SFU's websockets that players are told."""

    def media(self, sfu: str, port: int) -> int:
        """The UDP port of an SFU that players are told."""


class DirectRoads:
    """Everything is reached where it listens."""

    async def to_router(self, router: str, port: int) -> int:
        return port

    async def link(self, sfu: str, router: str, port: int) -> int:
        return port

    async def to_sfu(self, sfu: str, port: int) -> int:
        return port

    def media(self, sfu: str, port: int) -> int:
        return port
