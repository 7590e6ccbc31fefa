"""The crowd of a rehearsal: bots in a process of their own, listened to and told what to do, a JSON line at a time."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self

import msgspec

from localfleet.errors import FleetFailed
from localfleet.fleet import Fleet
from localfleet.program import flags
from rehearse.config import CrowdSize
from rehearse.core.crowd_view import CrowdView
from rehearse.core.ending import Failure
from rehearse.core.gaps import LongestGaps
from shared.host.child import Child, python

FINISH_WITHIN_S = 20.0


class Crowd:
    """Use it as an async context manager inside a started fleet."""

    def __init__(
        self,
        fleet: Fleet,
        size: CrowdSize,
        *,
        name: str = "bots",
        video: bool = True,
        hear: Callable[[dict[str, Any]], None] = lambda _: None,
    ) -> None:
        """`hear` is given each event of the bots as well."""
        self._video = video
        self._hear = hear
        self.view = CrowdView()
        self.report: dict[str, Any] | None = None
        self._fleet = fleet
        self._size = size
        self._name = name
        self._child: Child | None = None
        self._reader: asyncio.Task[None] | None = None
        self._word = asyncio.Event()

    async def __aenter__(self) -> Self:
        size = self._size
        arguments = flags(
            routers=self._fleet.router_urls(),
            rooms=size.rooms,
            bots=size.bots,
            seed=size.seed,
            behaviour="0s desk",
            events=True,
            json=True,
            video=self._video,
        )
        self._child = await self._fleet.start_other(self._name, python("client_sim", *arguments), piped=True)
        self._reader = asyncio.create_task(self._read())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._child is not None:
            await self._child.stop(within_s=10.0)
        if self._reader is not None:
            await self._reader

    @property
    def running(self) -> bool:
        """Whether the bots are still there."""
        return self._child is not None and self._child.running

    @property
    def pid(self) -> int:
        """Their process."""
        assert self._child is not None
        return self._child.pid

    def tail(self) -> str:
        """The end of the bots' log."""
        return self._child.tail() if self._child is not None else ""

    async def next_word(self, *, within_s: float) -> None:
        """Wait until the bots have said something, at most `within_s`."""
        self._word.clear()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(within_s):
                await self._word.wait()

    async def tell(self, **command: object) -> None:
        """Give the bots a command. Raises `FleetFailed` when they have ended."""
        assert self._child is not None
        assert self._child.process.stdin is not None
        try:
            self._child.process.stdin.write(msgspec.json.encode(command) + b"\n")
            await self._child.process.stdin.drain()
        except (ConnectionError, RuntimeError) as error:
            raise FleetFailed(program=self._name, detail=f"do not listen: {error}", log=self.tail()) from None

    async def begin_measuring(self) -> None:
        """Gaps and failures from now on count."""
        self.view.failures.clear()
        self.view.moves.clear()
        await self.tell(cmd="mark")

    async def stay_all(self) -> None:
        """Every bot is in a conversation away from its desk, so that none moves on its own."""
        await self.tell(cmd="presence", bot="*", at_desk=False, in_conversation=True)

    async def measured(self) -> tuple[LongestGaps, list[Failure]]:
        """End the bots; the longest gaps since `begin_measuring`, and the connections that failed since then."""
        assert self._child is not None
        failures = list(self.view.failures)
        await self.tell(cmd="stop")
        try:
            await self._child.wait(FINISH_WITHIN_S)
        except TimeoutError:
            raise FleetFailed(program=self._name, detail="do not finish", log=self.tail()) from None
        assert self._reader is not None
        await self._reader
        if self.report is None:
            raise FleetFailed(program=self._name, detail="left no report", log=self.tail())
        return gaps_in(self.report), failures

    async def _read(self) -> None:
        assert self._child is not None
        assert self._child.process.stdout is not None
        async for line in self._child.process.stdout:
            with contextlib.suppress(msgspec.DecodeError):
                said = msgspec.json.decode(line)
                if isinstance(said, dict):
                    self._take(said)
            self._word.set()

    def _take(self, said: dict[str, Any]) -> None:
        if said.get("event") == "final-report":
            self.report = said.get("report")
        else:
            self.view.handle(said)
        self._hear(said)


def gaps_in(report: dict[str, Any]) -> LongestGaps:
    """The gaps since the mark in the bots' report."""
    return LongestGaps(
        audio_ms=report.get("marked_audio_gap_ms"),
        video_ms=report.get("marked_video_gap_ms"),
        frame_ms=float(report.get("frame_ms") or LongestGaps().frame_ms),
    )
