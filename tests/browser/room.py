"""A person in a room: one page of a browser, asked through `window.sluice` as anybody could in its console."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from playwright.async_api import BrowserContext, Page

JOINED_WITHIN_S = 60.0
KEEP_CONNECTIONS = """
    window.openedSockets = [];
    window.pathAway = null;
    window.WebSocket = class extends WebSocket {
      constructor(url) {
        const { pathname } = new URL(url);
        super(pathname === window.pathAway ? `ws://127.0.0.1:9${pathname}` : url);
        window.openedSockets.push(this);
      }
    };
    window.openedPeers = [];
    window.RTCPeerConnection = class extends RTCPeerConnection {
      constructor(...settings) {
        super(...settings);
        window.openedPeers.push(this);
      }
    };
"""
"""Lets a test break a websocket of the page, as a bad network would, and ask its peer connections anything."""


async def until(check: Callable[[], Awaitable[Any]], what: str, *, within_s: float = 60.0, every_s: float = 0.1) -> Any:
    """Wait until `check` gives something true, and return it; fails naming `what` when the time is over."""
    deadline = time.monotonic() + within_s
    while True:
        found = await check()
        if found:
            return found
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {within_s:.0f} s: {what}")
        await asyncio.sleep(every_s)


@dataclass(frozen=True, slots=True)
class Received:
    """What a page counts of one remote publication."""

    publication: str
    kind: str
    sfu: str
    copy: str
    frames_decoded: int
    packets: int


class Person:
    """One page in one room."""

    def __init__(self, page: Page, name: str) -> None:
        self.page = page
        self.name = name
        self.problems: list[str] = []
        page.on("pageerror", lambda error: self.problems.append(str(error)))

    @classmethod
    async def join(
        cls,
        context: BrowserContext,
        page_url: str,
        *,
        room: str,
        name: str,
        router: str = "",
        media: str = "pattern",
        relay: bool = False,
    ) -> Person:
        """Open the page and join; returns when the router has let the player in."""
        person = cls(await context.new_page(), name)
        await person.page.add_init_script(KEEP_CONNECTIONS)
        query = {"room": room, "name": name, "media": media, "autojoin": "1"}
        if router:
            query["router"] = router
        if relay:
            query["relay"] = "1"
        await person.page.goto(f"{page_url}?{urlencode(query)}")
        await until(person.joined, f"{name} is in the room", within_s=JOINED_WITHIN_S)
        return person

    async def joined(self) -> bool:
        """Has the router let us in?"""
        return bool(await self.page.evaluate("Boolean(window.sluice?.state.player)"))

    async def state(self) -> dict[str, Any]:
        """`player.state`."""
        state: dict[str, Any] = await self.page.evaluate("sluice.state")
        return state

    async def home(self) -> str | None:
        """The SFU this player publishes to; None while there is none, or while a link is opening."""
        home: str | None = await self.page.evaluate("sluice.state.move.home")
        return home

    async def break_sockets(self, path: str) -> int:
        """Close the page's websockets to this path without its library's doing; how many there were."""
        broken: int = await self.page.evaluate(
            """(path) => openedSockets.filter((each) => each.readyState === 1 && new URL(each.url).pathname === path)
                .map((each) => each.close(3001)).length""",
            path,
        )
        return broken

    async def take_away(self, path: str | None) -> None:
        """From now on no websocket to this path can be opened; None: all can."""
        await self.page.evaluate("(path) => { window.pathAway = path; }", path)

    async def opened_peers(self) -> int:
        """How many peer connections the page has ever opened."""
        opened: int = await self.page.evaluate("openedPeers.length")
        return opened

    async def closed_peers(self) -> int:
        """How many peer connections of the page were closed."""
        closed: int = await self.page.evaluate('openedPeers.filter((each) => each.connectionState === "closed").length')
        return closed

    async def opened_sockets(self, path: str) -> int:
        """How many websockets to this path the page has ever opened."""
        opened: int = await self.page.evaluate(
            "(path) => openedSockets.filter((each) => new URL(each.url).pathname === path).length", path
        )
        return opened

    async def rtp_stats(self, kind: str) -> list[dict[str, Any]]:
        """`inbound-rtp` or `outbound-rtp` reports of all peer connections that are open."""
        stats: list[dict[str, Any]] = await self.page.evaluate(
            """async (kind) => {
                const open = openedPeers.filter((each) => each.connectionState !== "closed");
                const reports = await Promise.all(open.map((each) => each.getStats()));
                return reports.flatMap((each) => [...each.values()]).filter(({ type }) => type === kind);
            }""",
            kind,
        )
        return stats

    async def gaps(self) -> dict[str, Any]:
        """Longest gaps since the beginning, by publication."""
        gaps: dict[str, Any] = (await self.page.evaluate("sluice.stats()"))["gaps"]
        return gaps

    async def received(self) -> list[Received]:
        """The copies on display."""
        stats = await self.page.evaluate("sluice.stats()")
        shown = {each["copy"] for each in (await self.state())["publications"]}
        return [
            Received(
                publication=copy["publication"],
                kind=copy["kind"],
                sfu=copy["sfu"],
                copy=copy["copy"],
                frames_decoded=copy["inbound"].get("framesDecoded", 0),
                packets=copy["inbound"].get("packetsReceived", 0),
            )
            for copy in stats["copies"]
            if copy["copy"] in shown and copy["inbound"]
        ]

    async def sees_and_hears(self, others: int = 1, *, frames: int = 10, packets: int = 20) -> None:
        """Wait until that many others are seen and heard: their frames are decoded, their audio arrives."""

        async def enough() -> bool:
            received = await self.received()
            seen = sum(1 for each in received if each.kind == "video" and each.frames_decoded >= frames)
            heard = sum(1 for each in received if each.kind == "audio" and each.packets >= packets)
            return seen >= others and heard >= others

        await until(enough, f"{self.name} sees and hears {others}")
