"""Whether a player opens another websocket to its SFU, and when."""

from __future__ import annotations

import pytest

from player.core.websocket_end import ComeBack, WebsocketEnd, come_back, word_of
from shared.messages.codes import CloseCode

BROKE = 1006


@pytest.mark.parametrize(
    ("end", "then"),
    [
        (WebsocketEnd(code=BROKE, let_in=True, was_inside=True, media=True), ComeBack.LATER),
        (WebsocketEnd(code=BROKE, was_inside=True, media=True), ComeBack.LATER),
        (WebsocketEnd(code=CloseCode.REFUSED, refusal="sfu-terminating", was_inside=True, media=True), ComeBack.LATER),
        (WebsocketEnd(code=CloseCode.BAD_TOKEN, was_inside=True, media=True, token_left=True), ComeBack.AT_ONCE),
        (WebsocketEnd(code=CloseCode.BAD_TOKEN, was_inside=True, media=True), ComeBack.WITH_TOKEN),
        (WebsocketEnd(code=CloseCode.BAD_TOKEN, was_inside=True), ComeBack.NEVER),
        (WebsocketEnd(code=BROKE, let_in=True, was_inside=True), ComeBack.AT_ONCE),
        (WebsocketEnd(code=CloseCode.TOO_FAST, let_in=True, was_inside=True), ComeBack.AT_ONCE),
        (WebsocketEnd(code=BROKE, was_inside=True), ComeBack.NEVER),
        (WebsocketEnd(code=BROKE), ComeBack.NEVER),
        (WebsocketEnd(code=CloseCode.REFUSED, refusal="sfu-cordoned"), ComeBack.NEVER),
        (WebsocketEnd(code=CloseCode.TERMINATING, let_in=True, was_inside=True, media=True), ComeBack.NEVER),
        (WebsocketEnd(code=CloseCode.REPLACED, let_in=True, was_inside=True, media=True), ComeBack.NEVER),
        (WebsocketEnd(code=BROKE, refusal="terminating", let_in=True, was_inside=True, media=True), ComeBack.NEVER),
    ],
)
def test_a_websocket_comes_back_while_media_lives_and_once_without(end: WebsocketEnd, then: ComeBack) -> None:
    assert come_back(end) is then


def test_the_word_says_what_the_sfu_said() -> None:
    assert word_of(WebsocketEnd(code=BROKE), opened=False) == "unreachable"
    assert word_of(WebsocketEnd(code=CloseCode.REFUSED, refusal="sfu-cordoned"), opened=True) == "sfu-cordoned"
    assert word_of(WebsocketEnd(code=CloseCode.TOO_FAST), opened=True) == "too-fast"
    assert word_of(WebsocketEnd(code=BROKE), opened=True) == "websocket-broke"
