"""The certificate of a program's ports, read again when its files change: a renewal needs no restart."""

from __future__ import annotations

import logging
import ssl
import time
from collections.abc import Callable
from pathlib import Path

from shared.errors import BadSetting
from shared.logs import OncePerMinute

LOOK_EVERY_S = 2.0
HANDSHAKE_WITHIN_S = 10.0
log = logging.getLogger("front")


class PortCertificate:
    """Two PEM files: the chain, and the key to it."""

    def __init__(self, cert: str, key: str, *, clock: Callable[[], float] = time.monotonic) -> None:
        """Reads them. Raises `BadSetting`."""
        self._files = Path(cert), Path(key)
        self._clock = clock
        self._looked_at = clock()
        self._once = OncePerMinute(log, clock=clock)
        try:
            self._stamp = self._now()
            self._context = self._read()
        except (OSError, ValueError) as error:
            raise BadSetting(setting="tls_cert, tls_key", detail=f"{cert}, {key} can't be used: {error}") from None

    def context(self) -> ssl.SSLContext:
        """For a connection that comes now. While the files can't be used, that of the last ones that could."""
        now = self._clock()
        if now - self._looked_at >= LOOK_EVERY_S:
            self._looked_at = now
            self._look()
        return self._context

    def _look(self) -> None:
        try:
            stamp = self._now()
            if stamp != self._stamp:
                self._context, self._stamp = self._read(), stamp
                log.info("[tls] a new certificate is in use: %s", self._files[0])
        except (OSError, ValueError) as error:
            self._once.warning("tls", f"{self._files[0]} can't be used, the certificate before it stays: {error}")

    def _now(self) -> list[tuple[int, int, int]]:
        stats = [file.stat() for file in self._files]
        return [(stat.st_mtime_ns, stat.st_ino, stat.st_size) for stat in stats]

    def _read(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.set_alpn_protocols(["http/1.1"])
        context.load_cert_chain(*self._files)
        return context
