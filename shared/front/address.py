"""Which address a connection counts for: an IPv4 address, an IPv6 /64, or the one that a trusted proxy names."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable

from shared.errors import BadSetting

HOME_BITS = 64
"""A subscriber gets an IPv6 /64 at least (RFC 6177), and may use a new address of it for each connection."""
MAX_FORWARDED = 2048
"""Longest `X-Forwarded-For` that is read [characters]."""

Network = ipaddress.IPv4Network | ipaddress.IPv6Network
IpAddress = ipaddress.IPv4Address | ipaddress.IPv6Address


def read_networks(texts: Iterable[str], *, setting: str) -> tuple[Network, ...]:
    """The networks of a setting, single addresses among them. Raises `BadSetting`."""
    try:
        return tuple(ipaddress.ip_network(text) for text in texts)
    except ValueError as error:
        such = "such as 10.0.0.0/8 or 192.0.2.7"
        raise BadSetting(setting=setting, detail=f"{error}; give addresses or networks, {such}") from None


def read_address(text: str) -> IpAddress | None:
    """The address in a header or of a socket: port, brackets and zone are dropped, IPv4 in IPv6 is IPv4. None: there is
    none."""
    text = text.strip().strip('"')
    if text.startswith("["):
        text = text[1:].partition("]")[0]
    elif text.count(":") == 1:
        text = text.partition(":")[0]
    try:
        address = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return None
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        return address.ipv4_mapped
    return address


def counts_for(address: IpAddress | None) -> str:
    """The name under which connections of this address are counted."""
    if address is None:
        return "?"
    if address.version == 4 or address.is_loopback:
        return str(address)
    return str(ipaddress.IPv6Network((int(address), HOME_BITS), strict=False))


def is_among(address: IpAddress | None, networks: Iterable[Network]) -> bool:
    """Whether one of the networks has it."""
    return address is not None and any(address in network for network in networks)


def forwarded_for(header: str, *, trusted: Iterable[Network]) -> IpAddress | None:
    """The client's address in an `X-Forwarded-For` that came from a trusted proxy: the last one that is no proxy's.

    What stands before it was written by the client, who may write anything. None: there is none to believe.
    """
    networks = tuple(trusted)
    last: IpAddress | None = None
    for text in reversed(header[-MAX_FORWARDED:].split(",")):
        address = read_address(text)
        if address is None:
            return last
        last = address
        if not is_among(address, networks):
            return address
    return last
