"""The SFU's side of the router: one coroutine per link; what it says is applied first and told next (D3)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

import msgspec
from websockets.exceptions import ConnectionClosed

from router.core.directory import ALIVE_S
from router.core.links import Boots, LinkFacts
from router.core.orders import OrderBook, message_of
from router.shell.drains import Drains
from router.shell.state import RouterState
from router.shell.wire import WireConnection, ws_frame
from shared.errors import BadInput, BadMessage, BadToken, NameTaken, StoreUnavailable, UnknownMessage, WrongProtocol
from shared.logs import fields
from shared.messages.base import Message
from shared.messages.codes import CloseCode
from shared.messages.link import (
    CordonReport,
    Drained,
    Exit,
    Hello,
    Linked,
    Registered,
    SfuReport,
    Stamped,
    TerminatingSfu,
    ToRouter,
    UncordonReport,
    check_protocol,
    to_router,
    unpack_state,
)
from shared.records import ExitOrder, SfuCommand, SfuState, sfu_id, status_of
from shared.store.answers import PutSfu, Wake, WakeKind
from shared.tokens import LinkClaims, verify

FIRST_MESSAGE_WITHIN_S = 5.0
TAKEN_WITHIN_S = ALIVE_S + 1.0
"""Redis refuses a restarted SFU for as long as it may take the dead process for alive, a living one for ever."""
MAX_LINKS = 4096
CLOSES: dict[type[BadInput], CloseCode] = {
    WrongProtocol: CloseCode.WRONG_PROTOCOL,
    BadToken: CloseCode.BAD_TOKEN,
    NameTaken: CloseCode.NAME_TAKEN,
}
"""How a link is closed for what an SFU said; for all else it is `BAD_MESSAGE`."""
log = logging.getLogger("router")


class SfuLink:
    """One SFU's websocket."""

    def __init__(self, facts: LinkFacts, wire: WireConnection, boot: str) -> None:
        self.facts = facts
        self.wire = wire
        self.boot = boot
        self.since = wire.heard
        self.left = False

    def send(self, message: Message) -> None:
        """Put a message on the link."""
        self.wire.put(ws_frame(message))


