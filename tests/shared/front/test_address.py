"""Which address a connection counts for."""

from __future__ import annotations

import pytest

from shared.errors import BadSetting
from shared.front.address import counts_for, forwarded_for, read_address, read_networks

PROXIES = read_networks(["127.0.0.0/8", "10.0.0.0/8", "2001:db8:ffff::/48"], setting="trusted_proxies")


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("192.0.2.7:4711", "192.0.2.7"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("[2001:db8:1:2::9]:4711", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("::1", "::1"),
        ("unknown", "?"),
        ("", "?"),
        ("999.1.1.1", "?"),
    ],
)
def test_an_ipv4_address_counts_alone_and_an_ipv6_one_for_its_64(text: str, name: str) -> None:
    assert counts_for(read_address(text)) == name


@pytest.mark.parametrize(
    ("header", "client"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("192.0.2.7, 10.1.2.3", "192.0.2.7"),
        ("1.1.1.1, 192.0.2.7, 10.1.2.3", "192.0.2.7"),
        ("192.0.2.7, garbage, 10.1.2.3", "10.1.2.3"),
        ("10.9.9.9, 10.1.2.3", "10.9.9.9"),
        ("garbage", None),
        ("1.1.1.1, " * 9999 + "192.0.2.7", "192.0.2.7"),
    ],
)
def test_the_last_address_that_is_no_proxy_is_the_client_s_and_what_the_client_wrote_is_not_believed(
    header: str, client: str | None
) -> None:
    found = forwarded_for(header, trusted=PROXIES)
    assert (None if found is None else str(found)) == client


def test_a_network_that_is_none_is_refused_with_the_setting_s_name() -> None:
    with pytest.raises(BadSetting, match="trusted_proxies"):
        read_networks(["10.0.0.1/8"], setting="trusted_proxies")
