"""What `sluice capacity` prints, and the story in the files it writes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bench.capacity.figures import MAX_LOSS, MAX_P99_MS, OTHERS_MATTER, EndReason, StepFigures
from bench.capacity.host import Egress, Host
from bench.capacity.search import HEADROOM, CapacityStep, Finding
from bench.capacity.settings import CapacitySettings
from bench.capacity.workload import about
from shared.load import CPU_GUARD


@dataclass(frozen=True, kw_only=True, slots=True)
class CapacityReport:
    """All that is told of a search."""

    finding: Finding
    egress: Egress
    host: Host
    settings: CapacitySettings
    at: float
    """When it ended [Unix seconds]."""


def ceilings(report: CapacityReport) -> dict[str, float]:
    """The settings, by the names that SFUs and the autoscaler know them by."""
    return {
        "stream_ceiling": report.finding.stream_ceiling,
        "egress_ceiling_mbps": report.egress.ceiling_mbps,
        "cpu_guard": CPU_GUARD,
    }


def step_text(step: CapacityStep) -> str:
    """A line of progress."""
    again = " (again)" if step.first is not None else ""
    verdict = "held" if step.verdict.held else f"{step.verdict.reason}: {step.verdict.detail}"
    return f"{figures_text(step.figures)}{again}: {verdict}"


def figures_text(figures: StepFigures) -> str:
    """One step on one line; of an SFU that fell silent only the size."""
    if figures.silent:
        return f"{figures.streams:,} streams, {figures.players:,} players"
    return (
        f"{figures.streams:,} streams, {figures.players:,} players, {figures.egress_mbps:,.0f} Mbit/s: "
        f"p99 {figures.delay_ms_p99:.2f} ms, loss {figures.loss:.3%}, SFU {figures.sfu_cpu:.0%}, "
        f"generator {figures.generator_cpu:.0%}, others {figures.others_cpu:.0%} of a core"
    )


def reason_text(finding: Finding) -> str:
    """Where it broke and why, in a sentence or two."""
    held = f"{finding.held.figures.streams:,} streams"
    if finding.broke is None:
        return f"nothing broke up to {held}, the largest size that was to be tried: the SFU holds more"
    broke = finding.broke
    at = f"broke at {broke.figures.streams:,} streams: {broke.verdict.detail}"
    if finding.reason is EndReason.GENERATOR:
        return f"the load generator was at its limit, the SFU may hold more than {held}; {at}"
    if finding.reason in (EndReason.CPU, EndReason.SILENT):
        return at
    return f"{at}, with the SFU at {broke.figures.sfu_cpu:.0%} of its core"


def caveats(report: CapacityReport) -> list[str]:
    """What makes the ceilings worth less."""
    finding, told = report.finding, []
    if not finding.certain:
        told.append(f"stream_ceiling is a lower bound, {HEADROOM:.0%} of the highest load that was held")
    if finding.disturbed and finding.broke is not None:
        told.append(
            f"other programs took {finding.broke.figures.others_cpu:.0%} of a core where it broke "
            f"(over {OTHERS_MATTER:.0%}): on a quiet machine it may hold more"
        )
    if not report.egress.known:
        told.append("the interface's speed is not known: give --interface-mbps")
    if report.host.cores < 2:
        told.append("SFU and generator shared one core: both were in each other's way")
    return told


def story(report: CapacityReport) -> list[str]:
    """How the ceilings were found, line by line."""
    finding, settings, host = report.finding, report.settings, report.host
    when = datetime.fromtimestamp(report.at, UTC).strftime("%Y-%m-%d %H:%M UTC")
    players = about(room_size=settings.room_size, kbps=settings.kbps, cameras=settings.cameras)
    base = "of where it broke" if finding.certain else "of the highest load held"
    return [
        f"{when}, {host.cpu}, {host.cores} cores, Linux {host.kernel}, load average {host.load:.1f}, "
        f"others {host.others:.0%} of a core",
        f"workload: {players}; SRTP {settings.profile}",
        f"steps of {settings.step} streams, {settings.step_s:g} s each{', halving' if settings.quick else ''}; bounds: "
        f"p99 delay {MAX_P99_MS:g} ms, loss {MAX_LOSS:.1%}, CPU {CPU_GUARD:.0%} of its core",
        f"held: {figures_text(finding.held.figures)}",
        reason_text(finding),
        f"stream_ceiling: {HEADROOM:.0%} {base}, and no more than was held",
        f"egress_ceiling_mbps: {report.egress.how}",
        *(f"caution: {caveat}" for caveat in caveats(report)),
    ]


def report_text(report: CapacityReport, written: tuple[Path, ...]) -> str:
    """The report for people."""
    lines = story(report)[3:]
    lines += ["", *(f"{key} = {value}" for key, value in ceilings(report).items())]
    if written:
        lines += ["", f"written to {', '.join(map(str, written))}"]
    return "\n".join(lines)


def report_json(report: CapacityReport) -> Mapping[str, Any]:
    """The report for programs."""
    finding = report.finding
    return {
        **ceilings(report),
        "certain": finding.certain,
        "disturbed": finding.disturbed,
        "reason": finding.reason.value,
        "detail": reason_text(finding),
        "held_streams": finding.held.figures.streams,
        "broke_streams": None if finding.broke is None else finding.broke.figures.streams,
        "egress": asdict(report.egress),
        "host": asdict(report.host),
        "cautions": caveats(report),
        "at": report.at,
        "steps": [
            {
                "held": step.verdict.held,
                "reason": step.verdict.reason,
                "detail": step.verdict.detail,
                "repeated_after": None if step.first is None else step.first.reason,
                **asdict(step.figures),
            }
            for step in finding.steps
        ],
    }
