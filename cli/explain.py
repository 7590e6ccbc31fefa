"""`sluice explain ROOM|PLAYER`: why a room or a player is where it is, as the fleet's history tells it (P5)."""

from __future__ import annotations

from collections.abc import Iterable

from cli.last import check_last
from cli.output import out, print_json
from cli.story import story
from operators.config import HERE, Where
from operators.core.since import since_words
from operators.shell.operations import open_store
from operators.shell.target import find_target
from shared.errors import Refused
from shared.keys import PLACEMENTS_KEPT
from shared.placement_records import PlacementRecord
from shared.store.store import Store

NOTHING = "not-placed"


async def explain(who: str, /, *, where: Where = HERE, last: int = 5, json: bool = False) -> None:
    """Tell why a room or a player is where it is: which SFUs were eligible, which were not and why, what decided;
    newest first.

    For example:

        sluice explain kitchen

        sluice explain alice --last 1

        sluice explain kitchen --json

    Parameters
    ----------
    who
        A room, or a player: its identity, its session id or, while it is connected, the name that pages show.
    last
        How many placements.
    json
        Print `{"who": …, "placements": […], "known_since_at": …}`.
    """
    check_last(last)
    async with open_store(find_target(where)) as store:
        records, since_at = await told_of(store, who, last=last), await store.known_since()
        names = {} if json else await names_in(store, {record.room for record in records})
    if json:
        print_json({"who": who, "placements": records, "known_since_at": since_at})
    else:
        out.print(story(who, records, names=names))
        out.print(since_words(since_at))


async def names_in(store: Store, rooms: Iterable[str]) -> dict[str, str]:
    """The names of the players that are in these rooms, by session id: the history has identities only."""
    return {player: who.name for room in rooms for player, who in (await store.read_room(room)).players.items()}


async def told_of(store: Store, who: str, *, last: int) -> list[PlacementRecord]:
    """The last placements of the room of that name and of the player of that id, newest first.

    When there is neither, those of the players that are shown by that name. Raises `Refused` when the history has none.
    """
    of_room = await store.read_placements(last, room=who)
    of_player = await store.read_placements(last, player=who)
    if not of_room or not of_player:
        found = of_room or of_player
    else:  # a player may be called like a room: the history's own order decides
        wanted = {each.id for each in (*of_room, *of_player)}
        found = [each for each in await store.read_placements(PLACEMENTS_KEPT) if each.id in wanted][:last]
    found = found or (await _shown_as(store, who))[:last]
    if not found:
        detail = (
            f"no room or player {who!r} among the last {PLACEMENTS_KEPT} placements, and "
            f"{since_words(await store.known_since())}; a player who has left is found by "
            "its identity, which its token names, as do `sluice explain ROOM` and GET /api/placements"
        )
        raise Refused(NOTHING, detail)
    return found


async def _shown_as(store: Store, name: str) -> list[PlacementRecord]:
    """The placements of all connected players of that name: the history has no names, but the rooms have."""
    records = await store.read_placements(PLACEMENTS_KEPT)
    players: set[tuple[str, str]] = set()
    for room in dict.fromkeys(record.room for record in records):
        there = (await store.read_room(room)).players.values()
        players |= {(room, player.identity) for player in there if player.name == name}
    return [record for record in records if (record.room, record.identity) in players]
