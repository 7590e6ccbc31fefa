"""Looks once a second whether a player's media gets through, and tells its application and its router."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from player.core.events import MediaFound, MediaMissing, PlayerEvent
from player.core.media_watch import LinkMedia, MediaNeeds, MediaWatch
from player.shell.media_link import MediaLink
from shared.messages.base import Message
from shared.messages.player import MediaState

LOOK_EVERY_S = 1.0


class MediaReports:
    """Begin it with `start`, end it with `stop`. `needs` says what is unmet just now, `send` sends to the router."""

    def __init__(
        self,
        *,
        needs: Callable[[list[LinkMedia]], MediaNeeds],
        links: Callable[[], list[LinkMedia]],
        send: Callable[[Message], object],
        tell: Callable[[PlayerEvent], None],
    ) -> None:
        self._watch = MediaWatch()
        self._needs, self._links, self._send, self._tell = needs, links, send, tell
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Look from now on."""
        self._timer = asyncio.get_running_loop().call_later(LOOK_EVERY_S, self._look)

    def stop(self) -> None:
        """Look no longer. Safe twice."""
        if self._timer is not None:
            self._timer.cancel()

    def failed(self, sfu: str, reason: str) -> None:
        """A link to this SFU came to nothing."""
        self._watch.try_at(sfu, reason=reason)

    def welcomed(self) -> None:
        """Another router, or the same again, knows nothing of it yet."""
        if self._watch.missing:
            self._send(MediaState(missing=self._watch.missing))

    def _look(self) -> None:
        links = self._links()
        needs = self._needs(links)
        if needs.unmet:
            for link in links:
                self._watch.try_at(link.sfu, where=link.where)
        if self._watch.look(needs, now=time.monotonic()):
            missing = self._watch.missing
            self._send(MediaState(missing=missing))
            self._tell(MediaMissing(missing=missing, tried=self._watch.tried) if missing else MediaFound())
        self.start()


def media_of(link: MediaLink) -> LinkMedia:
    """What the watch wants to know of a link."""
    up, down = link.publish_transport, link.subscribe_transport
    far = next((each.far for each in (up, down) if each is not None and each.far is not None), None)
    return LinkMedia(
        sfu=link.sfu,
        inside=link.entered and link.alive,
        publishes=None if up is None else up.heard,
        subscribes=None if down is None else down.heard,
        where="" if far is None else f"UDP {f'[{far.ip}]' if ':' in far.ip else far.ip}:{far.port}",
    )
