"""Operators' commands over HTTP: who may, what is passed on, what is refused and with which fix."""

from __future__ import annotations

import logging
import time
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest

from router.core.operating import COMMAND_BURST
from router.shell.admin import BAD_TOKEN_BURST, MAX_REASON
from router.shell.router import Router
from shared.logs import read_fields
from shared.messages import link
from shared.records import SfuStatus, status_of
from shared.tokens import LinkClaims, OperatorClaims, issue
from tests.fakes.store import FakeStore
from tests.router.actors import SECRET, Sfu, player_token, until


def operator_token(name: str = "olga", *, ttl_s: float = 86_400, secret: str = SECRET) -> str:
    return issue(OperatorClaims(operator=name), secret=secret, now_at=time.time(), ttl_s=ttl_s)


@pytest.fixture
async def sfu(sfu: Sfu, store: FakeStore) -> Sfu:
    """The SFU, once Redis has a record of it."""
    await until(lambda: "s1" in store.core.sfus)
    return sfu


class Client:
    """An operator's HTTP client."""

    def __init__(self, session: aiohttp.ClientSession) -> None:
        self.session = session

    async def say(self, verb: str, sfu: str = "s1", *, token: str | None = None, **body: Any) -> tuple[int, Any]:
        token = operator_token() if token is None else token
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        async with self.session.post(f"/api/sfus/{sfu}/{verb}", headers=headers, **body) as answer:
            return answer.status, await answer.json()


def stored_status(store: FakeStore) -> SfuStatus:
    return status_of(store.core.read_sfus()[0])


@pytest.fixture
async def client(router: Router) -> AsyncIterator[Client]:
    async with aiohttp.ClientSession(router.state.announced_http) as session:
        yield Client(session)


async def test_a_cordon_reaches_the_sfu_with_the_name_in_the_token(
    client: Client, sfu: Sfu, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, logger="router"):
        status, answer = await client.say("cordon", json={"reason": "new kernel"})
    assert (status, answer["by"], answer["verb"]) == (202, "olga", "cordon")
    heard = await sfu.links[0].hears(link.Cordon)
    assert (heard.by, heard.reason, heard.command) == ("olga", "new kernel", answer["command"])
    line = next(r.getMessage() for r in caplog.records if "[admin] command" in r.getMessage())
    assert 'verb=cordon sfu=s1 by=olga reason="new kernel"' in line


async def test_drain_and_uncordon_are_passed_on_too(client: Client, sfu: Sfu) -> None:
    assert (await client.say("drain"))[0] == 202
    assert (await sfu.links[0].hears(link.Cordon)).exit_when_empty
    assert (await client.say("uncordon"))[0] == 202
    await sfu.links[0].hears(link.Uncordon)


@pytest.mark.parametrize(
    ("token", "status", "error"),
    [
        ("", 401, "token-missing"),
        ("nonsense", 401, "token-malformed"),
        (operator_token(ttl_s=-1), 401, "token-expired"),
        (operator_token(secret="another-secret-of-at-least-32-bytes"), 401, "token-forged"),
        (operator_token(""), 401, "token-bad-claims"),
        (player_token("room", "mallory", admin=True), 403, "token-wrong-audience"),
        (issue(LinkClaims(sfu="s1"), secret=SECRET, now_at=time.time(), ttl_s=86_400), 403, "token-wrong-audience"),
    ],
)
async def test_only_operators_may(
    client: Client, sfu: Sfu, store: FakeStore, token: str, status: int, error: str
) -> None:
    got, answer = await client.say("drain", token=token)
    assert (got, answer["error"]) == (status, error)
    assert "sluice token" in answer["fix"]
    assert await store.read_commands(["s1"]) == []


async def test_an_unknown_sfu_is_not_commanded(client: Client, router: Router, store: FakeStore) -> None:
    status, answer = await client.say("cordon", "s9")
    assert (status, answer["error"]) == (404, "unknown-sfu")
    assert await store.read_commands(["s9"]) == []


async def test_sigterm_is_not_taken_back(client: Client, store: FakeStore, sfu: Sfu) -> None:
    await sfu.cordon()
    await until(lambda: stored_status(store) == SfuStatus.CORDONED)
    status, answer = await client.say("uncordon")
    assert (status, answer["error"]) == (409, "got-sigterm")
    assert (await client.say("drain"))[0] == 202, "harmless, so it is the SFU's to ignore"


