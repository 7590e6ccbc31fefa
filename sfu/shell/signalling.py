"""The players' websocket: from `enter` to the end, with every bound of docs/protocol.md."""

from __future__ import annotations

import asyncio
import http
import logging
import socket
import time

from websockets.asyncio.server import Server, ServerConnection, serve
from websockets.exceptions import ConnectionClosed
from websockets.http11 import Request, Response

from sfu.config import PLAYERS_PATH
from sfu.core.rate import frame_cost
from sfu.shell.hub import Hub
from sfu.shell.outbox import PlayerOutbox
from sfu.shell.parts import SfuParts
from sfu.shell.player import Player
from sfu.shell.reporting import Reporting
from shared.errors import BadMessage, BadToken, Refused, SluiceError, UnknownMessage
from shared.front.websocket import WebsocketFront
from shared.logs import OncePerMinute
from shared.messages.codes import CloseCode, Refusal
from shared.messages.media import (
    Enter,
    Entered,
    LeaveSfu,
    PublishOffer,
    RequestKeyframe,
    RestartIce,
    StopPublishing,
    Subscribe,
    SubscribeAnswer,
    ToSfu,
    to_sfu,
)
from shared.messages.player import Failed, Ping, Pong
from shared.patience import PatientServer
from shared.rate import TokenBucket
from shared.records import SfuStatus, status_of
from shared.tokens import SfuClaims, verify

MAX_FRAME = 256 * 1024
FIRST_MESSAGE_S = 5.0
NORMAL = 1000
"""A close in good order (RFC 6455 section 7.4.1)."""

