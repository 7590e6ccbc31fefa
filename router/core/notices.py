"""From facts about SFUs to the messages that say so, for the rooms they concern."""

from __future__ import annotations

from router.core.facts import Cordoned, Fact, Uncordoned
from shared.messages.player import CordonedSfu, SfuGone, UncordonedSfu
from shared.records import SfuState, sfu_id

Notice = CordonedSfu | UncordonedSfu | SfuGone


def cordoned_message(state: SfuState) -> CordonedSfu:
    """`cordoned-sfu` with the bounds of the drain as seconds from now, as far as the state knows them."""
    drain = state.drain
    if drain is None:
        return CordonedSfu(sfu=sfu_id(state), incarnation=state.incarnation, revision=state.revision)
    return CordonedSfu(
        sfu=sfu_id(state),
        incarnation=state.incarnation,
        revision=state.revision,
        reason=drain.reason,
        asks_in_s=_left(drain.drain_max_s, drain.elapsed_s),
        ends_in_s=_left(drain.grace_s, drain.elapsed_s),
    )


def _left(bound_s: float | None, elapsed_s: float) -> float | None:
    return None if bound_s is None else max(0.0, bound_s - elapsed_s)


def notice(fact: Fact) -> Notice | None:
    """What players of concerned rooms hear of `fact`; None when they have heard it before."""
    if isinstance(fact, Cordoned):
        return cordoned_message(fact.state)
    if isinstance(fact, Uncordoned):
        return UncordonedSfu(sfu=fact.sfu, incarnation=fact.state.incarnation, revision=fact.state.revision)
    return None if fact.told else SfuGone(sfu=fact.sfu, reason=fact.reason.value)
