"""URLs of Redis: five forms, and a sentence with the fix for everything else."""

from __future__ import annotations

from typing import Any

import pytest
from redis.asyncio import Redis, RedisCluster
from redis.asyncio.sentinel import SentinelConnectionPool

from shared.errors import BadSetting, StoreUnavailable
from shared.store.connect import connect, connect_subscriber, shown
from shared.store.store import Store


def options(url: str) -> dict[str, Any]:
    client = connect(url)
    assert isinstance(client, Redis)
    return client.connection_pool.connection_kwargs


def test_one_server() -> None:
    found = options("redis://bob:p%40ss@host:7000/3")
    assert (found["host"], found["port"], found["db"]) == ("host", 7000, 3)
    assert (found["username"], found["password"]) == ("bob", "p@ss")
    assert options("redis://host").get("port", 6379) == 6379


def test_one_server_over_tls() -> None:
    client = connect("rediss://host:7000/0")
    assert isinstance(client, Redis)
    assert client.connection_pool.connection_class.__name__ == "SSLConnection"


def test_a_unix_socket() -> None:
    found = options("unix:///run/redis.sock?db=2")
    assert (found["path"], found["db"]) == ("/run/redis.sock", 2)


def test_sentinel() -> None:
    client = connect("redis+sentinel://bob:secret@h1:26379,h2,[::1]:5000/mymaster/4")
    assert isinstance(client, Redis)
    pool = client.connection_pool
    assert isinstance(pool, SentinelConnectionPool)
    assert pool.service_name == "mymaster"
    assert pool.is_master
    addresses = [
        (each.connection_pool.connection_kwargs["host"], each.connection_pool.connection_kwargs["port"])
        for each in pool.sentinel_manager.sentinels
    ]
    assert addresses == [("h1", 26379), ("h2", 26379), ("::1", 5000)]
    found = pool.connection_kwargs
    assert (found["db"], found["username"], found["password"]) == (4, "bob", "secret")


async def test_a_cluster_and_a_plain_client_to_listen_there() -> None:
    client = connect("redis+cluster://:secret@host:7001")
    assert isinstance(client, RedisCluster)
    assert [(node.host, node.port) for node in client.nodes_manager.startup_nodes.values()] == [("host", 7001)]
    listening = connect_subscriber("redis+cluster://:secret@host:7001")
    assert isinstance(listening, Redis)
    found = listening.connection_pool.connection_kwargs
    assert (found["host"], found["port"], found["password"]) == ("host", 7001, "secret")
    await client.aclose()


def test_sentinel_over_tls_with_a_password_of_its_own() -> None:
    client = connect(
        "rediss+sentinel://:of-redis@h1,h2/m?sentinel_password=of%20sentinel&ssl_ca_certs=/ca.pem&ssl_cert_reqs=none"
        "&ssl_check_hostname=no"
    )
    assert isinstance(client, Redis)
    pool = client.connection_pool
    assert isinstance(pool, SentinelConnectionPool)
    assert pool.connection_class.__name__ == "SentinelManagedSSLConnection"
    for found, password in (
        (pool.connection_kwargs, "of-redis"),
        (pool.sentinel_manager.sentinels[0].connection_pool.connection_kwargs, "of sentinel"),
    ):
        assert (found["password"], found["ssl_ca_certs"], found["ssl_cert_reqs"]) == (password, "/ca.pem", "none")
        assert found["ssl_check_hostname"] is False
    asked = pool.sentinel_manager.sentinels[0].connection_pool
    assert asked.connection_class.__name__ == "SSLConnection"


def test_a_sentinel_is_asked_without_a_password_unless_one_is_named() -> None:
    client = connect("redis+sentinel://bob:secret@h1/m")
    assert isinstance(client, Redis)
    pool = client.connection_pool
    assert isinstance(pool, SentinelConnectionPool)
    assert pool.sentinel_manager.sentinels[0].connection_pool.connection_kwargs.get("password") is None


