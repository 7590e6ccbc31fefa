"""Which server answers at a Redis URL, for reports."""

from __future__ import annotations

from typing import Any

from redis.exceptions import RedisError

from shared.store.connect import connect


async def server_name(url: str) -> str:
    """`Valkey 9.1.2`, `Redis 7.0.15`; empty when it does not say."""
    client = connect(url)
    try:
        return name_of(await client.execute_command("INFO", "server"))
    except (RedisError, OSError):
        return ""
    finally:
        await client.aclose()


def name_of(info: Any) -> str:
    """The name in an answer to INFO, which redis-py has parsed, or which is raw text."""
    if isinstance(info, bytes):
        pairs = (line.split(":", 1) for line in info.decode(errors="replace").splitlines() if ":" in line)
        info = {key: value.strip() for key, value in pairs}
    if not isinstance(info, dict):
        return ""
    for name in ("valkey", "redis"):  # Valkey gives both, the other one for old clients
        if version := info.get(f"{name}_version"):
            return f"{name.capitalize()} {version}"
    return ""
