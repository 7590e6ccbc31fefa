"""Opens a client for a Redis URL: one server, a Unix socket, Sentinel or a Cluster."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, cast
from urllib.parse import SplitResult, unquote, urlsplit

from redis.asyncio import Redis, RedisCluster
from redis.asyncio.client import PubSub
from redis.asyncio.retry import Retry
from redis.asyncio.sentinel import Sentinel
from redis.backoff import NoBackoff
from redis.exceptions import ConnectionError as RedisConnectionError

from shared.errors import BadSetting

TIMEOUT_S = 1.0
"""How long a connection or an answer may take; a call that takes longer fails (row 28 of what goes wrong elsewhere)."""
SENTINEL_PORT = 26379
FORMS = "redis://HOST:6379/0, rediss://..., unix:///PATH, redis+sentinel://H1:26379,H2:26379/MASTER, redis+cluster://HOST:6379"


class RedisClient(Protocol):
    """What the store needs of a client: redis-py's plain and cluster clients both do it."""

    async def execute_command(self, *args: Any) -> Any:
        """Send one command and return its answer."""

    async def aclose(self) -> None:
        """Close all connections."""


class RedisSubscriber(Protocol):
    """A client that can subscribe."""

    def pubsub(self, *, ignore_subscribe_messages: bool = False) -> PubSub:
        """A subscription on a connection of its own."""

    async def aclose(self) -> None:
        """Close all connections."""


def connect(url: str, *, timeout_s: float = TIMEOUT_S) -> RedisClient:
    """A client for `url`; connects at its first command. Raises `BadSetting` for a URL that can't be used."""
    parts = _split(url)
    return cast(RedisClient, _opener(parts.scheme)(url, parts, timeout_s))


def connect_subscriber(url: str, *, timeout_s: float = TIMEOUT_S) -> RedisSubscriber:
    """A client for subscribing. In a Cluster any one node hears every message, so it is a plain client there too.

    It never reconnects on its own: the reader of the messages must see the gap.
    """
    parts = _split(url)
    opener = _plain_of_cluster if parts.scheme == "redis+cluster" else _opener(parts.scheme)
    return cast(RedisSubscriber, opener(url, parts, timeout_s, retries=0))


def shown(url: str) -> str:
    """A URL for people and logs: without user, password and options."""
    scheme, mark, rest = url.partition("://")
    return f"{scheme}{mark}{rest.rpartition('@')[2].partition('?')[0]}"


def _split(url: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        _ = parts.port if parts.scheme != "redis+sentinel" else None
    except ValueError as error:
        raise _bad(url, str(error)) from None
    if parts.scheme not in ("redis", "rediss", "unix", "redis+sentinel", "redis+cluster"):
        raise _bad(url, "unknown scheme")
    return parts


def _bad(url: str, detail: str) -> BadSetting:
    shown = url.rpartition("@")[2] if "@" in url else url
    return BadSetting(setting="redis", detail=f"{shown[:100]!r} can't be used ({detail}); it takes {FORMS}")


def _options(timeout_s: float, retries: int) -> dict[str, Any]:
    return {
        "socket_timeout": timeout_s,
        "socket_connect_timeout": timeout_s,
        # A pooled connection that died with the server is replaced at once; a time-out is not tried again.
        "retry": Retry(NoBackoff(), retries, supported_errors=(RedisConnectionError,)),
        "protocol": 2,
    }


def _opener(scheme: str) -> Callable[..., object]:
    return {"redis+sentinel": _sentinel, "redis+cluster": _cluster}.get(scheme, _single)


def _single(url: str, parts: SplitResult, timeout_s: float, *, retries: int = 1) -> object:
    if parts.scheme == "unix":
        if not parts.path:
            raise _bad(url, "no path of a socket")
    else:
        if not parts.hostname:
            raise _bad(url, "no host")
        _database(url, parts.path)
    try:
        client = Redis.from_url(url, **_options(timeout_s, retries))
        pool = client.connection_pool
        pool.connection_class(**pool.connection_kwargs)  # says now, not at the first call, what it can't take
    except (ValueError, TypeError) as error:
        raise _bad(url, str(error)) from None
    return client


def _sentinel(url: str, parts: SplitResult, timeout_s: float, *, retries: int = 1) -> object:
    credentials, _, hosts = parts.netloc.rpartition("@")
    user, _, password = credentials.partition(":")
    path = parts.path.strip("/").split("/")
    if not path[0] or len(path) > 2:
        raise _bad(url, "the path must be /MASTER or /MASTER/DB")
    options = _options(timeout_s, retries)
    if credentials:
        options |= {"username": unquote(user) or None, "password": unquote(password)}
    addresses = [_address(url, host) for host in hosts.split(",")]
    sentinel = Sentinel(addresses, sentinel_kwargs=_options(timeout_s, retries))  # type: ignore[no-untyped-call]
    return sentinel.master_for(path[0], db=_database(url, path[1] if len(path) == 2 else ""), **options)


def _cluster(url: str, parts: SplitResult, timeout_s: float, *, retries: int = 1) -> object:
    _check_cluster(url, parts)
    options = _options(timeout_s, retries)
    return RedisCluster(host=parts.hostname, port=parts.port or 6379, **_credentials(parts), **options)


def _plain_of_cluster(url: str, parts: SplitResult, timeout_s: float, *, retries: int = 1) -> object:
    _check_cluster(url, parts)
    options = _options(timeout_s, retries)
    return Redis(host=parts.hostname or "", port=parts.port or 6379, **_credentials(parts), **options)


def _check_cluster(url: str, parts: SplitResult) -> None:
    if not parts.hostname:
        raise _bad(url, "no host")
    if _database(url, parts.path) != 0:
        raise _bad(url, "a Cluster has only database 0")


def _credentials(parts: SplitResult) -> dict[str, Any]:
    if parts.username is None and parts.password is None:
        return {}
    return {"username": unquote(parts.username or "") or None, "password": unquote(parts.password or "") or None}


def _database(url: str, path: str) -> int:
    text = path.strip("/")
    if not text:
        return 0
    if not text.isdecimal():
        raise _bad(url, "the database must be a number")
    return int(text)


def _address(url: str, host: str) -> tuple[str, int]:
    try:
        parts = urlsplit(f"//{host}")
        name, port = parts.hostname, parts.port
    except ValueError as error:
        raise _bad(url, str(error)) from None
    if not name:
        raise _bad(url, "an empty host")
    return name, port or SENTINEL_PORT
