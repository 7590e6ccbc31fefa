"""What a link makes of an SFU's refusals, without a websocket."""

from __future__ import annotations

from player.shell.media_link import MediaLink
from shared.messages.codes import Refusal
from shared.messages.media import ToMedia
from shared.messages.player import Failed


class Owner:
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.refused: list[str] = []
        self.messages: list[ToMedia] = []

    def link_refused(self, link: MediaLink, number: int, code: str) -> None:
        self.refused.append(code)

    def link_message(self, link: MediaLink, message: ToMedia) -> None:
        self.messages.append(message)


async def test_a_codec_that_we_lack_is_told_and_takes_no_right_away() -> None:
    owner = Owner()
    link = MediaLink(
        sfu="s",
        address="ws://s",
        token="t",
        owner=owner,  # type: ignore[arg-type]
        publisher=None,  # type: ignore[arg-type]
    )
    link.entered = True
    link.carry(7, 1)
    lacking = Failed(code=Refusal.CODEC_REFUSED, publication="cam", request="subscribe-answer")
    link._message(lacking)
    assert (link.number, owner.refused, owner.messages) == (7, [], [lacking])
    link._message(Failed(code=Refusal.SFU_CORDONED, request="enter"))
    assert (link.number, owner.refused) == (None, [Refusal.SFU_CORDONED])
