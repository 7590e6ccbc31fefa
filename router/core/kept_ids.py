"""Ids of publications whose session was replaced: they wait for the person, who has come back as a new session."""

from __future__ import annotations

MAX_KEPT = 256
"""In one room; beyond that the oldest are free. A person has at most 32, and publishes them again within seconds."""


class KeptIds:
    """Whose an id is that no session of the room publishes just now."""

    def __init__(self) -> None:
        self._identity: dict[str, str] = {}

    def keep(self, publication: str, identity: str) -> None:
        """For that person, until it is published again or the person has left."""
        self._identity[publication] = identity
        while len(self._identity) > MAX_KEPT:
            del self._identity[next(iter(self._identity))]

    def published(self, publication: str) -> None:
        """It has a publisher again."""
        self._identity.pop(publication, None)

    def free(self, identity: str) -> None:
        """The person has left."""
        for publication in self.of(identity):
            del self._identity[publication]

    def of(self, identity: str) -> list[str]:
        """What waits for that person."""
        return [publication for publication, person in self._identity.items() if person == identity]

    def may_publish(self, publication: str, identity: str) -> bool:
        """It waits for that person, or for none."""
        return self._identity.get(publication, identity) == identity