async def test_a_cluster_over_tls() -> None:
    url = "rediss+cluster://:secret@host:7001?ssl_ca_certs=/ca.pem"
    client = connect(url)
    assert isinstance(client, RedisCluster)
    assert client.connection_kwargs["ssl_ca_certs"] == "/ca.pem"
    assert client.nodes_manager.connection_kwargs["connection_class"].__name__ == "SSLConnection"
    listening = connect_subscriber(url)
    assert isinstance(listening, Redis)
    assert listening.connection_pool.connection_class.__name__ == "SSLConnection"
    await client.aclose()


@pytest.mark.parametrize("url", ["redis://host", "rediss://host", "unix:///x", "redis+sentinel://h/m"])
def test_every_client_is_bounded_in_time(url: str) -> None:
    found = options(url)
    assert (found["socket_timeout"], found["socket_connect_timeout"]) == (1.0, 1.0)


@pytest.mark.parametrize("url", ["redis://host", "redis+sentinel://h/m", "redis+cluster://h"])
def test_a_subscriber_never_reconnects_behind_our_back(url: str) -> None:
    client = connect_subscriber(url)
    assert isinstance(client, Redis)
    assert client.connection_pool.connection_kwargs["retry"].get_retries() == 0


@pytest.mark.parametrize(
    "url",
    [
        "",
        "host:6379",
        "http://host",
        "redis://",
        "redis:///0",
        "redis://host:port",
        "redis://host:99999",
        "redis://host/db",
        "redis://host/-1",
        "redis://[::1",
        "redis://host/0?socket_timeout=soon",
        "redis://host/0?unheard_of=1",
        "redis+cluster://host?unheard_of=1",
        "redis+sentinel://host/m?ssl_ca_certs=/without-tls",
        "rediss+sentinel://host/m?ssl_cert_reqs=perhaps",
        "unix://",
        "redis+sentinel://h1:26379",
        "redis+sentinel://h1:26379/",
        "redis+sentinel://h1:26379,/m",
        "redis+sentinel://h1:x/m",
        "redis+sentinel://h1/m/db",
        "redis+sentinel://h1/m/0/more",
        "redis+cluster://",
        "redis+cluster://host/1",
        "redis+cluster://host:x",
    ],
)
def test_a_url_that_can_t_be_used_is_a_bad_setting_with_the_forms_it_takes(url: str) -> None:
    for opener in (connect, connect_subscriber):
        with pytest.raises(BadSetting, match="redis://HOST"):
            opener(url)


def test_a_bad_url_is_not_quoted_with_its_password() -> None:
    with pytest.raises(BadSetting) as caught:
        connect("redis://bob:hunter2@host/db")
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    "url",
    [
        "redis://127.0.0.1:1",
        "rediss://127.0.0.1:1",
        "unix:///nowhere.sock",
        "redis+sentinel://127.0.0.1:1,127.0.0.1:2/m",
        "redis+cluster://127.0.0.1:1",
        "redis://no-such-host.invalid",
    ],
)
async def test_no_server_at_that_address_is_a_typed_error(url: str) -> None:
    store = Store(url)
    with pytest.raises(StoreUnavailable):
        await store.read_sfus()
    assert not store.healthy
    await store.close()


@pytest.mark.parametrize(
    ("url", "seen"),
    [
        ("redis://bob:p%40ss@host:7000/3", "redis://host:7000/3"),
        ("redis://:a/b@c@host/0?password=d", "redis://host/0"),
        ("unix://bob:x@/run/redis.sock?db=2", "unix:///run/redis.sock"),
        ("redis+sentinel://:x@one:1,two:2/main/0", "redis+sentinel://one:1,two:2/main/0"),
    ],
)
def test_a_url_is_shown_without_credentials(url: str, seen: str) -> None:
    assert shown(url) == seen
