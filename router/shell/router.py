"""One router: its parts put together, started, and ended cleanly."""

from __future__ import annotations

import asyncio
import gc
import json
import logging
import random
import signal
import sys

from router.config import RouterConfig
from router.core.rooms import HostedRooms
from router.core.sessions import Session
from router.shell.drains import Drains
from router.shell.hints import Hints
from router.shell.history import History
from router.shell.leases import Leases
from router.shell.liveness import Liveness
from router.shell.placing import Placing
from router.shell.players import Players
from router.shell.requests import Requests
from router.shell.room_reader import RoomReader
from router.shell.server import WsServer
from router.shell.session_starter import SessionStarter
from router.shell.sessions import Sessions
from router.shell.sfu_links import SfuLinks
from router.shell.state import RouterState
from router.shell.store_writer import StoreWriter
from router.shell.sync import Sync
from router.shell.updates import Updates
from router.shell.web import router_app
from router.shell.wire import ws_frame
from shared.errors import StoreUnavailable
from shared.http import HttpPort, serve
from shared.logs import fields
from shared.messages.player import RouterClosing
from shared.store.api import StoreApi

FIRST_EXCHANGE_WITHIN_S = 3.0
"""Players are let in after the first exchange with Redis has been tried, or after this time."""
CANCEL_AGAIN_S = 0.5
log = logging.getLogger("router")


class Router:
    """A running router."""

    def __init__(self, config: RouterConfig, store: StoreApi, *, rng: random.Random) -> None:
        rooms = HostedRooms(resume_window_s=config.resume_window_s)
        state = self.state = RouterState(config=config, store=store, rooms=rooms, rng=rng)
        self._updates = Updates(state)
        self._writer = StoreWriter(state, replaced=self._replaced, reread=self._reread)
        self._sessions = Sessions(state, self._writer, self._updates)
        self._reader = RoomReader(state, self._sessions)
        hints = Hints()
        self.links = SfuLinks(state, Drains(state, self._writer, wake=hints.add), hurry=hints.hurry)
        self._sync = Sync(state, hints, self.links, self._reader)
        self._liveness = Liveness(state, self._sessions)
        self._leases = Leases(state, self._writer)
        self._history = History(state)
        placing = Placing(state, self._writer)
        starter = SessionStarter(
            state,
            sessions=self._sessions,
            placing=placing,
            writer=self._writer,
            updates=self._updates,
            reader=self._reader,
        )
        requests = Requests(state, sessions=self._sessions, placing=placing, writer=self._writer, updates=self._updates)
        players = Players(state, self._sessions, starter, requests)
        self._server = WsServer(state, players=players, links=self.links, liveness=self._liveness)
        self._tasks: list[asyncio.Task[None]] = []
        self._http: HttpPort | None = None
        self._ready = False

    async def start(self) -> None:
        """Listen and begin all loops. Raises `OSError` when a port is taken."""
        state, config = self.state, self.state.config
        app = router_app(state, self.links, ready=lambda: self._ready)
        self._http = await serve(
            app, host=config.host, port=config.http_port, metrics=state.metrics.front, front=config.front
        )
        state.announced_http = (
            config.announced_http or f"{config.front.scheme('http')}://{config.host}:{self._http.port}"
        )
        for run in (
            self._sync.run(),
            self._sync.follow_wakes(),
            self._reader.run(),
            self._writer.run(),
            self._leases.run(),
            self._history.run(),
            self._liveness.run(),
        ):
            self._tasks.append(asyncio.create_task(run))
        try:
            async with asyncio.timeout(FIRST_EXCHANGE_WITHIN_S):
                await self._sync.tried.wait()
        except TimeoutError:
            log.warning("[store] no answer yet; letting players in")
        ws_port = await self._server.start()
        state.announced_ws = config.announced_ws or f"{config.front.scheme('ws')}://{config.host}:{ws_port}"
        self._sync.announce()
        self._ready = True
        log.info("[router] up %s", fields(router=config.router, ws=state.announced_ws, http=state.announced_http))

    def failed(self) -> BaseException | None:
        """Why one of the loops has ended, which none should; None while all run."""
        for task in self._tasks:
            if task.done() and not task.cancelled():
                return task.exception() or RuntimeError("a loop of the router has ended")
        return None

    async def stop(self) -> None:
        """Ask players to reconnect elsewhere, spread over time; then close. Their sessions stay to be resumed."""
        state = self.state
        state.closing, self._ready = True, False
        sent = self._send_away()
        deadline = state.mono() + (state.config.closing_spread_s + 1.0 if sent else 0.0)
        while self._liveness.players and state.mono() < deadline:  # noqa: ASYNC110 - once, for seconds
            await asyncio.sleep(0.05)
        await self._server.stop()
        await self._end_loops()
        self._updates.stop()
        await self._history.bring()
        try:
            await state.need_store("remove_router").remove_router(state.config.router)
        except StoreUnavailable:
            log.warning("[store] down; this router's record there will expire")
        await state.store.close()
        if self._http is not None:
            await self._http.cleanup()
        log.info("[router] closed %s", fields(router=state.config.router, sent_away=sent))

    async def _end_loops(self) -> None:
        """Cancel the loops until they have ended.

        Once is not enough: redis-py's `timeout(0)` on a connection it is about to use takes a cancellation that comes
        just then for its own time-out, and the loop goes on.
        """
        pending = set(self._tasks)
        while pending:
            for task in pending:
                task.cancel()
            _, pending = await asyncio.wait(pending, timeout=CANCEL_AGAIN_S)

    def _send_away(self) -> int:
        """Send `router-closing` to each player, each with another moment to reconnect."""
        sent = 0
        spread_s = self.state.config.closing_spread_s
        for room in self.state.rooms:
            for session in room.sessions.values():
                if session.wire is not None:
                    session.wire.put(ws_frame(RouterClosing(after_s=round(self.state.rng.uniform(0, spread_s), 3))))
                    sent += 1
        return sent

    # The writer is made before the parts that it reports to.

    def _replaced(self, session: Session) -> None:
        self._sessions.replaced(session)

    def _reread(self, room: str) -> None:
        self._reader.want(room)


async def run_router(config: RouterConfig, store: StoreApi, *, rng: random.Random) -> int:
    """Run until SIGTERM or SIGINT; the exit status."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    router = Router(config, store, rng=rng)
    await router.start()
    # Start-up objects never die: keep them out of each collection, and collect seldom with many idle players.
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 50)
    state = router.state
    addresses = {"router": config.router, "ws": state.announced_ws, "http": state.announced_http}
    print(json.dumps(addresses), file=sys.stdout, flush=True)
    status = 0
    while not stop.is_set():
        try:
            async with asyncio.timeout(1.0):
                await stop.wait()
        except TimeoutError:
            if (error := router.failed()) is not None:
                log.error("[router] a loop has failed", exc_info=error)
                status = 1
                break
    await router.stop()
    return status
