"""Bounds on what players may say: everything from a websocket is hostile until it has passed here."""

from __future__ import annotations

import re
from collections.abc import Iterable

import msgspec

from router.core.plan import MAX_EXCLUDES
from router.core.room import MAX_PUBLICATIONS, Room
from router.core.sessions import Session
from shared.messages.codes import Refusal
from shared.messages.player import Publish
from shared.records import PublicationRecord

MAX_WORD = 64
"""Longest request id, source, or the like [characters]."""
MAX_REASON = 200
"""Longest reason [characters]; every router and page shows it."""
MAX_SFU_ID = 128
MAX_NUMBER = 2**53
_PUBLICATION = re.compile(r"[A-Za-z0-9_-]{1,64}\Z")
_KINDS = frozenset({"audio", "video"})


class Rejection(msgspec.Struct, frozen=True):
    """The answer is no; `code` is a `Refusal` or an error code."""

    code: str
    message: str = ""


def word(text: str, *, most: int = MAX_WORD) -> str:
    """The text, cut to a bound."""
    return text[:most]


def excluded(sfus: Iterable[str]) -> tuple[str, ...]:
    """An exclude list, cut to a bound."""
    return tuple(sfu for sfu, _ in zip(sfus, range(MAX_EXCLUDES), strict=False) if len(sfu) <= MAX_SFU_ID)


def version_named(incarnation: int, revision: int) -> tuple[int, int]:
    """A version as a player names it; one that is out of bounds counts as none."""
    if 0 <= incarnation <= MAX_NUMBER and 0 <= revision <= MAX_NUMBER:
        return (incarnation, revision)
    return (0, 0)


def publication(message: Publish, session: Session, room: Room, *, known_sfu: bool) -> PublicationRecord | Rejection:
    """The record for `publish`, or why not."""
    bad = _shape(message.publication, message.kind, message.source, message.generation)
    if bad is not None:
        return bad
    if not session.claims.publish:
        return Rejection(Refusal.NOT_ALLOWED, "the token grants no publishing")
    if not known_sfu:
        return Rejection(Refusal.UNKNOWN_SFU, word(message.sfu))
    record = PublicationRecord(
        publication=message.publication,
        player=session.player,
        kind=message.kind,
        source=message.source,
        sfu=message.sfu,
        generation=message.generation,
    )
    known = room.publications.get(message.publication)
    if known is None:
        if len(room.publications_of(session.player)) >= MAX_PUBLICATIONS:
            return Rejection(Refusal.TOO_MANY, f"at most {MAX_PUBLICATIONS} publications a player")
        if not room.kept_ids.may_publish(message.publication, session.claims.identity):
            return Rejection(Refusal.NOT_ALLOWED, "the id is another player's, who has just come back")
        return record
    if known.player != session.player and not room.is_of(known.player, session.claims.identity):
        return Rejection(Refusal.NOT_ALLOWED, "another player has a publication of this id")
    if known.generation > message.generation or (known.generation == message.generation and known != record):
        return Rejection(Refusal.STALE, f"generation {known.generation} stands")
    return record


def resumed_publications(
    said: Iterable[PublicationRecord], session: Session, *, known_sfus: Iterable[str]
) -> list[PublicationRecord]:
    """What a resuming player says it publishes; entries out of bounds are left out."""
    if not session.claims.publish:
        return []
    known = set(known_sfus)
    kept = []
    for record, _ in zip(said, range(MAX_PUBLICATIONS), strict=False):
        if _shape(record.publication, record.kind, record.source, record.generation) is None and record.sfu in known:
            kept.append(msgspec.structs.replace(record, player=session.player, extra=None))
    return kept


def _shape(publication_id: str, kind: str, source: str, generation: int) -> Rejection | None:
    if not _PUBLICATION.match(publication_id):
        return Rejection("bad-message", "a publication id is 1 to 64 of [A-Za-z0-9_-]")
    if kind not in _KINDS:
        return Rejection("bad-message", "kind is audio or video")
    if len(source) > MAX_WORD:
        return Rejection("bad-message", f"source is longer than {MAX_WORD} characters")
    if not 1 <= generation <= MAX_NUMBER:
        return Rejection("bad-message", "generation counts from 1")
    return None
