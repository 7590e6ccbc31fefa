"""Short questions to the HTTP side of a program: an answer, or None."""

from __future__ import annotations

from typing import Any

import aiohttp


async def get_json(session: aiohttp.ClientSession, url: str, *, token: str = "") -> Any:
    """The JSON that a GET with this token gives; None when there is no 200 with JSON within two seconds."""
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    try:
        async with session.get(url, headers=headers, timeout=aiohttp.ClientTimeout(total=2.0)) as response:
            return await response.json() if response.status == 200 else None
    except (aiohttp.ClientError, TimeoutError, ValueError):
        return None
