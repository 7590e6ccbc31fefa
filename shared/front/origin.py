"""Which pages may open a websocket here: a browser names the page's origin, and nothing else sends one."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable
from urllib.parse import urlsplit

from shared.errors import BadSetting

ANY = "*"
MAX_ORIGIN = 512
"""Longest `Origin` that is read [characters]."""
_ORIGIN = re.compile(r"https?://(\*\.)?[A-Za-z0-9.-]+(:\d{1,5})?|https?://\[[0-9A-Fa-f:]+\](:\d{1,5})?|null|\*")


def check_origins(origins: Iterable[str]) -> None:
    """Raises `BadSetting` for what no browser sends."""
    for origin in origins:
        if not _ORIGIN.fullmatch(origin):
            such = "https://app.example.com, https://*.example.com or *"
            raise BadSetting(setting="allowed_origins", detail=f"{origin!r} is none; give {such}, without a path")


def allows(origin: str, *, listed: Iterable[str], hosts: Iterable[str]) -> bool:
    """Whether a page of this origin may: it is listed, or its host is one of `hosts`, on whatever port.

    All names of this computer for itself count as one host.
    """
    if len(origin) > MAX_ORIGIN:
        return False
    if any(_matches(origin.lower(), each.lower()) for each in listed):
        return True
    host = host_of(origin)
    return host != "" and host in {host_of(f"//{each}" if "//" not in each else each) for each in hosts}


def host_of(url: str) -> str:
    """The host in a URL, `localhost` for a loopback address; empty: there is none."""
    try:
        host = (urlsplit(url).hostname or "").rstrip(".")
    except ValueError:
        return ""
    try:
        return "localhost" if ipaddress.ip_address(host).is_loopback else host
    except ValueError:
        return host


def _matches(origin: str, listed: str) -> bool:
    if listed in (ANY, origin):
        return True
    scheme, wild, domain = listed.partition("://*.")
    return bool(wild) and origin.startswith(f"{scheme}://") and origin.endswith(f".{domain}")