class SfuLinks:
    """All SFUs linked here."""

    def __init__(self, state: RouterState, drains: Drains, *, hurry: Callable[[], None]) -> None:
        self._state = state
        self._drains = drains
        self._hurry = hurry
        self._links: dict[str, SfuLink] = {}
        self._boots = Boots()
        self.book = OrderBook()

    # --- for the other parts of the router ---

    @property
    def ids(self) -> tuple[str, ...]:
        """The SFUs linked here."""
        return tuple(sorted(self._links))

    def facts(self) -> list[LinkFacts]:
        """What is known of each linked SFU."""
        return [link.facts for link in self._links.values()]

    def stamp(self, sfu: str, put: PutSfu) -> None:
        """What Redis made of its state: pass its stamps on, or the floor that it must rise above."""
        link = self._links.get(sfu)
        if link is None:
            return
        facts = link.facts
        if put.taken:
            if self._state.mono() - link.since >= TAKEN_WITHIN_S:
                self._refuse(link.wire, NameTaken(sfu=sfu))
                self._state.directory.forget(sfu)
            return
        if not put.accepted:
            ours = (facts.state.incarnation, facts.state.revision)
            if (put.incarnation, put.revision) < ours or put.incarnation > facts.state.incarnation:
                link.send(Linked(router=self._state.config.router, incarnation_floor=put.incarnation))
            return
        if (put.started_at, put.cordoned_at) != (facts.started_at, facts.cordoned_at):
            facts.started_at, facts.cordoned_at = put.started_at, put.cordoned_at
            link.send(Stamped(started_at=put.started_at, cordoned_at=put.cordoned_at))

    def order(self, orders: list[ExitOrder], commands: list[SfuCommand]) -> None:
        """Pass forced exits and commands on to the SFUs they concern, once each (D8, D12)."""
        linked = [facts.linked_sfu() for facts in self.facts()]
        for sfu, order in self.book.exits(orders, linked):
            log.warning("[drain] exit ordered %s", fields(sfu=sfu.sfu, scope=order.scope, by=order.by))
            self._links[sfu.sfu].send(Exit(at=order.at, by=order.by, reason=f"ordered for {order.scope}"))
        for sfu, command in self.book.commands(commands, linked):
            log.info("[drain] command %s", fields(sfu=sfu.sfu, verb=command.verb, by=command.by))
            self._links[sfu.sfu].send(message_of(command))

    # --- a link's life ---

    async def serve(self, wire: WireConnection) -> None:
        """The whole life of one link."""
        link: SfuLink | None = None
        try:
            link = await self._greet(wire)
            while link is not None and wire.ended is None and not link.left:
                message = self._read(wire, await wire.recv())
                if message is not None:
                    await self._hear(link, message)
        except ConnectionClosed:
            pass
        finally:
            if wire.ended is not None:
                self._state.metrics.closed.labels("sfu", str(int(wire.ended))).inc()
            if link is not None:
                self._lost(link)

    async def _greet(self, wire: WireConnection) -> SfuLink | None:
        hello: Hello | None = None
        try:
            async with asyncio.timeout(FIRST_MESSAGE_WITHIN_S):
                while hello is None and wire.ended is None:
                    message = self._read(wire, await wire.recv())
                    if isinstance(message, Hello):
                        hello = message
                    elif message is not None:
                        wire.end(CloseCode.NO_JOIN, "the first message must be hello")
        except TimeoutError:
            wire.end(CloseCode.NO_JOIN, "no hello in time")
        return None if hello is None else self._link(wire, hello)

    def _link(self, wire: WireConnection, hello: Hello) -> SfuLink | None:
        state = self._state
        try:
            check_protocol(hello.protocol)
            claims = verify(LinkClaims, hello.token, secret=state.config.secret, now_at=state.wall())
            boot = hello.boot[:128]
            sfu_state = self._checked(claims.sfu, boot, hello.state)
            self._check_free(claims.sfu, boot)
        except BadInput as error:
            self._refuse(wire, error)
            return None
        if claims.sfu not in self._links and len(self._links) >= MAX_LINKS:
            wire.end(CloseCode.TOO_FAST, "too many SFUs")
            return None
        wire.let_in()
        older = self._links.get(claims.sfu)
        link = self._links[claims.sfu] = SfuLink(LinkFacts(sfu=claims.sfu, state=sfu_state), wire, boot)
        if older is not None:
            older.wire.end(CloseCode.REPLACED, "a newer link of this SFU took over")
        known = state.directory.state(claims.sfu)
        floor = self._boots.floor(claims.sfu, link.boot, sfu_state.incarnation, known=known.incarnation if known else 0)
        link.send(Linked(router=state.config.router, incarnation_floor=floor))
        self.book.forget(claims.sfu)
        log.info("[link] up %s", fields(sfu=claims.sfu, version=sfu_state.version, incarnation=sfu_state.incarnation))
        self._apply(link, sfu_state)
        self._hurry()
        return link

    def _check_free(self, sfu: str, boot: str) -> None:
        """Raise `NameTaken` when another process with this id is alive, here or at other routers.

        A process that has died has lost its link, and one that hangs falls silent: neither keeps its successor out.
        """
        state, older = self._state, self._links.get(sfu)
        now = state.mono()
        if older is not None:
            alive = older.boot if older.wire.alive and now - older.wire.heard < ALIVE_S else ""
        else:
            alive = state.directory.alive_elsewhere(sfu, now=now)
        if alive and boot and alive != boot:
            raise NameTaken(sfu=sfu)

    async def _hear(self, link: SfuLink, message: ToRouter) -> None:
        try:
            if isinstance(message, SfuReport | CordonReport | UncordonReport | TerminatingSfu):
                self._apply(link, self._checked(link.facts.sfu, link.boot, message.state))
                if not isinstance(message, SfuReport):
                    self._hurry()
            elif isinstance(message, Drained):
                self._apply(link, self._checked(link.facts.sfu, link.boot, message.state))
                self._drains.ended(msgspec.structs.replace(message.report, sfu=link.facts.sfu))
                await self._unregister(link)
        except BadInput as error:
            self._refuse(link.wire, error)

    def _apply(self, link: SfuLink, new: SfuState) -> None:
        """State first, then the players, in one step of the event loop (D3)."""
        state, sfu = self._state, link.facts.sfu
        before = status_of(link.facts.state)
        now = state.mono()
        self._boots.note(sfu, link.boot, new.incarnation)
        facts = state.directory.hear(new, now=now)
        state.directory.link(sfu, now=now)
        told = state.teller.tell(facts)
        state.metrics.told.inc(told)
        if new.incarnation != link.facts.state.incarnation:
            link.facts.started_at = link.facts.cordoned_at = None
        link.facts.state = new
        if status_of(new) is not before or facts:
            self._drains.changed(sfu, before, new, told=told)

    async def _unregister(self, link: SfuLink) -> None:
        """The SFU has ended after its drain: no player is placed there any more, by this router or another."""
        state, sfu = self._state, link.facts.sfu
        link.left = True
        state.metrics.told.inc(state.teller.tell(state.directory.unregister(sfu)))
        if self._links.get(sfu) is link:
            del self._links[sfu]
        try:
            store = state.need_store("remove_sfu")
            await store.remove_sfu(sfu, link.facts.state.incarnation)
            await store.wake(Wake(WakeKind.SFU, sfu))
        except StoreUnavailable:
            state.trouble.warning("remove-sfu", f"{sfu} stays in Redis until its record expires")
        self._drains.unregistered(sfu)
        link.send(Registered())
        log.info("[link] unregistered %s", fields(sfu=sfu))

    def _lost(self, link: SfuLink) -> None:
        sfu = link.facts.sfu
        if self._links.get(sfu) is link:
            del self._links[sfu]
            self._state.directory.unlink(sfu, now=self._state.mono())
            log.warning("[link] lost %s", fields(sfu=sfu))

    def _checked(self, sfu: str, boot: str, raw: msgspec.Raw) -> SfuState:
        """The state in a message, if it is the link's own: who an SFU is comes from its token and its `hello`."""
        new = unpack_state(raw)
        if new.sfu and sfu_id(new) != sfu:
            raise BadMessage(direction="sfu-to-router", detail="a state of another SFU")
        return msgspec.structs.replace(new, sfu=sfu, boot=boot)

    def _read(self, wire: WireConnection, frame: str | bytes) -> ToRouter | None:
        try:
            message = to_router.read(frame)
        except UnknownMessage as error:
            self._count(error)
            return None
        except BadMessage as error:
            self._count(error)
            wire.end(CloseCode.BAD_MESSAGE, "not a message")
            return None
        self._state.metrics.messages.labels("sfu", str(message.__struct_config__.tag)).inc()
        return message

    def _refuse(self, wire: WireConnection, error: BadInput) -> None:
        self._count(error)
        wire.end(
            CLOSES.get(type(error), CloseCode.BAD_MESSAGE), error.reason if isinstance(error, BadToken) else str(error)
        )

    def _count(self, error: BadInput) -> None:
        self._state.metrics.refused.labels("sfu", error.code).inc()
        self._state.trouble.warning(f"sfu-{error.code}", str(error))