log = logging.getLogger("sfu.signalling")


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens; `::` takes IPv4 as well. Port 0: any free one. Raises `OSError` when the port is taken."""
    six = ":" in host
    family = socket.AF_INET6 if six else socket.AF_INET
    return socket.create_server((host, port), family=family, dualstack_ipv6=six)


class Signalling:
    """The websocket server. Admission goes by the status of the last report."""

    def __init__(self, parts: SfuParts, hub: Hub, reports: Reporting) -> None:
        self._parts = parts
        self._hub = hub
        self._reports = reports
        self._front = WebsocketFront(
            connection=PatientServer,
            most=parts.config.max_players,
            metrics=parts.metrics.front,
            settings=parts.config.front,
        )
        self._once = OncePerMinute(log, clock=time.monotonic)

    async def start(self, sock: socket.socket) -> Server:
        """Serve on a socket that listens; the server closes it."""
        return await serve(
            self._connection,
            sock=sock,
            compression=None,
            max_size=MAX_FRAME,
            process_request=self._check_path,
            open_timeout=FIRST_MESSAGE_S,
            create_connection=self._front.create_connection,  # type: ignore[arg-type]  # any callable that makes one
            ping_interval=10.0,
            ping_timeout=20.0,
            close_timeout=2.0,
            server_header=None,
        )

    def _check_path(self, connection: ServerConnection, request: Request) -> Response | None:
        if request.path.partition("?")[0] != PLAYERS_PATH:
            return connection.respond(http.HTTPStatus.NOT_FOUND, f"players connect to {PLAYERS_PATH}\n")
        return self._front.refusal(connection, request)

    async def _connection(self, websocket: ServerConnection) -> None:
        outbox = PlayerOutbox(websocket)
        rate = TokenBucket(now=self._parts.clock())
        try:
            player = await self._first(websocket, outbox, rate)
            if player is None:
                return
            self._front.let_in(websocket)
            try:
                await self._conversation(websocket, outbox, rate, player)
            finally:
                self._hub.websocket_lost(player, outbox)
        except ConnectionClosed:
            return  # a player in a session has been marked as gone above

    async def _first(self, websocket: ServerConnection, outbox: PlayerOutbox, rate: TokenBucket) -> Player | None:
        """The first message opens the session, or the connection ends."""
        try:
            frame = await asyncio.wait_for(websocket.recv(), FIRST_MESSAGE_S)
        except TimeoutError:
            self._parts.trouble("no-enter")
            outbox.close(CloseCode.NO_JOIN, "enter did not come in time")
            await outbox.wait_closed(within_s=3.0)
            return None
        player = self._open(frame, outbox, rate)
        if player is None:
            await outbox.wait_closed(within_s=3.0)
        return player

    def _open(self, frame: str | bytes, outbox: PlayerOutbox, rate: TokenBucket) -> Player | None:
        message = self._read(frame, outbox, rate)
        if isinstance(message, Enter):
            return self._enter(message, outbox, None)
        if message is not None:
            self._parts.trouble("no-enter")
            outbox.send(Failed(code="no-enter", message="the first message must be enter"))
        outbox.close(CloseCode.NO_JOIN, "the first message must be enter")
        return None

    async def _conversation(
        self, websocket: ServerConnection, outbox: PlayerOutbox, rate: TokenBucket, player: Player
    ) -> None:
        async for frame in websocket:
            message = None if outbox.closed else self._read(frame, outbox, rate)
            if message is None:
                continue
            self._parts.metrics.messages.labels(str(message.__struct_config__.tag)).inc()
            self._handle(message, outbox, player)

    def _read(self, frame: str | bytes, outbox: PlayerOutbox, rate: TokenBucket) -> ToSfu | None:
        """The message in a frame; None when there is none to act on, and the connection may be closing then."""
        if not rate.take(frame_cost(len(frame)), now=self._parts.clock()):
            self._trouble("too-fast", "a player sends messages faster than it may")
            outbox.close(CloseCode.TOO_FAST, "too many messages")
            return None
        try:
            return to_sfu.read(frame)
        except UnknownMessage as error:
            self._parts.trouble(error.code)
        except BadMessage as error:
            self._trouble(error.code, str(error))
            outbox.send(Failed(code=error.code, message=error.detail))
            outbox.close(CloseCode.BAD_MESSAGE, "a frame was no message")
        return None

    def _enter(self, message: Enter, outbox: PlayerOutbox, player: Player | None) -> Player | None:
        """Take a token; `player` is the session of this websocket, None for the first message.

        A refusal closes the websocket, unless it has a session already: that one goes on with the grants it has.
        """
        if message.reentry and player is None:
            return self._come_back(message.reentry, outbox)
        try:
            claims = verify(SfuClaims, message.token, secret=self._parts.config.secret, now_at=time.time())
            if player is not None and claims.player != player.id:
                raise BadToken(reason="bad-claims", detail="the token is for another session")
        except BadToken as error:
            self._trouble(f"{error.code}-{error.reason}", str(error))
            return self._refuse(outbox, player, Failed(code=error.code, message=str(error)), CloseCode.BAD_TOKEN)
        state = self._reports.state
        admission = self._hub.admit(claims, message.token, status=status_of(state))
        if not admission.admitted:
            self._parts.trouble(admission.code)
            log.info("[admission] refused code=%s rule=%s", admission.code, admission.reason)
            failed = Failed(code=admission.code, message=admission.reason)
            return self._refuse(outbox, player, failed, admission.close)
        entered = self._hub.enter(claims, message.token, outbox)
        self._tell_entered(entered, outbox)
        if player is None:
            self._hub.say_again(entered)
        return entered

    def _come_back(self, reentry: str, outbox: PlayerOutbox) -> Player | None:
        """A session that lives here continues on another websocket, whatever its tokens' age (docs/protocol.md)."""
        player = self._hub.coming_back(reentry)
        if player is None:
            self._parts.trouble("bad-reentry")
            failed = Failed(code="bad-token", message="no session lives here that this opens: enter with a new token")
            return self._refuse(outbox, None, failed, CloseCode.BAD_TOKEN)
        if status_of(self._reports.state) is SfuStatus.TERMINATING:
            self._parts.trouble(Refusal.SFU_TERMINATING)
            failed = Failed(code=Refusal.SFU_TERMINATING, message="terminating")
            return self._refuse(outbox, None, failed, CloseCode.REFUSED)
        self._hub.take(player, outbox)
        self._tell_entered(player, outbox)
        self._hub.say_again(player)
        return player

    def _tell_entered(self, player: Player, outbox: PlayerOutbox) -> None:
        state = self._reports.state
        outbox.send(
            Entered(
                sfu=state.sfu,
                incarnation=state.incarnation,
                revision=state.revision,
                status=state.status or "ONLINE",
                reentry=self._hub.new_reentry(player),
            )
        )

    @staticmethod
    def _refuse(outbox: PlayerOutbox, player: Player | None, failed: Failed, code: CloseCode) -> Player | None:
        outbox.send(failed)
        if player is None:
            outbox.close(code, failed.code)
        return player

    def _handle(self, message: ToSfu, outbox: PlayerOutbox, player: Player) -> None:
        """Act on a message; what is wrong with it is told to its sender only."""
        hub, now = self._hub, self._parts.clock()
        if player.outbox is not outbox:
            return  # another websocket has taken the session; this one is closing
        hub.heard(player)
        try:
            match message:
                case Ping():
                    outbox.send(Pong(n=message.n))
                case PublishOffer():
                    hub.publishing.offer(player, message, now=now)
                case Subscribe():
                    hub.subscriptions.want(player, message, now=now)
                case SubscribeAnswer():
                    hub.subscriptions.answer(player, message, now=now)
                case RestartIce():
                    hub.subscriptions.restart(player, now=now)
                case StopPublishing():
                    hub.publishing.stop(player, message.publications, now=now)
                case RequestKeyframe():
                    hub.subscriptions.request_keyframe(player, message, now=now)
                case Enter():
                    self._enter(message, outbox, player)
                case LeaveSfu():
                    hub.leave(player)
                    outbox.close(NORMAL, "left")
        except Refused as error:
            self._parts.trouble(error.code)
            outbox.send(Failed(code=error.code, message=error.detail, request=_tag(message)))
        except SluiceError as error:
            self._trouble(error.code, str(error))
            outbox.send(Failed(code=error.code, message=str(error), request=_tag(message)))

    def _trouble(self, kind: str, sentence: str) -> None:
        self._parts.trouble(kind)
        self._once.warning(kind, sentence[:300])


def _tag(message: ToSfu) -> str:
    return str(message.__struct_config__.tag)
