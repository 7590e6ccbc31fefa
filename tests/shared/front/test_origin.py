"""Which pages may open a websocket."""

from __future__ import annotations

import pytest

from shared.errors import BadSetting
from shared.front.origin import allows, check_origins

HOSTS = ("calls.example.com:7000", "https://r2.example.com", "ws://127.0.0.1:7000", "[2001:db8::1]:7000")


@pytest.mark.parametrize(
    "origin",
    [
        "https://calls.example.com",
        "http://calls.example.com:7080",
        "https://R2.example.com",
        "http://localhost:7080",
        "http://127.0.0.1:1",
        "http://[::1]:7080",
        "http://[2001:db8::1]:7080",
    ],
)
def test_a_page_of_a_host_of_ours_may(origin: str) -> None:
    assert allows(origin, listed=(), hosts=HOSTS)


@pytest.mark.parametrize(
    "origin",
    [
        "https://evil.example",
        "https://calls.example.com.evil.example",
        "https://evil.example/calls.example.com",
        "https://calls.example.com@evil.example",
        "https://xcalls.example.com",
        "null",
        "",
        "file://",
        "http://[",
        "https://" + "a" * 600,
    ],
)
def test_no_other_page_may(origin: str) -> None:
    assert not allows(origin, listed=("https://app.example.org", "https://*.example.net"), hosts=HOSTS)


def test_a_page_behind_a_proxy_that_asks_with_another_host_is_let_in_by_the_announced_address() -> None:
    """nginx asks with the upstream's name as `Host` unless told otherwise, and leaves the standard port out."""
    assert allows("https://calls.example.com", listed=(), hosts=("127.0.0.1:7000", "wss://calls.example.com:443"))
    assert allows("https://calls.example.com:4430", listed=(), hosts=("calls.example.com",))
    assert not allows("https://calls.example.com", listed=(), hosts=("127.0.0.1:7000",))


@pytest.mark.parametrize(
    ("origin", "may"),
    [
        ("https://app.example.org", True),
        ("http://app.example.org", False),
        ("https://app.example.org:8443", False),
        ("https://a.b.example.net", True),
        ("https://example.net", False),
        ("https://evilexample.net", False),
        ("http://a.example.net", False),
    ],
)
def test_a_listed_origin_is_meant_exactly_and_a_star_stands_for_names_below(origin: str, may: bool) -> None:
    assert allows(origin, listed=("https://app.example.org", "https://*.example.net"), hosts=()) is may


def test_a_star_alone_is_all_pages() -> None:
    assert allows("null", listed=("*",), hosts=())


@pytest.mark.parametrize("origin", ["app.example.org", "https://app.example.org/", "https://*", "ws://a", ""])
def test_an_origin_that_no_browser_sends_is_no_setting(origin: str) -> None:
    with pytest.raises(BadSetting, match="allowed_origins"):
        check_origins([origin])
