"""What routers say to this SFU, and what it answers when a link with one begins."""

from __future__ import annotations

import logging
import secrets
import time

from sfu.config import SfuConfig
from sfu.core.drain.events import CordonStamped
from sfu.core.drain.orders import event_of
from sfu.shell.drainer import Drainer
from sfu.shell.reporting import Reporting
from shared.logs import fields
from shared.messages.link import (
    Cordon,
    CordonReport,
    Exit,
    Hello,
    Linked,
    SfuReport,
    Stamped,
    TerminatingSfu,
    ToRouter,
    ToSfu,
    Uncordon,
    pack_state,
)
from shared.records import SfuStatus
from shared.tokens import LINK_TOKEN_TTL_S, LinkClaims, issue

log = logging.getLogger("sfu")


class FromRouters:
    """The `LinkOwner` of a real SFU."""

    def __init__(self, config: SfuConfig, reports: Reporting, drainer: Drainer) -> None:
        self._config = config
        self._reports = reports
        self._drainer = drainer
        self._boot = secrets.token_hex(8)

    def hello(self) -> Hello:
        """The first message on a link."""
        claims = LinkClaims(sfu=self._config.sfu)
        token = issue(claims, secret=self._config.secret, now_at=time.time(), ttl_s=LINK_TOKEN_TTL_S)
        return Hello(token=token, boot=self._boot, state=pack_state(self._reports.refresh()))

    def linked(self, message: Linked) -> ToRouter | None:
        """A router knows us; say at once what it may have missed, under an incarnation it takes for newer."""
        self._reports.reach("linked_s", router=message.router)
        raised = self._reports.numbers.raise_above(message.incarnation_floor)
        if raised:
            log.warning("[link] incarnation raised %s", fields(floor=message.incarnation_floor, router=message.router))
        state = self._reports.refresh()
        if state.status == SfuStatus.CORDONED:
            return CordonReport(state=pack_state(state))
        if state.status == SfuStatus.TERMINATING:
            return TerminatingSfu(state=pack_state(state))
        return SfuReport(state=pack_state(state)) if raised else None

    def ordered(self, message: ToSfu, *, router: str) -> None:
        """An operator's word, through a router."""
        match message:
            case Cordon() | Uncordon():
                self._drainer.handle(event_of(message))
            case Exit():
                log.warning("[drain] exit ordered %s", fields(by=message.by or None, at=message.at, router=router))
                self._drainer.handle(event_of(message))
            case Stamped():
                self._reports.numbers.stamp(message.started_at)
                if message.cordoned_at is not None:
                    self._drainer.handle(CordonStamped(since_at=message.cordoned_at))
            case _:
                log.debug("[link] nothing to do for %s", type(message).__name__)
