"""Who else is in the room."""

from __future__ import annotations

from collections.abc import Iterable

from player.core.events import PlayerCame, PlayerChanged, PlayerEvent, PlayerWent
from shared.records import PlayerRecord


class Roster:
    """The other players by session id. `me` is our own session id."""

    def __init__(self) -> None:
        self.me = ""
        self.players: dict[str, PlayerRecord] = {}

    def snapshot(self, players: Iterable[PlayerRecord]) -> list[PlayerEvent]:
        """The whole room, newly told."""
        there = {record.player: record for record in players}
        went = self.left([session for session in self.players if session not in there])
        return [*went, *self.changed(there.values())]

    def changed(self, players: Iterable[PlayerRecord]) -> list[PlayerEvent]:
        """Players that are new or whose record is."""
        events: list[PlayerEvent] = []
        for record in players:
            known = self.players.get(record.player)
            if record.player == self.me or record == known:
                continue
            self.players[record.player] = record
            events.append(PlayerCame(player=record) if known is None else PlayerChanged(player=record))
        return events

    def left(self, sessions: Iterable[str]) -> list[PlayerEvent]:
        """Sessions that have ended."""
        gone = [self.players.pop(session, None) for session in sessions]
        return [PlayerWent(player=record) for record in gone if record is not None]
