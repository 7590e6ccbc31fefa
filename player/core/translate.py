"""Between the wire's messages and the mover's words."""

from __future__ import annotations

from collections.abc import Mapping

from player.core import moves as m
from player.core.track import OutgoingTrack
from shared.messages import media, player
from shared.messages.base import Message


def router_event(message: player.ToPlayer) -> m.Event | None:
    """What a router's message means to the mover; None when nothing."""
    match message:
        case player.AssignedSfu():
            return m.Assigned(
                sfu=message.sfu,
                address=message.address,
                token=message.token,
                incarnation=message.incarnation,
                revision=message.revision,
                request=message.request,
            )
        case player.CordonedSfu():
            return m.CordonHeard(
                sfu=message.sfu,
                incarnation=message.incarnation,
                revision=message.revision,
                asks_in_s=message.asks_in_s,
                ends_in_s=message.ends_in_s,
            )
        case player.UncordonedSfu():
            return m.CordonTakenBack(sfu=message.sfu, incarnation=message.incarnation, revision=message.revision)
        case player.SfuGone():
            return m.SfuEnded(sfu=message.sfu, reason=message.reason)
        case _:
            return None


def media_event(message: media.ToMedia, *, link: int, sfu: str) -> m.Event | None:
    """What an SFU's message on this link means to the mover; None when nothing."""
    match message:
        case media.PublicationFlowing():
            return m.PublicationFlows(link=link, publication=message.publication)
        case media.Consumers():
            return m.Watched(link=link, publication=message.publication, count=message.count)
        case media.PleaseMove():
            return m.AskedToMove(
                sfu=sfu,
                within_s=message.within_s,
                incarnation=message.incarnation,
                revision=message.revision,
            )
        case _:
            return None


def router_message(effect: m.Effect, *, tracks: Mapping[str, OutgoingTrack]) -> Message | None:
    """What to send to the router for an effect; None when it is not for the router. `tracks`: ours, by id."""
    match effect:
        case m.AskRouter():
            return player.RequestSfu(
                request=effect.request,
                leave=effect.leave,
                incarnation=effect.incarnation,
                revision=effect.revision,
                exclude=effect.exclude,
                reason=effect.reason,
            )
        case m.Announce() if (track := tracks.get(effect.publication)) is not None:
            return player.Publish(
                publication=effect.publication,
                kind=track.kind,
                sfu=effect.sfu,
                source=track.source,
                generation=effect.generation,
            )
        case m.ReportDecided():
            return player.Decided(sfu=effect.sfu, move=effect.move, reason=effect.reason)
        case _:
            return None
