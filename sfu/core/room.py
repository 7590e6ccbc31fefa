"""What one room has on this SFU: who publishes what, who wants what, who gets what. It decides whom to tell."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

from sfu.core.sdp.subscribe import Carried


@dataclass(slots=True)
class SfuRoom:
    """One room. A publication's id is the player's choice, so two players may want the same.

    It belongs to the session that the router knows it of, as that session's token says. Where no token names it, the
    first keeps it. A person who came back as a new session takes over what the old session left behind.
    """

    name: str
    players: set[str] = field(default_factory=set)
    carried: dict[str, Carried] = field(default_factory=dict)
    wants: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Per player: the publications it wants from this SFU, here or not."""
    gets: dict[str, set[str]] = field(default_factory=dict)
    """Per publication: the players it is forwarded to."""
    owners: dict[str, str] = field(default_factory=dict)
    """Per publication: whose it is, by the newest token that names it (ids change hands), else by who came first."""

    @property
    def empty(self) -> bool:
        """True when the room can be forgotten."""
        return not self.players

    def refuses(self, publication: str, *, player: str, generation: int, identity: str = "") -> str:
        """Why this player can't publish this here; empty when it can."""
        present = self.carried.get(publication)
        if present is None or self.squatter(publication, player=player, identity=identity):
            return ""
        if _are_strangers(present, player=player, identity=identity):
            return "another player of the room has a publication of that id"
        if present.generation > generation:
            return f"generation {present.generation} is here already"
        return ""

    def squatter(self, publication: str, *, player: str, identity: str = "") -> str:
        """The session whose copy has to end when `player` begins this publication, of whatever generation; or empty."""
        present = self.carried.get(publication)
        if present is None or self.owners.get(publication) != player:
            return ""
        return present.player if _are_strangers(present, player=player, identity=identity) else ""

    def granted(self, player: str, publications: tuple[str, ...]) -> None:
        """The player has shown a token that names these as its own; what an earlier one named counts no longer."""
        self._disown(player)
        self.owners.update(dict.fromkeys(publications, player))

    def offered(self, player: str, publications: Collection[str], *, named: Collection[str]) -> None:
        """The player now publishes these: they are its own, even while its connection is lost, unless they are
        another's. What it had before and no token of its has `named` is free."""
        self._disown(player, kept={*publications, *named})
        for publication in publications:
            self.owners.setdefault(publication, player)

    def stopped(self, player: str, publication: str) -> None:
        """The player has ended this of its own will: the id is free."""
        if self.owners.get(publication) == player:
            del self.owners[publication]

    def _disown(self, player: str, *, kept: Collection[str] = ()) -> None:
        for publication in [name for name, owner in self.owners.items() if owner == player and name not in kept]:
            del self.owners[publication]

    def carry(self, carried: Carried) -> Carried | None:
        """A publication is here; returns the older copy that it replaces."""
        older = self.carried.get(carried.publication)
        self.carried[carried.publication] = carried
        return older

    def end(self, publication: str, *, producer: int) -> frozenset[str]:
        """The publication has left this SFU; returns the players who want it, to be told.

        Nothing happens when a newer copy is here by now.
        """
        present = self.carried.get(publication)
        if present is None or present.producer != producer:
            return frozenset()
        del self.carried[publication]
        self.gets.pop(publication, None)
        return self.wanting(publication)

    def wanting(self, publication: str) -> frozenset[str]:
        """The players who want a publication."""
        return frozenset(player for player, wants in self.wants.items() if publication in wants)

    def wanted_by(self, player: str) -> dict[str, Carried]:
        """What a player wants and is here, in its order."""
        wants = self.wants.get(player, ())
        return {name: self.carried[name] for name in wants if name in self.carried}

    def getting(self, publication: str, player: str, gets: bool) -> int | None:
        """Forwarding to a player began or ended; returns the new count of consumers if it changed."""
        players = self.gets.setdefault(publication, set())
        before = len(players)
        if gets:
            players.add(player)
        else:
            players.discard(player)
        count = len(players)
        if not players:
            del self.gets[publication]
        return count if count != before else None

    def leave(self, player: str) -> None:
        """The player is gone. End its publications, and its `getting`, first."""
        self.players.discard(player)
        self.wants.pop(player, None)
        self._disown(player)


def _are_strangers(present: Carried, *, player: str, identity: str) -> bool:
    """Neither the same session nor two sessions of one person."""
    return present.player != player and (identity == "" or present.identity != identity)
