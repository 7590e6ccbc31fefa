"""A player's way to say something to an SFU: one websocket after another, for as long as the media goes on."""

from __future__ import annotations

import asyncio
import contextlib
import random
import time
from collections.abc import Callable
from dataclasses import dataclass

from player.core.websocket_end import AWAY_S, ENTRY_S, STEADY_S, ComeBack, WebsocketEnd, come_back, word_of
from player.shell.wire import Closed, MessageSocket
from shared.jitter import full_jitter
from shared.messages import media as m
from shared.messages.base import Message
from shared.messages.codes import CloseCode
from shared.messages.player import Failed
from shared.patience import patient_timeout


@dataclass(frozen=True, slots=True)
class SocketCallbacks:
    """What the socket asks and tells its owner."""

    entered: Callable[[bool], None]
    """The SFU let us in; True: with the grants of our newest token."""
    message: Callable[[m.ToMedia], None]
    """Anything else that it says, once we are inside."""
    away: Callable[[str], None]
    """It has been away for `AWAY_S`, or will not let us in as we are; the media goes on, and so do the tries."""
    ended: Callable[[str], None]
    """There will be no other websocket, and no media: told once."""
    carries_media: Callable[[], bool]


class SfuSocket:
    """`run` it once; it comes back until its owner is told `ended`. Cancelling `run` closes the websocket."""

    def __init__(self, address: str, token: str, callbacks: SocketCallbacks, *, rng: random.Random) -> None:
        self.inside = False
        """The SFU has let us in over the websocket that is open."""
        self.over = False
        self.needs_token = False
        """Only `renew` with a token from the router can bring us in again."""
        self._address = address
        self._token = token
        self._tell = callbacks
        self._rng = rng
        self._reentry = ""
        """Lets us in again whatever the token's age; the SFU gives it (docs/protocol.md section 1.3)."""
        self._granted = self._shown = ""
        """The token whose grants we have, and the one that was shown last."""
        self._showed_reentry = self._was_inside = self._renewed = False
        self._refusal = ""
        self._attempt = 0
        self._wire: MessageSocket[m.ToMedia] = MessageSocket(address, m.from_sfu)
        self._let_in = asyncio.Event()
        self._wake = asyncio.Event()
        self._absence: asyncio.Task[None] | None = None
        self._closing: asyncio.Task[None] | None = None

    def send(self, message: Message) -> bool:
        """Say it; False when there is no websocket to say it on. What counts is said again after `entered`."""
        return self._wire.send(message)

    def grant(self, address: str, token: str) -> None:
        """This token gives other grants: show it, on the websocket that is open or on the next one."""
        self._address, self._token = address, token
        if self.inside:
            self._wire.send(self._enter())
        else:
            self._try_now()

    def keep_grants(self) -> None:
        """The newest token was refused: go on with the grants that we have."""
        self._token = self._granted or self._token

    def renew(self, address: str, token: str) -> None:
        """The same grants again, from the router: try at once, on a new websocket, on which the SFU says all again."""
        self._address, self._token = address, token
        if self._reentry:
            self._granted = token
        if self.inside:
            self._renewed = True
            self._closing = asyncio.create_task(self._wire.close())
        else:
            self._try_now()

    async def close(self) -> None:
        """Send what is queued, and end."""
        self.over = True
        self._end_absence()
        await self._wire.close()

    async def run(self) -> None:
        """Be connected, again and again."""
        while not self.over:
            wire = self._wire = MessageSocket(self._address, m.from_sfu)
            self._refusal, self._renewed = "", False
            self._let_in.clear()
            self._wake.clear()
            waiting = asyncio.create_task(self._await_entry(wire))
            began = time.monotonic()
            try:
                closed = await wire.run(self._enter, self._read)
            finally:
                waiting.cancel()
            lasted_s = time.monotonic() - began if self.inside else 0.0
            if not self.over:
                await self._after(closed, lasted_s)

    async def _after(self, closed: Closed, lasted_s: float) -> None:
        """Wait for the next try, or end."""
        end = WebsocketEnd(
            code=closed.code,
            refusal=self._refusal,
            let_in=self.inside,
            was_inside=self._was_inside,
            media=self._tell.carries_media(),
            token_left=self._showed_reentry,
        )
        word = word_of(end, opened=closed.opened)
        if self.inside:
            self.inside = False
            self._absence = self._absence or asyncio.create_task(self._count_absence(word))
        if lasted_s >= STEADY_S or self._renewed:
            self._attempt = 0
        verdict = ComeBack.AT_ONCE if self._renewed else come_back(end)
        if closed.code == CloseCode.BAD_TOKEN:
            self._reentry = ""
        if verdict is ComeBack.NEVER:
            self._end(word)
            return
        if verdict is ComeBack.WITH_TOKEN:
            self.needs_token = True
        if closed.code in (CloseCode.REFUSED, CloseCode.BAD_TOKEN) and verdict is not ComeBack.AT_ONCE:
            self._tell.away(word)
        await self._pause(verdict)

    async def _pause(self, verdict: ComeBack) -> None:
        if verdict is ComeBack.WITH_TOKEN:
            await self._wake.wait()
            return
        pause = 0.0
        if verdict is ComeBack.LATER or self._attempt > 0:
            pause = full_jitter(self._attempt, self._rng)
        self._attempt += 1
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._wake.wait(), pause)

    def _try_now(self) -> None:
        self.needs_token = False
        self._attempt = 0
        self._wake.set()

    def _end(self, word: str) -> None:
        self.over = True
        self._end_absence()
        self._tell.ended(word)

    # --- entering ---

    def _enter(self) -> m.Enter:
        self._shown = self._token
        reentry = self._reentry if self._token == self._granted and not self.inside else ""
        self._showed_reentry = bool(reentry)
        return m.Enter(token=self._token, reentry=reentry)

    def _read(self, message: m.ToMedia) -> None:
        match message:
            case m.Entered():
                self._entered(message)
            case Failed() if not self.inside:
                self._refusal = message.code
            case m.Closing():
                self._refusal = "terminating"
                self._end("terminating")
            case _ if self.inside:
                self._tell.message(message)

    def _entered(self, message: m.Entered) -> None:
        self.inside = self._was_inside = True
        self._reentry = message.reentry or self._reentry
        self._granted = self._shown
        self._let_in.set()
        self._end_absence()
        complete = self._shown == self._token
        if not complete:  # told meanwhile to become more than a visitor
            self._wire.send(self._enter())
        self._tell.entered(complete)

    async def _await_entry(self, wire: MessageSocket[m.ToMedia]) -> None:
        try:
            async with patient_timeout(ENTRY_S):
                await self._let_in.wait()
        except TimeoutError:
            await wire.close()

    async def _count_absence(self, word: str) -> None:
        """Tell when the SFU has not let us in again for long."""
        with contextlib.suppress(TimeoutError):
            async with patient_timeout(AWAY_S):
                await asyncio.Event().wait()
        self._absence = None
        if not self.over:
            self._tell.away(word)

    def _end_absence(self) -> None:
        absence, self._absence = self._absence, None
        if absence is not None and absence is not asyncio.current_task():
            absence.cancel()
