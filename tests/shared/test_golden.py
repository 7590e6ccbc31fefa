"""Version 1 on the wire and in Redis stays what it is (D9): pinned bytes are read, and written the same again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from shared.messages import link
from shared.records import SfuState
from tests.shared.golden import FOLDER, Kind, defaults_of, kinds, missing

KINDS = list(kinds())
FILES = [(kind, path) for kind in KINDS for path in kind.files()]


@pytest.mark.parametrize(("kind", "path"), FILES, ids=[path.stem for _, path in FILES])
def test_pinned_bytes_are_read_and_written_the_same_again(kind: Kind, path: Path) -> None:
    raw = path.read_bytes()
    value = kind.decode(raw)
    assert isinstance(value, kind.type)
    assert kind.encode(value) == raw


def test_every_message_and_record_is_pinned_with_all_its_fields() -> None:
    assert not missing(), "run: python -m tests.shared.golden"


def test_every_pinned_file_belongs_to_a_message_or_record_of_today() -> None:
    known = {path.name for kind in KINDS for path in (*kind.files(), *kind.defaults_files())}
    assert {path.name for path in FOLDER.iterdir()} == known


@pytest.mark.parametrize("kind", KINDS, ids=[kind.name for kind in KINDS])
def test_a_field_that_is_left_out_means_what_it_always_meant(kind: Kind) -> None:
    today = defaults_of(kind)
    for path in kind.defaults_files():
        pinned = msgspec.json.decode(path.read_bytes())
        assert _as_far_as(pinned, today) == pinned


def _as_far_as(pinned: Any, today: Any) -> Any:
    """Today's value without the fields that were added since, within a record in a record as well."""
    if not isinstance(pinned, dict) or not isinstance(today, dict):
        return today
    return {name: _as_far_as(value, today.get(name, "no such field")) for name, value in pinned.items()}


def test_a_message_belongs_to_a_direction() -> None:
    """Otherwise nobody could read it."""
    alone = {kind.name for kind in KINDS if not kind.name.startswith("record.") and not kind.readers()}
    assert alone == {"media.track-offer"}


def test_the_state_within_a_link_message_is_the_state() -> None:
    (kind,) = [kind for kind in KINDS if kind.name == "link.hello"]
    hello = kind.decode((FOLDER / "link.hello.full.json").read_bytes())
    state = link.unpack_state(hello.state)
    assert isinstance(state, SfuState)
    assert link.pack_state(state) == hello.state
