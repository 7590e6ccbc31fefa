"""Janus' videoroom as a server that `sluice bench relay --peer janus` can measure."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import Any

from bench.janus import sdp as janus_sdp
from bench.janus.api import JanusApi
from bench.janus.process import JanusProcess, find_janus, janus_process
from bench.relay.peers import OfferedTrack, PeerStats, TransportAnswer
from shared.rtc.dtls import Fingerprint
from shared.rtc.srtp import SrtpProfile

MAX_PUBLISHERS = 10_000
MAX_BITRATE_BPS = 100_000_000
"""What Janus tells publishers by REMB; the generator does not listen, so that this only must not be in its way."""


_LIBRARIES = ("libnice", "libsrtp", "crypto")
"""Those that a packet passes through."""


def room_request(room: int) -> dict[str, Any]:
    """Makes a room that does nothing besides forwarding: no audio levels, no key frames asked for by the clock,
    no news of who joins. Header extensions are those of the publisher's offer."""
    return {
        "request": "create",
        "room": room,
        "publishers": MAX_PUBLISHERS,
        "bitrate": MAX_BITRATE_BPS,
        "fir_freq": 0,
        "audiocodec": "opus",
        "videocodec": "vp8",
        "audiolevel_ext": False,
        "audiolevel_event": False,
        "videoorient_ext": False,
        "playoutdelay_ext": False,
        "transport_wide_cc_ext": False,
        "notify_joining": False,
        "record": False,
    }


class JanusPeer:
    """A `Peer`. Which SRTP profile is used is the clients' choice: Debian's Janus takes both of `SrtpProfile` that the
    benchmark has."""

    name = "janus"

    def __init__(self, *, event_loops: int = 1) -> None:
        """One event loop serves all clients on the one core there is; 0 is Janus' default, a thread for each.

        Raises `PeerMissing`, before anything is measured.
        """
        self._installed = find_janus()
        self._event_loops = event_loops
        self._stack = AsyncExitStack()
        self._process: JanusProcess | None = None
        self._api: JanusApi | None = None
        self._rooms: set[int] = set()
        self._making_room = asyncio.Lock()
        self._handles: dict[int, int] = {}
        self._feeds: dict[int, int] = {}
        self._published: dict[tuple[int, str], int] = {}
        """SSRCs, by feed and MID."""
        self.version = ""
        """The versions of Janus and of the libraries that matter, once it has started."""

    async def start(self, *, core: int | None, profile: SrtpProfile) -> None:
        """Raises `JanusFailed`; nothing is left running then."""
        async with AsyncExitStack() as stack:
            process = janus_process(self._installed, core=core, event_loops=self._event_loops)
            self._process = await stack.enter_async_context(process)
            self._api = await JanusApi.open(self._process.api)
            stack.push_async_callback(self._api.close)
            self.version = version_of(await self._api.info())
            self._stack = stack.pop_all()

    async def publish(
        self, number: int, *, room: int, fingerprint: Fingerprint, tracks: Sequence[OfferedTrack]
    ) -> TransportAnswer:
        api = self._running()
        await self._make(room)
        handle = self._handles[number] = await api.attach()
        joined, answer = await api.ask(
            handle,
            {"request": "joinandconfigure", "ptype": "publisher", "room": _id(room)},
            ("offer", janus_sdp.offer(fingerprint, tracks)),
        )
        feed = self._feeds[number] = joined["id"]
        self._published |= {(feed, track.mid): track.ssrc for track in tracks}
        return janus_sdp.remote(answer)

    async def subscribe(
        self, number: int, *, room: int, fingerprint: Fingerprint, publishers: Sequence[int]
    ) -> TransportAnswer:
        api = self._running()
        for publisher in publishers:
            await api.connected(self._handles[publisher])
        streams = [{"feed": self._feeds[publisher]} for publisher in publishers]
        handle = self._handles[number] = await api.attach()
        attached, offer = await api.ask(
            handle, {"request": "join", "ptype": "subscriber", "room": _id(room), "streams": streams}
        )
        await api.ask(handle, {"request": "start"}, ("answer", janus_sdp.answer(offer, fingerprint)))
        return replace(janus_sdp.remote(offer), restarted=self._restarted(attached, offer))

    def _restarted(self, attached: dict[str, Any], offer: str) -> dict[int, int]:
        """Janus gives each subscriber's streams numbers and timestamps of their own, from 1 and 0."""
        sources = {one["mid"]: (one["feed_id"], one["feed_mid"]) for one in attached["streams"]}
        return {ssrc: self._published[sources[mid]] for mid, ssrc in janus_sdp.streams(offer).items()}

    async def leave(self, number: int) -> None:
        feed = self._feeds.pop(number, None)
        self._published = {source: ssrc for source, ssrc in self._published.items() if source[0] != feed}
        await self._running().detach(self._handles.pop(number))

    async def stats(self) -> PeerStats:
        """Raises `JanusFailed` when Janus is gone. `drops` counts the connections that it gave up on its own."""
        api = self._running()
        assert self._process is not None
        user_s, sys_s = self._process.cpu_seconds()
        return PeerStats(user_s=user_s, sys_s=sys_s, rss_bytes=self._process.resident_bytes(), drops=dict(api.lost))

    async def stop(self) -> None:
        await self._stack.aclose()
        self._process = self._api = None

    async def _make(self, room: int) -> None:
        async with self._making_room:
            if room not in self._rooms:
                api = self._running()
                handle = await api.attach()
                await api.ask(handle, room_request(_id(room)))
                await api.detach(handle)
                self._rooms.add(room)

    def _running(self) -> JanusApi:
        assert self._api is not None, "it has not been started"
        return self._api


def version_of(info: dict[str, Any]) -> str:
    """`Janus 1.1.2, libnice 0.1.21, libsrtp2 2.5.0, …` out of its answer to `info`."""
    libraries = [
        number if number.startswith(name) else f"{name} {number}"
        for name, number in info.get("dependencies", {}).items()
        if name in _LIBRARIES
    ]
    return ", ".join([f"Janus {info.get('version_string', '?')}", *libraries])


def _id(room: int) -> int:
    """Janus numbers rooms from 1."""
    return room + 1
