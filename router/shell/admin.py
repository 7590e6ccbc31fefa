"""Operators' commands over HTTP: `POST /api/sfus/{sfu}/cordon|uncordon|drain` with an operator's token (D12)."""

from __future__ import annotations

import logging
from typing import NoReturn

import msgspec
from aiohttp import web

from router.core.bounds import MAX_REASON, MAX_SFU_ID
from router.core.operating import Denial, Denied, Pace, denial
from router.shell.state import RouterState
from shared.errors import BadToken, StoreUnavailable
from shared.http import answer, no_operator, operator_of, refusal
from shared.logs import fields
from shared.rate import TokenBucket
from shared.records import CommandVerb, sfu_id
from shared.store.answers import Wake, WakeKind

BAD_TOKENS_PER_S, BAD_TOKEN_BURST = 2.0, 20.0
"""Refused tokens that are answered with their reason; beyond, only 429."""
HOW: dict[Denied, int] = {
    Denied.UNKNOWN_SFU: 404,
    Denied.SIGTERM: 409,
    Denied.TERMINATING: 409,
    Denied.TOO_FAST: 429,
}
"""HTTP status of each refusal."""
log = logging.getLogger("router")


class CommandBody(msgspec.Struct, frozen=True, kw_only=True):
    """The body of a command; may be left out."""

    reason: str = ""


class Admin:
    """The handlers. An answer of 202 means that the command is in Redis; the SFU's own state says when it has followed.

    No command's answer carries CORS headers and the token travels in `Authorization`, so a page of another origin can
    neither send a command in an operator's name nor read the answer.
    """

    def __init__(self, state: RouterState) -> None:
        self._state = state
        self._pace = Pace()
        self._strangers = TokenBucket(now=state.mono(), per_s=BAD_TOKENS_PER_S, burst=BAD_TOKEN_BURST)

    def add_to(self, app: web.Application) -> None:
        """Add the routes."""
        for verb in CommandVerb:
            app.router.add_post(f"/api/sfus/{{sfu}}/{verb.value}", self._command)
        app.router.add_get("/api/operator", self._whoami)

    async def _whoami(self, request: web.Request) -> web.Response:
        """Whose token this is, so that the page can say so before it is used."""
        return answer({"operator": self.operator(request, "whoami")})

    async def _command(self, request: web.Request) -> web.Response:
        verb = CommandVerb(request.path.rpartition("/")[2])
        by = self.operator(request, verb.value)
        sfu = request.match_info["sfu"]
        if no := self._pace.take(by, now=self._state.mono()):
            self._deny(verb, sfu, by, no)
        reason = await self._reason(request, verb)
        try:
            store = self._state.need_store("command_sfu")
            # Redis' record, not this router's: a command reaches only an SFU whose start Redis has dated.
            if no := denial(verb, next((s for s in await store.read_sfus() if sfu_id(s) == sfu), None)):
                self._deny(verb, sfu, by, no)
            command = await store.command_sfu(verb, sfu, by, reason)
            await store.wake(Wake(WakeKind.COMMAND, sfu))
        except StoreUnavailable as error:
            fix = "Redis does not answer this router; try again when it does, nothing was ordered"
            self._refuse(verb.value, 503, error.code, fix)
        self._state.metrics.admin.labels(verb.value, "ordered").inc()
        said = fields(verb=verb.value, sfu=sfu, by=by, reason=reason or None, command=command.command)
        log.info("[admin] command %s %s", said, fields(remote=request.remote))
        return answer({"sfu": sfu, "verb": verb.value, "by": by, "command": command.command}, status=202)

    def operator(self, request: web.Request, verb: str) -> str:
        """The operator's name in the token. Raises `ErrorAnswer` when it is no operator's."""
        try:
            return operator_of(request, secret=self._state.config.secret, now_at=self._state.wall())
        except BadToken as error:
            self._state.trouble.warning("operator-token", f"{verb} refused: {error.reason}")
            if not self._strangers.take(now=self._state.mono()):
                self._refuse(verb, 429, "too-fast", "too many refused tokens; wait a few seconds")
            self._state.metrics.admin.labels(verb, f"token-{error.reason}").inc()
            raise no_operator(error) from None

    async def _reason(self, request: web.Request, verb: CommandVerb) -> str:
        raw = await request.read()
        try:
            reason = msgspec.json.decode(raw, type=CommandBody).reason if raw else ""
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            self._refuse(verb.value, 400, "bad-body", 'the body is nothing or {"reason": "…"}')
        if len(reason) > MAX_REASON:
            self._refuse(verb.value, 400, "bad-body", f"a reason has at most {MAX_REASON} characters")
        return reason

    def _deny(self, verb: CommandVerb, sfu: str, by: str, no: Denial) -> NoReturn:
        log.info("[admin] refused %s", fields(verb=verb.value, sfu=sfu[:MAX_SFU_ID], by=by, why=no.why.value))
        self._refuse(verb.value, HOW[no.why], no.why.value, no.fix)

    def _refuse(self, verb: str, status: int, error: str, fix: str) -> NoReturn:
        self._state.metrics.admin.labels(verb, error).inc()
        raise refusal(status, error, fix)
