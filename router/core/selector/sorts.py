"""The figures an order can go by (P1 `sort_by`): smaller is better, None is "don't know" and never preferred."""

from __future__ import annotations

from collections.abc import Callable

from router.core.selector.decision import Candidate


def _bytes_per_s(candidate: Candidate) -> float | None:
    egress, ingress = candidate.parts.egress_bps, candidate.parts.ingress_bps
    return None if egress is None or ingress is None else (egress + ingress) / 8


SORTS: dict[str, Callable[[Candidate], float | None]] = {
    "random": lambda _: 0.0,
    "sysload": lambda candidate: candidate.parts.sysload,
    "cpuload": lambda candidate: candidate.parts.cpu,
    "rooms": lambda candidate: candidate.parts.rooms,
    "clients": lambda candidate: candidate.parts.clients,
    "tracks": lambda candidate: candidate.parts.tracks,
    "bytespersec": _bytes_per_s,
    "load": lambda candidate: candidate.state.load,
}
