"""STUN and TURN servers that players are given, with credentials that expire: the scheme of coturn's
`use-auth-secret` (draft-uberti-behave-turn-rest-00)."""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
from dataclasses import dataclass, field
from typing import Annotated

from cyclopts import Parameter

from shared.bounds import check_numbers
from shared.errors import BadSetting
from shared.messages.player import IceServer

MAX_URLS = 8
"""Of each kind: browsers warn of more than four servers, because each makes connecting slower."""
_STUN = re.compile(r"stuns?:(\[[0-9a-fA-F:]+\]|[A-Za-z0-9.-]+)(:\d{1,5})?\Z")
_TURN = re.compile(r"turns?:(\[[0-9a-fA-F:]+\]|[A-Za-z0-9.-]+)(:\d{1,5})?(\?transport=(udp|tcp))?\Z")


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True, slots=True)
class IceSettings:
    """Which servers help players through their networks (M10)."""

    turn_urls: Annotated[tuple[str, ...], Parameter(json_list=True)] = ()
    """TURN servers for players whose network lets no UDP through, best first: `turn:HOST:PORT?transport=tcp`,
    `turns:HOST:443?transport=tcp`, `turn:HOST` (UDP)."""
    turn_secret: str = field(default="", repr=False)
    """What the TURN servers and the routers share: coturn's `static-auth-secret`."""
    turn_secret_file: str = ""
    """A file with it, instead of it."""
    turn_ttl_s: float = 6 * 3600
    """Seconds for which a credential opens a relay. A relay that is open stays open; each new link gets a new one."""
    stun_urls: Annotated[tuple[str, ...], Parameter(json_list=True)] = ()
    """STUN servers: `stun:HOST:PORT`. Players reach an SFU without; a peer of theirs may want one."""

    def check(self) -> None:
        """Raises `BadSetting` for what no browser takes."""
        for setting, urls, shape, such in (
            ("turn_urls", self.turn_urls, _TURN, "turn:HOST:3478?transport=tcp"),
            ("stun_urls", self.stun_urls, _STUN, "stun:HOST:3478"),
        ):
            if len(urls) > MAX_URLS:
                raise BadSetting(setting=setting, detail=f"at most {MAX_URLS} of them")
            for url in urls:
                if not shape.match(url):
                    raise BadSetting(setting=setting, detail=f"{url!r} is none; one looks like {such}")
        if self.turn_urls and not self.turn_secret:
            raise BadSetting(setting="turn_secret", detail="is needed with turn_urls: coturn's static-auth-secret")
        check_numbers(self, "turn_ttl_s", least=60, most=7 * 86_400)


def ice_servers_for(settings: IceSettings, player: str, *, now_at: float) -> tuple[IceServer, ...]:
    """The servers for one link of a player, none when none are set. `player`: the session's id, by which a TURN server
    can count (coturn's `user-quota`); it names no person. `now_at`: Unix seconds, by the router's clock; a TURN
    server whose clock is ahead by `turn_ttl_s` refuses the credential."""
    servers = []
    if settings.stun_urls:
        servers.append(IceServer(urls=settings.stun_urls))
    if settings.turn_urls:
        username = f"{int(now_at + settings.turn_ttl_s)}:{player}"
        digest = hmac.digest(settings.turn_secret.encode(), username.encode(), hashlib.sha1)
        credential = base64.b64encode(digest).decode()
        servers.append(IceServer(urls=settings.turn_urls, username=username, credential=credential))
    return tuple(servers)
