"""Errors keep their facts, and every one of them says a sentence."""

from __future__ import annotations

import pytest

from shared import errors
from shared.embedded import EmbeddedFailed
from shared.errors import (
    BadInput,
    BadMessage,
    BadPacket,
    BadRecord,
    BadSdp,
    BadSetting,
    BadToken,
    Fenced,
    NameTaken,
    NoPort,
    Refused,
    SluiceError,
    StoreUnavailable,
    UnknownMessage,
    WrongProtocol,
)

EXAMPLES: list[SluiceError] = [
    BadMessage(direction="player-to-router", detail="no tag"),
    UnknownMessage(direction="player-to-router", tag="teleport"),
    WrongProtocol(theirs=3, oldest=1, newest=2),
    NameTaken(sfu="sfu-1"),
    BadToken(reason="expired"),
    BadRecord(key="{f}:sfu:a", detail="no address"),
    BadSdp(detail="no fingerprint"),
    BadPacket(protocol="rtp", detail="too short"),
    BadSetting(setting="port", detail="must be positive"),
    Refused("no-sfu", "none is alive"),
    Fenced(token=3, newest=4),
    StoreUnavailable(operation="read_room", detail="no answer"),
    NoPort(host="127.0.0.1", least=1, most=2),
    EmbeddedFailed(binary="/usr/bin/redis-server", detail="did not come up", log="one\nlast line"),
]


@pytest.mark.parametrize("error", EXAMPLES, ids=lambda error: type(error).__name__)
def test_an_error_says_its_facts_in_a_sentence(error: SluiceError) -> None:
    sentence = str(error)
    facts = {name: value for name, value in vars(error).items() if name != "log" and value}
    assert all(str(value) in sentence for value in facts.values())


def test_codes_are_stable_words() -> None:
    kinds = [value for value in vars(errors).values() if isinstance(value, type) and issubclass(value, SluiceError)]
    assert {kind.__name__: kind.code for kind in kinds} == {
        "SluiceError": "internal",
        "BadInput": "bad-input",
        "BadMessage": "bad-message",
        "UnknownMessage": "unknown-message",
        "WrongProtocol": "wrong-protocol",
        "NameTaken": "name-taken",
        "BadToken": "bad-token",
        "BadRecord": "bad-record",
        "BadSdp": "bad-sdp",
        "BadPacket": "bad-packet",
        "BadSetting": "bad-setting",
        "Refused": "internal",
        "Fenced": "internal",
        "StoreUnavailable": "store-unavailable",
        "NoRedis": "no-redis",
        "NoPort": "no-port",
    }
    assert Refused("no-sfu").code == "no-sfu"


def test_what_peers_send_is_bad_input_and_an_outage_is_not() -> None:
    bad = {type(error) for error in EXAMPLES if isinstance(error, BadInput)}
    assert bad == {
        BadMessage,
        UnknownMessage,
        NameTaken,
        WrongProtocol,
        BadToken,
        BadRecord,
        BadSdp,
        BadPacket,
        BadSetting,
    }


def test_the_last_line_of_a_server_that_failed_is_in_its_sentence() -> None:
    assert str(EXAMPLES[-1]).endswith("last line")


class Lost(SluiceError):
    """An error of a test."""

    code = "lost"

    what: str
    where: str = "anywhere"


class LostForGood(Lost):
    """One that adds no fact."""


def test_the_facts_that_an_error_declares_are_what_its_constructor_takes() -> None:
    assert (Lost(what="a").where, LostForGood(what="a", where="b").where) == ("anywhere", "b")
    for facts in ({}, {"what": "a", "when": "now"}):
        with pytest.raises(TypeError):
            Lost(**facts)
