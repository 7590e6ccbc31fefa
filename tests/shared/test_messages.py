"""Frames from the network: what can't be read is one of two errors, whatever it is."""

from __future__ import annotations

import contextlib
import json
import typing

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shared.errors import BadMessage, UnknownMessage
from shared.messages import link, media, player
from shared.messages.base import Message, Reader, encode, kebab
from tests.budget import examples
from tests.shared.golden import READERS, pinned

readers = pytest.mark.parametrize("reader", [reader for reader, _ in READERS], ids=lambda reader: reader.direction)


def test_names_are_in_kebab_case_as_users_see_them() -> None:
    assert [kebab(name) for name in ("CordonedSfu", "Exit", "RequestSfu", "Ping")] == [
        "cordoned-sfu",
        "exit",
        "request-sfu",
        "ping",
    ]
    assert encode(player.CordonedSfu(sfu="a")) == '{"type":"cordoned-sfu","sfu":"a"}'


@readers
def test_a_tag_of_a_newer_version_is_unknown_and_not_bad(reader: Reader[object]) -> None:
    with pytest.raises(UnknownMessage) as caught:
        reader.read('{"type":"teleport","to":{"x":[1,2]}}')
    assert caught.value.tag == "teleport"
    assert caught.value.direction == reader.direction


@readers
def test_an_endless_tag_is_cut_short(reader: Reader[object]) -> None:
    with pytest.raises(UnknownMessage) as caught:
        reader.read('{"type":"' + "x" * 50_000 + '"}')
    assert len(caught.value.tag) == 64


def test_a_withdrawn_tag_is_never_used_again() -> None:
    """`bye` was in version 1 and sent by no program; a router that knows it would unregister the SFU."""
    assert "bye" not in link.to_router.tags | link.to_sfu.tags


def test_a_message_of_another_direction_is_unknown_here() -> None:
    with pytest.raises(UnknownMessage):
        player.to_router.read(encode(player.Pong(n=1)))


@readers
@pytest.mark.parametrize(
    "frame",
    [
        "",
        "null",
        "[]",
        '"join"',
        "{}",
        '{"type":null}',
        '{"type":5}',
        '{"type":{"type":"join"}}',
        "{" * 20_000,
        "[" * 200_000,
        '{"type":"ping"' * 3000,
        b"\xff\xfe\x00",
        b'{"type":"\xff"}',
        b"\x00" * 1000,
        "NaN",
    ],
)
def test_what_is_no_message_is_bad(reader: Reader[object], frame: str | bytes) -> None:
    with pytest.raises(BadMessage) as caught:
        reader.read(frame)
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize(
    "frame",
    [
        '{"type":"join"}',
        '{"type":"join","token":5}',
        '{"type":"join","token":"t","presence":[]}',
        '{"type":"join","token":"t","exclude":[1]}',
        '{"type":"publish","publication":"p","kind":"video","sfu":"s","generation":"2"}',
        '{"type":"publish","publication":"p","kind":"video","sfu":"s","generation":1e400}',
        '{"type":"ping","n":99999999999999999999999999}',
    ],
)
def test_a_known_message_with_wrong_fields_is_bad(frame: str) -> None:
    with pytest.raises(BadMessage):
        player.to_router.read(frame)


@readers
@given(frame=st.one_of(st.text(), st.binary()))
def test_any_frame_is_a_message_or_one_of_two_errors(reader: Reader[object], frame: str | bytes) -> None:
    with contextlib.suppress(BadMessage, UnknownMessage):
        reader.read(frame)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


@readers
@settings(max_examples=examples(50))
@given(data=st.data())
def test_any_fields_under_a_known_tag_are_a_message_or_one_of_two_errors(
    reader: Reader[object], data: st.DataObject
) -> None:
    union = next(union for each, union in READERS if each is reader)
    kind = data.draw(st.sampled_from(typing.get_args(union)))
    names = st.sampled_from(kind.__struct_fields__ or ("x",)) | st.text(max_size=5)
    fields = data.draw(st.dictionaries(names, json_values, max_size=6))
    # The standard library's encoder writes whole numbers of any size, as a hostile peer may.
    frame = json.dumps({**fields, "type": kind.__struct_config__.tag})
    with contextlib.suppress(BadMessage, UnknownMessage):
        message = reader.read(frame)
        assert type(message) is kind
        assert isinstance(message, Message)
        assert reader.read(encode(message)) == message


@given(data=st.data())
def test_a_pinned_frame_with_any_bytes_changed_is_a_message_or_one_of_two_errors(data: st.DataObject) -> None:
    frame = bytearray(pinned()["player.welcome.full"])
    for _ in range(data.draw(st.integers(1, 4))):
        frame[data.draw(st.integers(0, len(frame) - 1))] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, len(frame)))
    for damaged in (bytes(frame), bytes(frame[:cut])):
        with contextlib.suppress(BadMessage, UnknownMessage):
            encode(player.to_player.read(damaged))


def test_unknown_fields_are_ignored() -> None:
    assert player.to_router.read('{"type":"ping","n":3,"later":{"a":[]}}') == player.Ping(n=3)


def test_a_binary_frame_is_read_as_text() -> None:
    assert player.to_router.read(b'{"type":"leave"}') == player.Leave()


def test_the_error_of_a_request_is_called_error_on_the_wire() -> None:
    assert (
        encode(player.Failed(code="no-sfu", retry_after_s=1.0))
        == '{"type":"error","code":"no-sfu","retry_after_s":1.0}'
    )
    assert media.from_sfu.read('{"type":"error","code":"sfu-cordoned"}') == player.Failed(code="sfu-cordoned")


def test_a_state_with_fields_of_a_newer_sfu_passes_a_link_unchanged() -> None:
    raw = b'{"address":"ws://a","later":{"list":[],"big":1152921504606846977}}'
    message = link.to_router.read(b'{"type":"sfu-report","state":' + raw + b"}")
    assert isinstance(message, link.SfuReport)
    state = link.unpack_state(message.state)
    assert state.extra == {"later": {"list": [], "big": 2**60 + 1}}
    assert msgspec.json.decode(link.pack_state(state)) == msgspec.json.decode(raw)
