"""The release that a room keeps to during a rollout."""

from __future__ import annotations

import pytest

from router.core.release import release_of
from shared.records import PlayerRecord, PublicationRecord, RoomPlacement

VERSIONS = {"old-1": "1.0", "old-2": "1.0", "new-1": "1.1", "new-2": "1.1"}


@pytest.mark.parametrize(
    ("published", "homes", "placed", "release"),
    [
        (["old-1", "old-2", "new-1"], ["new-1", "new-2"], "new-1", "1.0"),
        (["old-1", "new-1"], [], None, "1.1"),
        ([], ["old-1", "old-2", "new-1"], "new-1", "1.0"),
        (["gone"], ["", "old-1"], "new-1", "1.0"),
        ([], [], "old-1", "1.0"),
        ([], ["gone"], "old-1", "1.0"),
        ([], [], None, ""),
        (["gone"], ["gone"], "gone", ""),
    ],
    ids=[
        "most of what is published",
        "of equals the newer",
        "all are muted",
        "an unknown SFU says nothing",
        "just placed, and no player in it is known yet",
        "only players of unknown SFUs",
        "a new room",
        "nothing is known",
    ],
)
def test_the_release_of_a_room(published: list[str], homes: list[str], placed: str | None, release: str) -> None:
    publications = {
        f"t{n}": PublicationRecord(publication=f"t{n}", player="p", kind="audio", sfu=sfu)
        for n, sfu in enumerate(published)
    }
    players = {f"p{n}": PlayerRecord(player=f"p{n}", identity="x", sfu=sfu) for n, sfu in enumerate(homes)}
    placement = RoomPlacement(sfu=placed) if placed else None
    assert release_of(publications, players, placement, version=lambda sfu: VERSIONS.get(sfu, "")) == release
