"""What one room has on this SFU: who publishes what, who wants what, who gets what. It decides whom to tell."""

from __future__ import annotations

from dataclasses import dataclass, field

from sfu.core.sdp.subscribe import Carried


@dataclass(slots=True)
class SfuRoom:
    """One room. A publication's id is the player's choice, so two players may want the same: the first keeps it.

    A person who came back as a new session takes over what the old session left behind: the token says who.
    """

    name: str
    players: set[str] = field(default_factory=set)
    carried: dict[str, Carried] = field(default_factory=dict)
    wants: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Per player: the publications it wants from this SFU, here or not."""
    gets: dict[str, set[str]] = field(default_factory=dict)
    """Per publication: the players it is forwarded to."""

    @property
    def empty(self) -> bool:
        """True when the room can be forgotten."""
        return not self.players

    def refuses(self, publication: str, *, player: str, generation: int, identity: str = "") -> str:
        """Why this player can't publish this here; empty when it can."""
        present = self.carried.get(publication)
        same_person = present is not None and identity != "" and present.identity == identity
        if present is not None and present.player != player and not same_person:
            return "another player of the room has a publication of that id"
        if present is not None and present.generation > generation:
            return f"generation {present.generation} is here already"
        return ""

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
