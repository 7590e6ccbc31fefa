"""The settings of a port's front, the same for every program that has one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from cyclopts import Parameter

from shared.bounds import check_numbers
from shared.errors import BadSetting
from shared.front.address import Network, read_networks
from shared.front.origin import check_origins
from shared.front.tls import PortCertificate

LEAST_PER_ADDRESS = 8
"""What one browser may open at a time, and one more."""


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True, slots=True)
class FrontSettings:
    """What strangers may do to a TCP port."""

    max_per_address: int = 2000
    """Connections of one IPv4 address or IPv6 /64 at most, to each port. An office of a thousand people behind one
    address needs two for each while they move from SFU to SFU."""

    trusted_proxies: Annotated[tuple[str, ...], Parameter(json_list=True)] = ("127.0.0.0/8", "::1/128")
    """Addresses or networks of reverse proxies: their `X-Forwarded-For` is believed, and they are not bounded per
    address themselves. Default: this host."""

    allowed_origins: Annotated[tuple[str, ...], Parameter(json_list=True)] = ()
    """Origins whose pages may open websockets here, as `https://app.example.com`, `https://*.example.com`; `*`: all.
    Routers always let the pages of their own hosts in. SFUs look at origins only when some are listed."""

    tls_cert: str = ""
    """PEM file with the certificate and its chain: the TCP ports then speak TLS only. Read again when it changes."""

    tls_key: str = ""
    """PEM file with the key to it."""

    def check(self) -> None:
        """Raises `BadSetting`."""
        check_numbers(self, "max_per_address", least=LEAST_PER_ADDRESS)
        self.proxies()
        check_origins(self.allowed_origins)
        if bool(self.tls_cert) != bool(self.tls_key):
            raise BadSetting(setting="tls_cert, tls_key", detail="go together; give both")
        self.certificate()

    def certificate(self) -> PortCertificate | None:
        """That of the ports; None: they speak no TLS. Raises `BadSetting`."""
        return PortCertificate(self.tls_cert, self.tls_key) if self.tls_cert else None

    def scheme(self, plain: str) -> str:
        """`http` or `ws`, or with an `s`."""
        return f"{plain}s" if self.tls_cert else plain

    def proxies(self) -> tuple[Network, ...]:
        """The trusted networks. Raises `BadSetting`."""
        return read_networks(self.trusted_proxies, setting="trusted_proxies")


DEFAULT_FRONT = FrontSettings()