async def test_one_that_ends_is_left_alone(client: Client, store: FakeStore, sfu: Sfu) -> None:
    await sfu.report(status=SfuStatus.TERMINATING.value)
    await until(lambda: stored_status(store) == SfuStatus.TERMINATING)
    for verb in ("cordon", "uncordon", "drain"):
        assert (await client.say(verb))[1]["error"] == "terminating"


@pytest.mark.parametrize(
    "body",
    [
        {"data": b"{"},
        {"data": b"[]"},
        {"data": b'{"reason":5}'},
        {"data": b"\xff"},
        {"json": {"reason": "x" * (MAX_REASON + 1)}},
    ],
)
async def test_a_bad_body_orders_nothing(client: Client, sfu: Sfu, store: FakeStore, body: dict[str, Any]) -> None:
    status, answer = await client.say("cordon", **body)
    assert (status, answer["error"]) == (400, "bad-body")
    assert await store.read_commands(["s1"]) == []


async def test_without_redis_the_answer_says_that_nothing_was_ordered(
    client: Client, sfu: Sfu, store: FakeStore
) -> None:
    store.down = True
    status, answer = await client.say("cordon")
    assert status == 503
    assert "nothing was ordered" in answer["fix"]


async def test_an_operator_who_sends_too_many_is_slowed_and_others_are_not(
    client: Client, router: Router, sfu: Sfu
) -> None:
    frozen = router.state.mono()
    router.state.mono = lambda: frozen
    answers = [(await client.say("cordon"))[0] for _ in range(int(COMMAND_BURST) + 1)]
    assert answers == [202] * int(COMMAND_BURST) + [429]
    assert (await client.say("cordon", token=operator_token("otto")))[0] == 202


async def test_guessing_tokens_is_slowed_and_operators_are_not(client: Client, router: Router, sfu: Sfu) -> None:
    frozen = router.state.mono()
    router.state.mono = lambda: frozen
    answers = [(await client.say("cordon", token="guess"))[0] for _ in range(int(BAD_TOKEN_BURST) + 1)]
    assert answers == [401] * int(BAD_TOKEN_BURST) + [429]
    assert (await client.say("cordon"))[0] == 202


async def test_a_log_line_can_not_be_forged(client: Client, sfu: Sfu, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger="router"):
        await client.say("cordon", token=operator_token("eve\n[admin] by=olga"), json={"reason": "a\r\nb c=d"})
    line = next(r.getMessage() for r in caplog.records if "[admin] command" in r.getMessage())
    assert line.isprintable()
    _, said = read_fields(line)
    assert (said["by"], said["reason"]) == ("eve\n[admin] by=olga", "a\r\nb c=d")


async def test_pages_of_other_origins_can_not_command(client: Client, sfu: Sfu) -> None:
    url, theirs = "/api/sfus/s1/cordon", {"Origin": "https://elsewhere.example"}
    asked = {**theirs, "Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "authorization"}
    async with client.session.options(url, headers=asked) as answer:
        assert answer.status == 405
        assert "Access-Control-Allow-Origin" not in answer.headers
    async with client.session.get("/api/operator", headers=theirs) as answer:
        assert "Access-Control-Allow-Origin" not in answer.headers, "nor learn whose token this is"


async def test_the_page_can_ask_whose_token_it_has(client: Client, router: Router) -> None:
    headers = {"Authorization": f"Bearer {operator_token()}"}
    async with client.session.get("/api/operator", headers=headers) as answer:
        assert await answer.json() == {"operator": "olga"}
    async with client.session.get("/api/operator") as answer:
        assert answer.status == 401


async def test_commands_are_counted_without_names(client: Client, sfu: Sfu) -> None:
    await client.say("cordon", token=operator_token("secret-olga"))
    await client.say("cordon", "secret-sfu")
    text = await (await client.session.get("/metrics")).text()
    assert 'sluice_router_admin_commands_total{outcome="ordered",verb="cordon"} 1.0' in text
    assert 'sluice_router_admin_commands_total{outcome="unknown-sfu",verb="cordon"} 1.0' in text
    assert "secret" not in text
