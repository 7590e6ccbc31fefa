"""Records: a missing status is ONLINE, an unknown one is not placeable, nothing a newer version wrote is lost (D1)."""

from __future__ import annotations

import contextlib

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.errors import BadRecord
from shared.records import (
    Drain,
    PlayerRecord,
    PublicationRecord,
    RoomPlacement,
    RouterRecord,
    SfuState,
    SfuStatus,
    read_record,
    sfu_id,
    status_of,
    version_of,
    write_record,
)
from tests.shared.golden import pinned


@pytest.mark.parametrize(
    ("raw", "status"),
    [
        (b'{"address":"a"}', SfuStatus.ONLINE),
        (b'{"address":"a","status":null}', SfuStatus.ONLINE),
        (b'{"address":"a","status":"ONLINE"}', SfuStatus.ONLINE),
        (b'{"address":"a","status":"CORDONED"}', SfuStatus.CORDONED),
        (b'{"address":"a","status":"TERMINATING"}', SfuStatus.TERMINATING),
        (b'{"address":"a","status":"MELTING"}', SfuStatus.UNKNOWN),
        (b'{"address":"a","status":"online"}', SfuStatus.UNKNOWN),
        (b'{"address":"a","status":""}', SfuStatus.UNKNOWN),
        (b'{"address":"a","status":"UNKNOWN"}', SfuStatus.UNKNOWN),
    ],
)
def test_a_missing_status_is_online_and_an_unknown_one_is_no_status_of_ours(raw: bytes, status: SfuStatus) -> None:
    assert status_of(read_record(SfuState, raw)) is status


def test_an_unknown_status_survives_a_rewrite() -> None:
    raw = b'{"address":"a","status":"MELTING"}'
    assert write_record(read_record(SfuState, raw)) == raw


@pytest.mark.parametrize("kind", [SfuState, PlayerRecord, PublicationRecord, RouterRecord])
def test_fields_of_a_newer_version_survive_a_rewrite_by_this_one(kind: type[SfuState]) -> None:
    name = {SfuState: "sfu-state"}.get(kind, "")
    fields = (
        msgspec.json.decode(pinned()[f"record.{name}.full"])
        if name
        else {"player": "p", "identity": "i", "publication": "b", "kind": "video", "router": "r"}
    )
    fields = {key: value for key, value in fields.items() if key in kind.__struct_fields__}
    later = {"later": {"list": [], "object": {}, "big": 2**60 + 1, "null": None}, "also": "é"}
    record = read_record(kind, msgspec.json.encode({**fields, **later}))
    changed = msgspec.structs.replace(record, **{kind.__struct_fields__[0]: "new"})
    written = msgspec.json.decode(write_record(changed))
    assert {key: written[key] for key in later} == later
    assert written[kind.__struct_fields__[0]] == "new"
    assert "extra" not in written


def test_what_a_record_says_of_itself_is_not_overridden_by_fields_called_extra() -> None:
    record = read_record(SfuState, b'{"address":"a","extra":{"address":"evil","status":"ONLINE"},"status":"CORDONED"}')
    assert record.extra is None
    assert status_of(record) is SfuStatus.CORDONED


def test_a_program_that_knows_no_status_reads_the_rest() -> None:
    """What version 0 programs, which know address and load only, see of a record of ours (D9)."""

    class OldState(msgspec.Struct):
        address: str
        load: float | None = None

    raw = write_record(SfuState(address="a", load=0.5, status="CORDONED", drain=Drain(by="signal"), incarnation=3))
    assert msgspec.json.decode(raw, type=OldState) == OldState("a", 0.5)


def test_load_is_unknown_until_it_is_reported_and_unknown_is_not_zero() -> None:
    assert read_record(SfuState, b'{"address":"a"}').load is None
    assert read_record(SfuState, b'{"address":"a","load":0}').load == 0.0


def test_an_old_record_is_identified_by_its_address() -> None:
    assert sfu_id(SfuState(address="ws://a")) == "ws://a"
    assert sfu_id(SfuState(address="ws://a", sfu="sfu-1")) == "sfu-1"


def test_states_are_ordered_by_incarnation_and_then_revision() -> None:
    states = [SfuState(address="a", incarnation=i, revision=r) for i, r in ((2, 0), (1, 9), (1, 10), (0, 99))]
    assert [version_of(state) for state in sorted(states, key=version_of)] == [(0, 99), (1, 9), (1, 10), (2, 0)]


@pytest.mark.parametrize(
    "raw",
    [b"", b"null", b"7", b"[]", b"{}", b'{"address":7}', b'{"address":"a","load":"much"}', b"\xff", b"{" * 9999,
     b'{"address":"a","drain":[]}', b'{"address":"a","revision":18446744073709551616}',
     b'{"address":"a","incarnation":1.5}'],
)  # fmt: skip
def test_a_record_of_the_wrong_shape_is_a_bad_record_that_names_its_key(raw: bytes) -> None:
    with pytest.raises(BadRecord) as caught:
        read_record(SfuState, raw, key="{f}:sfu:a")
    assert caught.value.key == "{f}:sfu:a"
    assert len(str(caught.value)) < 300


@given(raw=st.binary() | st.text())
@pytest.mark.parametrize("kind", [SfuState, RoomPlacement])
def test_any_bytes_are_a_record_or_a_bad_record(kind: type[SfuState], raw: bytes | str) -> None:
    with contextlib.suppress(BadRecord):
        write_record(read_record(kind, raw))


deep = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=10,
)


@given(extra=st.dictionaries(st.text(max_size=8).filter(lambda name: name not in SfuState.__struct_fields__), deep))
def test_any_unknown_fields_come_back_where_they_were(extra: dict[str, object]) -> None:
    raw = msgspec.json.encode({**extra, "address": "a", "load": 0.5})
    again = write_record(read_record(SfuState, raw))
    assert msgspec.json.decode(again) == msgspec.json.decode(raw)
