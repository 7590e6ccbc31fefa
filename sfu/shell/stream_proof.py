"""Media over TCP is offered to players at those addresses that have carried a probe call; the others go on being tried.

Unlike UDP it is a second way: an SFU without it is whole, and a port map may well have forgotten it.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Callable, Sequence

from sfu.core.load.warm_up import ProbeFailed, retry_delay_s
from sfu.shell.metrics import SfuMetrics
from sfu.shell.probe import Probe
from shared.logs import OncePerMinute
from shared.rtc.sdp import Candidate

log = logging.getLogger("sfu")

SAID_AGAIN_S = 86_400.0
"""Many do without it."""


class StreamProof:
    """`run` returns once every candidate is announced; until then it goes on in the background."""

    def __init__(
        self,
        probe: Probe,
        candidates: Sequence[Candidate],
        *,
        metrics: SfuMetrics,
        rng: random.Random,
        announce: Callable[[Candidate], None],
    ) -> None:
        self._probe = probe
        self._candidates = tuple(candidates)
        self._metrics = metrics
        self._rng = rng
        self._announce = announce
        self._again = OncePerMinute(log, clock=time.monotonic, every_s=SAID_AGAIN_S)

    async def run(self) -> None:
        """Call, wait, call again."""
        failing, attempt = self._candidates, 0
        while failing:
            failing = tuple([candidate for candidate in failing if not await self._carries(candidate)])
            self._metrics.tcp_reachable.set(not failing)
            if failing:
                await asyncio.sleep(retry_delay_s(attempt, rng=self._rng))
                attempt += 1

    async def _carries(self, candidate: Candidate) -> bool:
        try:
            await self._probe.call((candidate.ip, candidate.port), tcp=True)
        except ProbeFailed as error:
            self._again.warning(
                f"tcp {candidate.ip}",
                f"media over TCP is not offered: TCP {candidate.ip}:{candidate.port} carries no call ({error.failure}: "
                f"{error.detail}). Set tcp_port, open it like the UDP port, or switch it off with --no-tcp; players "
                "whose network lets no UDP through get no media until then",
            )
            return False
        except Exception:
            log.exception("[sfu] a probe call over TCP broke")
            return False
        self._announce(candidate)
        return True
