"""What has changed between two looks at a fleet, in lines for a log."""

from __future__ import annotations

from operators.core.fleet_view import SILENT, FleetView, StatusRouterRow, StatusRow, span


def fleet_news(before: FleetView, now: FleetView) -> list[str]:
    """A line for each SFU and router that is new, gone, silent, heard again, or an SFU with another status."""
    sfus = {row.sfu: row for row in before.sfus}
    routers = {row.router: row for row in before.routers}
    lines = [_router_news(routers.pop(row.router, None), row) for row in now.routers]
    lines += [f"{router} has left" for router in routers]
    lines += [_sfu_news(sfus.pop(row.sfu, None), row) for row in now.sfus]
    lines += [f"{sfu} has left" for sfu in sfus]
    return [line for line in lines if line]


def _sfu_news(before: StatusRow | None, now: StatusRow) -> str:
    again = before is not None and None not in (before.started_at, now.started_at) and _later(before, now)
    if before is not None and before.status == now.status and not again:
        return ""
    if now.status == SILENT:
        return f"{now.sfu} is silent: nothing was heard of it for {span(now.silent_for_s or 0.0)}"
    drain = f" ({now.drain})" if now.drain else ""
    if again:
        return f"{now.sfu} has started again and is {now.status}{drain}"
    if before is not None and before.status == SILENT:
        return f"{now.sfu} is heard again and is {now.status}{drain}"
    return f"{now.sfu} is {now.status}{drain}"


def _later(before: StatusRow, now: StatusRow) -> bool:
    """Whether it is another run of the SFU: the time of its start does not change within one."""
    return (now.started_at or 0.0) > (before.started_at or 0.0)


def _router_news(before: StatusRouterRow | None, now: StatusRouterRow) -> str:
    if before is not None and before.silent == now.silent:
        return ""
    if now.silent:
        return f"{now.router} is silent: nothing was heard of it for {span(now.silent_for_s)}"
    return f"{now.router} is up" if before is None else f"{now.router} is heard again"
