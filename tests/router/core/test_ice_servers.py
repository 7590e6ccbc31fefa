"""STUN and TURN servers for players, and what can't be one."""

from __future__ import annotations

import base64
import hashlib
import hmac

import pytest

from router.core.ice_servers import IceSettings, ice_servers_for
from shared.errors import BadSetting

TURN = "turn:turn.example:3478?transport=tcp"


def test_none_are_set_and_none_are_given() -> None:
    assert ice_servers_for(IceSettings(), "p1", now_at=0.0) == ()


def test_a_credential_is_what_coturn_computes_from_the_shared_secret() -> None:
    settings = IceSettings(turn_urls=(TURN,), turn_secret="north", turn_ttl_s=600)

    (server,) = ice_servers_for(settings, "p1", now_at=1_000.4)

    assert server.username == "1600:p1"
    digest = hmac.new(b"north", b"1600:p1", hashlib.sha1).digest()
    assert base64.b64decode(server.credential) == digest


def test_a_later_link_gets_a_later_credential() -> None:
    settings = IceSettings(turn_urls=(TURN,), turn_secret="north", turn_ttl_s=600)
    (first,), (second,) = (ice_servers_for(settings, "p1", now_at=at) for at in (0.0, 86_400.0))
    assert (first.username, second.username) == ("600:p1", "87000:p1")


def test_stun_servers_need_no_credential() -> None:
    (server,) = ice_servers_for(IceSettings(stun_urls=("stun:stun.example",)), "p1", now_at=0.0)
    assert (server.urls, server.username, server.credential) == (("stun:stun.example",), "", "")


@pytest.mark.parametrize(
    "url",
    [TURN, "turns:turn.example:443?transport=tcp", "turn:192.0.2.1", "turn:[2001:db8::1]:3478?transport=udp"],
)
def test_such_a_turn_url_is_taken(url: str) -> None:
    IceSettings(turn_urls=(url,), turn_secret="north").check()


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        (IceSettings(turn_urls=(TURN,)), "turn_secret"),
        (IceSettings(turn_urls=("turn://turn.example",), turn_secret="north"), "turn_urls"),
        (IceSettings(turn_urls=("turn.example:3478",), turn_secret="north"), "turn_urls"),
        (IceSettings(turn_urls=("stun:turn.example",), turn_secret="north"), "turn_urls"),
        (IceSettings(stun_urls=("stun:stun.example?transport=udp",)), "stun_urls"),
        (IceSettings(turn_urls=(TURN,) * 9, turn_secret="north"), "turn_urls"),
        (IceSettings(turn_ttl_s=1.0), "turn_ttl_s"),
    ],
)
def test_what_no_browser_or_server_would_take_is_refused_by_name(settings: IceSettings, named: str) -> None:
    with pytest.raises(BadSetting) as refused:
        settings.check()
    assert refused.value.setting == named
