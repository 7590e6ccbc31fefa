"""Calls every announced address until each of them has carried a probe call, and says loudly which does not."""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Callable, Sequence

from sfu.core.load.warm_up import ComingUp, ProbeFailed, ProbeFailure, retry_delay_s
from sfu.plane.api import Address
from sfu.shell.metrics import SfuMetrics
from sfu.shell.probe import Probe
from shared.logs import OncePerMinute

log = logging.getLogger("sfu")


class WarmUp:
    """`run` returns once every address has proved itself; until then it goes on, in the background of everything."""

    def __init__(
        self,
        probe: Probe,
        addresses: Sequence[Address],
        coming_up: ComingUp,
        *,
        metrics: SfuMetrics,
        rng: random.Random,
        on_proved: Callable[[Address], None],
    ) -> None:
        """`on_proved` is called once for each address."""
        self.reachable: bool | None = None
        """All announced addresses carry calls; None: not known yet."""
        self._probe = probe
        self._coming_up = coming_up
        self._addresses = tuple(addresses)
        self._metrics = metrics
        self._rng = rng
        self._on_proved = on_proved
        self._told: dict[Address, ProbeFailure] = {}
        self._again = OncePerMinute(log, clock=time.monotonic, every_s=600.0)

    async def run(self) -> None:
        """Call, wait, call again."""
        failing, attempt = self._addresses, 0
        while failing:
            failures = [failure for address in failing if (failure := await self._call(address)) is not None]
            failing = tuple(address for address, _ in failures)
            self._coming_up.probe_failure = failures[-1][1].value if failures else ""
            self.reachable = not failing
            self._metrics.reachable.set(self.reachable)
            if failing:
                await asyncio.sleep(retry_delay_s(attempt, rng=self._rng))
                attempt += 1

    async def _call(self, address: Address) -> tuple[Address, ProbeFailure] | None:
        """One call; None when it went through."""
        try:
            await self._probe.call(address)
        except ProbeFailed as error:
            failure, detail = error.failure, error.detail
        except Exception:
            # A node that never warms up for a fault of ours must say so and try again, not fall silent.
            log.exception("[sfu] a probe call broke")
            failure, detail = ProbeFailure.INTERNAL, "see the log"
        else:
            self._on_proved(address)
            return None
        self._metrics.probe_failures.labels(failure.value).inc()
        self._say(address, failure, detail)
        return address, failure

    def _say(self, address: Address, failure: ProbeFailure, detail: str) -> None:
        sentence = (
            f"UNREACHABLE: {address[0]}:{address[1]}, the address announced to players, carries no call ({failure}: "
            f"{detail}). Check announced_ip, announced_udp_port and the port map; players get no media there, and are "
            "sent here only where there is no other SFU."
        )
        if self._told.get(address) is failure:
            self._again.warning(f"probe {address[0]}:{address[1]}", sentence)
            return
        self._told[address] = failure
        log.error("[sfu] %s", sentence)
