"""Version 1 on the wire and in Redis stays what it is (D9): pinned bytes are read, and written the same again."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from shared.messages import link
from shared.records import SfuState
from tests.shared.golden import FILES, FOLDER, Kind, defaults_of, kinds, missing, path_of, pinned

KINDS = list(kinds())
EXAMPLES = [pytest.param(kind, raw, id=name) for kind in KINDS for name, raw in kind.examples().items()]


@pytest.mark.parametrize(("kind", "raw"), EXAMPLES)
def test_pinned_bytes_are_read_and_written_the_same_again(kind: Kind, raw: bytes) -> None:
    value = kind.decode(raw)
    assert isinstance(value, kind.type)
    assert kind.encode(value) == raw


def test_every_message_and_record_is_pinned_with_all_its_fields() -> None:
    assert not missing(), "run: python -m tests.shared.golden"


def test_every_pinned_line_belongs_to_a_message_or_record_of_today() -> None:
    assert set(pinned()) == {name for kind in KINDS for name in kind.examples() | kind.defaults()}
    assert set(FOLDER.iterdir()) == {path_of(which) for which in FILES}


@pytest.mark.parametrize("kind", KINDS, ids=[kind.name for kind in KINDS])
def test_a_field_that_is_left_out_means_what_it_always_meant(kind: Kind) -> None:
    today = defaults_of(kind)
    for raw in kind.defaults().values():
        before = msgspec.json.decode(raw)
        assert _as_far_as(before, today) == before


def _as_far_as(pinned: Any, today: Any) -> Any:
    """Today's value without the fields that were added since, within a record in a record as well."""
    if not isinstance(pinned, dict) or not isinstance(today, dict):
        return today
    return {name: _as_far_as(value, today.get(name, "no such field")) for name, value in pinned.items()}


def test_a_message_belongs_to_a_direction() -> None:
    """Otherwise no program could read it."""
    alone = {kind.name for kind in KINDS if not kind.name.startswith("record.") and not kind.readers()}
    assert alone == {"media.track-offer"}


def test_the_state_within_a_link_message_is_the_state() -> None:
    (kind,) = [kind for kind in KINDS if kind.name == "link.hello"]
    hello = kind.decode(pinned()["link.hello.full"])
    state = link.unpack_state(hello.state)
    assert isinstance(state, SfuState)
    assert link.pack_state(state) == hello.state
