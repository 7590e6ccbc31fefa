"""What routers pass on to the SFU, as events of the drain."""

from __future__ import annotations

from sfu.core.drain.events import CordonOrdered, ExitOrdered, Lease, UncordonOrdered
from shared.messages.link import Cordon, Exit, Uncordon


def event_of(message: Cordon | Uncordon | Exit) -> CordonOrdered | UncordonOrdered | ExitOrdered:
    """The event that a message is."""
    match message:
        case Cordon():
            lease = None if message.lease_s is None else Lease(lease_s=message.lease_s, drain_max_s=message.drain_max_s)
            return CordonOrdered(
                command=message.command,
                by=message.by,
                reason=message.reason,
                exit_when_empty=message.exit_when_empty,
                lease=lease,
                token=message.token,
            )
        case Uncordon():
            return UncordonOrdered(command=message.command, by=message.by, token=message.token)
        case Exit():
            return ExitOrdered(at=message.at, by=message.by, reason=message.reason)
