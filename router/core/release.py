"""Which release a room runs on, for `keep_version`: what its tracks go through, else where its players are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping

from shared.records import PlayerRecord, PublicationRecord, RoomPlacement


def release_of(
    publications: Mapping[str, PublicationRecord],
    players: Mapping[str, PlayerRecord],
    placement: RoomPlacement | None,
    *,
    version: Callable[[str], str],
) -> str:
    """The release of most of its publications; of most of its players while there are none; of the SFU it was placed on
    while no players are known, since those that have just come may not be in Redis yet. Empty: any will do.

    `version` tells an SFU's release, empty when it is not known.
    """
    carrying = (record.sfu for record in publications.values())
    homes = (record.sfu for record in players.values())
    placed = (placement.sfu,) if placement else ()
    return next(filter(None, (_most_common(map(version, sfus)) for sfus in (carrying, homes, placed))), "")


def _most_common(versions: Iterable[str]) -> str:
    """The most common release; of equals the one that sorts last, which tends to be the newer. Empty: none."""
    counts = Counter(version for version in versions if version)
    return max(counts, key=lambda version: (counts[version], version), default="")
