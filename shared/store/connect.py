"""Opens a client for a Redis URL: one server, a Unix socket, Sentinel or a Cluster."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, cast
from urllib.parse import SplitResult, parse_qs, unquote, urlsplit

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
SCHEMES = ("redis", "rediss", "unix", "redis+sentinel", "rediss+sentinel", "redis+cluster", "rediss+cluster")
TLS_OPTIONS = ("ssl_ca_certs", "ssl_certfile", "ssl_keyfile", "ssl_cert_reqs", "ssl_check_hostname")
"""Options of a `rediss` URL, named as redis-py names them: paths of PEM files, `none` or `required`, a yes or no."""
SENTINEL_OPTIONS = ("sentinel_username", "sentinel_password")
"""Options of a Sentinel URL; without them the Sentinels are asked without a password."""
FORMS = (
    "redis://HOST:6379/0, unix:///PATH, redis+sentinel://H1:26379,H2:26379/MASTER, redis+cluster://HOST:6379; "
    "each but unix as rediss... over TLS"
)


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
    opener = _plain_of_cluster if parts.scheme.endswith("+cluster") else _opener(parts.scheme)
    return cast(RedisSubscriber, opener(url, parts, timeout_s, retries=0))


async def drop_idle(client: RedisClient) -> None:
    """Close the connections that no call uses now: the next call looks for the master again."""
    if isinstance(client, Redis):
        await client.connection_pool.disconnect(inuse_connections=False)
    else:
        await client.aclose()


def shown(url: str) -> str:
    """A URL for people and logs: without user, password and options."""
    scheme, mark, rest = url.partition("://")
    return f"{scheme}{mark}{rest.rpartition('@')[2].partition('?')[0]}"


def _split(url: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        _ = parts.port if not parts.scheme.endswith("+sentinel") else None
    except ValueError as error:
        raise _bad(url, str(error)) from None
    if parts.scheme not in SCHEMES:
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
    return {"sentinel": _sentinel, "cluster": _cluster}.get(scheme.partition("+")[2], _single)


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
    asked = _asked(url, parts, SENTINEL_OPTIONS)
    tls = _tls(url, parts, also=SENTINEL_OPTIONS)
    to_sentinels = _options(timeout_s, retries) | tls
    to_sentinels |= {name.removeprefix("sentinel_"): text for name, text in asked.items()}
    options |= tls
    addresses = [_address(url, host) for host in hosts.split(",")]
    sentinel = Sentinel(addresses, sentinel_kwargs=to_sentinels)  # type: ignore[no-untyped-call]
    return sentinel.master_for(path[0], db=_database(url, path[1] if len(path) == 2 else ""), **options)


def _cluster(url: str, parts: SplitResult, timeout_s: float, *, retries: int = 1) -> object:
    _check_cluster(url, parts)
    options = _options(timeout_s, retries) | _tls(url, parts)
    return RedisCluster(host=parts.hostname, port=parts.port or 6379, **_credentials(parts), **options)


def _plain_of_cluster(url: str, parts: SplitResult, timeout_s: float, *, retries: int = 1) -> object:
    _check_cluster(url, parts)
    options = _options(timeout_s, retries) | _tls(url, parts)
    return Redis(host=parts.hostname or "", port=parts.port or 6379, **_credentials(parts), **options)


def _check_cluster(url: str, parts: SplitResult) -> None:
    if not parts.hostname:
        raise _bad(url, "no host")
    if _database(url, parts.path) != 0:
        raise _bad(url, "a Cluster has only database 0")


def _asked(url: str, parts: SplitResult, names: Sequence[str]) -> dict[str, str]:
    """The options of a URL that are among `names`, each said once."""
    try:
        said = parse_qs(parts.query, keep_blank_values=True, strict_parsing=True) if parts.query else {}
    except ValueError as error:
        raise _bad(url, str(error)) from None
    return {name: values[-1] for name, values in said.items() if name in names}


def _tls(url: str, parts: SplitResult, *, also: Sequence[str] = ()) -> dict[str, Any]:
    """What a URL says of TLS. `also`: other options that it may have."""
    named = TLS_OPTIONS if parts.scheme.startswith("rediss") else ()
    unknown = sorted(set(parse_qs(parts.query, keep_blank_values=True)) - {*named, *also})
    if unknown:
        raise _bad(url, f"unknown option {unknown[0][:40]}")
    if not named:
        return {}
    options: dict[str, Any] = dict(_asked(url, parts, named))
    if "ssl_check_hostname" in options:
        options["ssl_check_hostname"] = options["ssl_check_hostname"].lower() in ("1", "true", "yes")
    if options.get("ssl_cert_reqs", "required") not in ("none", "optional", "required"):
        raise _bad(url, "ssl_cert_reqs is none, optional or required")
    return {"ssl": True, **options}


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
