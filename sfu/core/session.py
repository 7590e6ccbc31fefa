"""How long a player's session lives when its websocket, or its media, is gone."""

from __future__ import annotations

from dataclasses import dataclass

WEBSOCKET_GRACE_S = 5.0
"""A session whose websocket broke waits this long for another `enter`, and as long as its media goes on ..."""
MAX_WITHOUT_WEBSOCKET_S = 3600.0
"""... but no longer than this: as long as a drain has by default. While its media flows, ending it helps no one: its
connections would be made again on a websocket that it can't open. It costs what it costs with a websocket, and a
drain ends it like any other."""
MEDIA_SILENCE_S = 5.0
"""Two of a browser's connectivity checks (each 1.6 to 2.5 s) are missing: the media is gone as well."""


@dataclass(slots=True)
class SessionLife:
    """The facts that decide whether a session goes on. Times are monotonic seconds."""

    websocket_lost_at: float | None = None
    """None while a websocket is open."""
    left: bool = False
    """The player said `leave-sfu`."""

    def over(self, *, now: float, media_heard_at: float | None) -> str:
        """Why the session is over; empty while it goes on. `media_heard_at`: last check or packet from the player."""
        if self.left:
            return "left"
        if self.websocket_lost_at is None:
            return ""
        gone_s = now - self.websocket_lost_at
        if gone_s >= MAX_WITHOUT_WEBSOCKET_S:
            return "websocket"
        if gone_s < WEBSOCKET_GRACE_S:
            return ""
        silent = media_heard_at is None or now - media_heard_at >= MEDIA_SILENCE_S
        return "silent" if silent else ""
