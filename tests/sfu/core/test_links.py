"""Which router an SFU links with, and how long it waits."""

from __future__ import annotations

import random

import pytest

from sfu.core.links import FAILED_FOR_S, REFUSED_FOR_S, choose_router, link_url, retry_delay_s

ROUTERS = ("ws://a", "ws://b", "ws://c")
RNG = random.Random(1)


def test_no_router_is_linked_twice() -> None:
    chosen = {
        choose_router(ROUTERS, in_use={"ws://a"}, failed_at={}, refused_at={}, now=0.0, rng=RNG) for _ in range(50)
    }
    assert chosen == {"ws://b", "ws://c"}
    assert choose_router(ROUTERS, in_use=set(ROUTERS), failed_at={}, refused_at={}, now=0.0, rng=RNG) is None


def test_one_that_failed_lately_comes_last_and_the_longest_ago_of_them_first() -> None:
    failed = {"ws://a": 10.0, "ws://b": 5.0}
    assert choose_router(ROUTERS, in_use=set(), failed_at=failed, refused_at={}, now=11.0, rng=RNG) == "ws://c"
    assert choose_router(ROUTERS, in_use={"ws://c"}, failed_at=failed, refused_at={}, now=11.0, rng=RNG) == "ws://b"
    later = 10.0 + FAILED_FOR_S
    assert choose_router(("ws://a",), in_use=set(), failed_at=failed, refused_at={}, now=later, rng=RNG) == "ws://a"


def test_one_that_does_not_speak_our_version_is_left_alone_for_a_while() -> None:
    refused = {"ws://a": 10.0}
    chosen = {
        choose_router(ROUTERS, in_use=set(), failed_at={}, refused_at=refused, now=11.0, rng=RNG) for _ in range(50)
    }
    assert chosen == {"ws://b", "ws://c"}
    alone = ("ws://a",)
    assert choose_router(alone, in_use=set(), failed_at=refused, refused_at=refused, now=11.0, rng=RNG) is None
    later = 10.0 + REFUSED_FOR_S
    assert choose_router(alone, in_use=set(), failed_at=refused, refused_at=refused, now=later, rng=RNG) == "ws://a"


def test_the_wait_is_full_jitter_with_a_doubling_bound() -> None:
    waits = [[retry_delay_s(attempt, rng=RNG) for _ in range(200)] for attempt in (0, 2, 50)]
    assert [max(each) < bound for each, bound in zip(waits, (0.5, 2.0, 7.0), strict=True)] == [True] * 3
    assert all(min(each) < 0.1 * max(each) for each in waits)


@pytest.mark.parametrize(
    ("router", "url"),
    [
        ("ws://h:1", "ws://h:1/sfu"),
        ("ws://h:1/", "ws://h:1/sfu"),
        ("wss://h/own/path?x=1", "wss://h/own/path?x=1"),
    ],
)
def test_a_router_is_named_with_or_without_a_path(router: str, url: str) -> None:
    assert link_url(router) == url
