"""What a roll can see of a fleet at one moment, from the records in Redis."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from operators.core.fleet_view import SILENT_AFTER_S
from shared.records import DrainCause, DrainReport, SfuStatus, sfu_id, status_of
from shared.store.answers import HeardRouter, HeardSfu


@dataclass(frozen=True, slots=True, kw_only=True)
class RolledSfu:
    """One SFU."""

    run: int = 1
    """Its incarnation."""
    version: str = ""
    status: SfuStatus = SfuStatus.ONLINE
    warmed_up: bool = True
    silent: bool = False
    """Nothing was heard of it for longer than SFUs are silent."""
    players: int | None = 0
    sigterm: bool = False
    """SIGTERM began its drain, which nothing takes back."""
    probe_failure: str = ""

    @property
    def ready(self) -> bool:
        """Players can be sent to it (A5)."""
        return self.status is SfuStatus.ONLINE and self.warmed_up and not self.silent


@dataclass(frozen=True, slots=True, kw_only=True)
class RolledRouter:
    """One router."""

    boot: str = ""
    silent: bool = False
    players: int = 0
    without_media: int = 0
    """Players of it whose media does not get through."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RollSeen:
    """The fleet."""

    sfus: Mapping[str, RolledSfu] = field(default_factory=dict)
    routers: Mapping[str, RolledRouter] = field(default_factory=dict)
    reports: tuple[DrainReport, ...] = ()
    """Newest first."""
    failed: int = 0
    """Players that could not connect to the SFU they were sent to, since the last look."""
    freezes: int = 0
    """Gaps of moves beyond the bound, since the last look."""

    @property
    def without_media(self) -> int:
        """Players whose media does not get through, on all routers."""
        return sum(each.without_media for each in self.routers.values())

    def newest_report(self, sfu: str) -> DrainReport | None:
        """The newest drain report under this id."""
        return next((report for report in self.reports if report.sfu == sfu), None)


def seen_of(
    sfus: Iterable[HeardSfu],
    routers: Iterable[HeardRouter],
    reports: Iterable[DrainReport],
    *,
    failed: int = 0,
    freezes: int = 0,
) -> RollSeen:
    """From what the store answers."""
    return RollSeen(
        sfus={sfu_id(each.state): _sfu(each) for each in sfus},
        routers={each.router.router: _router(each) for each in routers},
        reports=tuple(reports),
        failed=failed,
        freezes=freezes,
    )


def _sfu(heard: HeardSfu) -> RolledSfu:
    state = heard.state
    return RolledSfu(
        run=state.incarnation,
        version=state.version,
        status=status_of(state),
        warmed_up=state.warmed_up,
        silent=(heard.silent_for_s or 0.0) >= SILENT_AFTER_S,
        players=state.players,
        sigterm=state.drain is not None and state.drain.cause == DrainCause.SIGTERM,
        probe_failure=state.probe_failure,
    )


def _router(heard: HeardRouter) -> RolledRouter:
    record = heard.router
    return RolledRouter(
        boot=record.boot,
        silent=heard.silent_for_s >= SILENT_AFTER_S,
        players=record.players,
        without_media=record.without_media or 0,
    )
