"""The Python client library: join a room, publish, receive, and stay while SFUs come and go (docs/python-client.md)."""

from player.core.errors import JoinFailed, SessionOver
from player.core.events import (
    LinkFailed,
    MediaFound,
    MediaMissing,
    MoveDecided,
    PlayerCame,
    PlayerChanged,
    PlayerEvent,
    PlayerWent,
    Recovered,
    Relocated,
    RequestRefused,
    RouterEndsSoon,
    RouterWentAway,
    SessionBegan,
    SessionEnded,
    SessionResumed,
    StepTaken,
    TrackEnded,
    TrackHeard,
    TrackPublished,
    TrackSwitched,
)
from player.core.received import MediaFrame, RtpPacket
from player.core.rules import PlayerFacts, Rule, RuleAnswer, always, never, safe_to_move
from player.shell.inbox import Inbox
from player.shell.join import everything, join, nothing
from player.shell.local_track import LocalTrack
from player.shell.me import Me
from shared.errors import BadSetting, BadToken, Refused, SluiceError
from shared.records import PlayerRecord, Presence, PublicationRecord

__all__ = [
    "BadSetting",
    "BadToken",
    "RuleAnswer",
    "Inbox",
    "JoinFailed",
    "LinkFailed",
    "LocalTrack",
    "Me",
    "MediaFound",
    "MediaFrame",
    "MediaMissing",
    "RtpPacket",
    "StepTaken",
    "PlayerCame",
    "PlayerChanged",
    "PlayerEvent",
    "PlayerFacts",
    "PlayerRecord",
    "PlayerWent",
    "Presence",
    "PublicationRecord",
    "Recovered",
    "Refused",
    "Relocated",
    "RequestRefused",
    "RouterEndsSoon",
    "RouterWentAway",
    "Rule",
    "MoveDecided",
    "SessionBegan",
    "SessionEnded",
    "SessionOver",
    "SessionResumed",
    "SluiceError",
    "TrackEnded",
    "TrackHeard",
    "TrackPublished",
    "TrackSwitched",
    "always",
    "everything",
    "join",
    "never",
    "nothing",
    "safe_to_move",
]
