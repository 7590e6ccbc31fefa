"""Drains as this router sees them: log lines, metrics, and the report that goes to Redis (D10)."""

from __future__ import annotations

import logging
from collections.abc import Callable

from router.shell.state import RouterState
from router.shell.store_writer import StoreWriter
from shared.logs import fields
from shared.records import DrainReport, SfuState, SfuStatus, status_of
from shared.store.answers import Wake, WakeKind

OUTCOMES = frozenset({"empty", "grace", "forced"})
MAX_CONVERSATIONS = 10_000
log = logging.getLogger("router")


class Drains:
    """What routers do in a drain besides telling players."""

    def __init__(self, state: RouterState, writer: StoreWriter, *, wake: Callable[[Wake], None]) -> None:
        self._state = state
        self._writer = writer
        self._wake = wake

    def changed(self, sfu: str, before: SfuStatus, new: SfuState, *, told: int) -> None:
        """The status of a linked SFU has changed, and players have been told."""
        drain = new.drain
        log.info(
            "[drain] %s",
            fields(
                sfu=sfu,
                status=status_of(new).value,
                was=before.value,
                incarnation=new.incarnation,
                revision=new.revision,
                cause=drain.cause if drain else None,
                told=told,
            ),
        )

    def ended(self, report: DrainReport) -> None:
        """An SFU has reported the result of its drain."""
        metrics = self._state.metrics
        version = metrics.version(report.version)
        outcome = report.outcome if report.outcome in OUTCOMES else "other"
        metrics.drains.labels(version, outcome).inc()
        metrics.drain_time.labels(version, outcome).observe(max(0.0, report.to_exit_s))
        metrics.drain_evicted.labels(version).inc(max(0, report.evicted))
        metrics.drain_tracks.labels(version, "producers").inc(max(0, report.producers_at_exit))
        metrics.drain_tracks.labels(version, "consumers").inc(max(0, report.consumers_at_exit))
        for stayed_s in report.conversations_s[:MAX_CONVERSATIONS]:
            metrics.drain_stayed.labels(version).observe(max(0.0, stayed_s))
        self._writer.report(report)
        log.info(
            "[drain] ended %s",
            fields(
                sfu=report.sfu,
                version=report.version,
                outcome=report.outcome,
                to_exit_s=report.to_exit_s,
                players_at_cordon=report.players_at_cordon,
                evicted=report.evicted,
            ),
        )

    def unregistered(self, sfu: str) -> None:
        """Other routers should read Redis again."""
        self._wake(Wake(WakeKind.SFU, sfu))
