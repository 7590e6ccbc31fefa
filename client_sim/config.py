"""The settings of the bots."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from cyclopts import Parameter

from shared.bounds import check_numbers
from shared.errors import BadSetting
from shared.tokens import check_secret

MAX_BOTS = 10_000


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True, slots=True)
class BotsConfig:
    """Flags and `SLUICE_*` environment variables of `sluice bots`."""

    routers: tuple[str, ...] = ()
    """Websocket URLs of routers, without a path; bots spread over them and resume on any. None given: those of the
    fleet that runs here."""
    room: str = "demo"
    """The room that bots join; with more `rooms` than one, the stem of their names."""
    rooms: int = 1
    """Rooms to spread the bots over."""
    bots: int = 4
    """Players to simulate."""
    name: str = "bot"
    """Stem of the bots' identities; an identity is one player of a room."""
    secret: str = field(default="", repr=False)
    """The fleet's secret, to make the bots' own tokens with; at least 32 bytes."""
    secret_file: str = ""
    """A file with the secret, instead of it."""
    token: str = field(default="", repr=False)
    """A player token from the app instead, for one bot; it names room and identity."""
    behaviour: str = "0s desk"
    """What the players do: steps such as `0s desk, 10s conversation, 40s idle`, `random`, or `@FILE.toml`."""
    rule: str = "player.core.rules:safe_to_move"
    """The rule "safe to move" as `module:function`; it gets a `PlayerFacts` and returns a bool or a `RuleAnswer`."""
    clip: Path | None = None
    """A media file to publish; without it a generated clip with a frame counter and a beep each second."""
    video: bool = True
    """Publish video as well as audio."""
    subscribe_only: int = 0
    """How many of the bots publish nothing."""
    duration_s: float = 0.0
    """Seconds until the bots leave; 0: until they are told to."""
    join_per_s: float = 40.0
    """Bots that join a second."""
    move_spread_s: float = 1.5
    """Seconds within which, at random, a move begins that nothing forces: a room moves spread out."""
    seed: int = 0
    """Seed of all chance; 0: another one each time."""
    json: bool = False
    """Print the final report as JSON."""
    events: bool = False
    """Print what happens as JSON lines while it does, and take commands as JSON lines on standard input."""
    metrics_port: int | None = None
    """Port for `/metrics` on the loopback address; 0: any free one; without it there is none."""
    log_level: str = "WARNING"
    """Least severe log line that is written."""

    def check(self) -> BotsConfig:
        """These settings, if they make sense; raises `BadSetting`."""
        if not self.routers:
            raise BadSetting(setting="routers", detail="name at least one router, such as ws://127.0.0.1:7000")
        for url in self.routers:
            if not url.startswith(("ws://", "wss://")):
                raise BadSetting(setting="routers", detail=f"{url!r} does not begin with ws:// or wss://")
        if not 1 <= self.bots <= MAX_BOTS or not 1 <= self.rooms <= MAX_BOTS:
            raise BadSetting(setting="bots", detail=f"bots and rooms are 1 to {MAX_BOTS}")
        if not 0 <= self.subscribe_only <= self.bots:
            raise BadSetting(setting="subscribe_only", detail="is 0 to the number of bots")
        if not self.token:
            check_secret(self.secret)
        elif self.bots != 1:
            raise BadSetting(setting="token", detail="is one player's; use --secret for more bots than one")
        check_numbers(self, "duration_s", "move_spread_s", least=0)
        check_numbers(self, "join_per_s", over=0)
        check_numbers(self, "metrics_port", least=0, most=65535)
        return self

    def room_of(self, index: int) -> str:
        """The room of the bot with this number, dealt in turn."""
        return self.room if self.rooms == 1 else f"{self.room}-{index % self.rooms + 1}"
