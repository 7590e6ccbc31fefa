"""The principles that must hold on bad days, as functions over what was seen of one round."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from rehearse.core.chaos.events import Aim, ChaosKind
from rehearse.core.chaos.seen import SAMPLE_S, ChaosSeen, Happened

RECOVER_S = 30.0
"""After an event's end, for those it touches: consent (15 s), a lost websocket's back-off (7 s) and a move (8 s)."""
SEEN_WITHIN_S = 9.0
"""An SFU that can't report is not placeable after 5 s without a word; asking and being asked takes up to 2 s more, and
the machine is shared."""
CORDON_HEARD_S = 6.0
"""A cordon is in every router after a second; a join that was under way by then may take this long to arrive."""
STALL_FACTOR = 3
"""A packet takes this many turns of some process (publisher, SFU, proxy and listener), each of which may have to
wait for the machine as long as an idle process had to. What the bots themselves were late in sending is granted once:
it may be their own fault. Or, where that is more, what the processes on the way have waited by the kernel's count."""


@dataclass(frozen=True, slots=True)
class BrokenPrinciple:
    """A principle that did not hold."""

    principle: str
    sentence: str
    happened: tuple[Happened, ...]
    """The events that may have led to it."""
    log: str = ""
    """The program whose log to read first."""
    late_s: float = 0.0
    """How long this machine kept an idle process, or the bots, waiting at that time at worst; granted already."""


def gap_unaffected(seen: ChaosSeen) -> float:
    """The longest silence that a bot heard which no event touched [ms]."""
    return max((gap for _, gap in _unaffected(seen)), default=0.0)


def judge(seen: ChaosSeen, *, bound_ms: float) -> list[BrokenPrinciple]:
    """Every principle that the round broke."""
    oracles: tuple[Callable[[ChaosSeen], Iterable[BrokenPrinciple]], ...] = (
        lambda seen: _heard(seen, bound_ms),
        _kept_media,
        _recovered,
        _nothing_placed_on_cordoned,
        _one_record_each,
        _silence_seen,
        _programs_live,
        _all_placeable,
        _no_tracebacks,
    )
    return [broken for oracle in oracles for broken in oracle(seen)]


def _heard(seen: ChaosSeen, bound_ms: float) -> Iterable[BrokenPrinciple]:
    """Signalling, control and the store say nothing about packets that flow."""
    worst: dict[str, tuple[float, float, float]] = {}
    for sample_at, bot, gap in _gaps_by_bot(seen):
        began = sample_at - SAMPLE_S - gap / 1000
        stall_s, lag_s = seen.stall_s(began, sample_at), seen.lag_s(began, sample_at)
        wait_s = seen.wait_s(began, sample_at)
        grant = 1000 * max(STALL_FACTOR * stall_s + lag_s, wait_s)
        if gap > bound_ms + grant and (bot not in worst or gap > worst[bot][1]):
            worst[bot] = (sample_at, gap, max(stall_s, lag_s, wait_s))
    for bot, (at, gap, late_s) in sorted(worst.items()):
        sentence = f"{bot} heard nothing of a publication for {gap:.0f} ms, though no event touched its media"
        yield BrokenPrinciple("untouched media goes on", sentence, _at(seen, at), "bots", late_s)


def _kept_media(seen: ChaosSeen) -> Iterable[BrokenPrinciple]:
    """Players with working media keep it until other media flows."""
    for word in seen.words:
        if word.word == "evicted" and not _is_touched(seen, word.bot, word.at):
            sentence = f"{word.bot} gave up its media on {word.sfu or 'its SFU'}, though no event touched it"
            yield BrokenPrinciple("working media is kept", sentence, _at(seen, word.at), "bots")
    stalls = [each for each in seen.happened if each.event.kind is ChaosKind.STALL_ALL]
    if stalls and len(stalls) == len(seen.happened):
        for word in seen.words:
            if word.word in ("evicted", "joined"):
                sentence = f"{word.bot}: {word.word} after a stall of everything, in which nothing died"
                yield BrokenPrinciple("what was only late is not dead", sentence, tuple(stalls), "bots")


def _recovered(seen: ChaosSeen) -> Iterable[BrokenPrinciple]:
    if seen.recovered_s is None:
        sentence = f"not everybody heard its whole room again within {RECOVER_S:.0f} s after the last event's end"
        yield BrokenPrinciple("everybody hears everybody afterwards", sentence, tuple(seen.happened), "bots")


def _nothing_placed_on_cordoned(seen: ChaosSeen) -> Iterable[BrokenPrinciple]:
    """Invariant 1: a cordoned SFU gets no assignment once the routers know."""
    for each in seen.happened:
        if each.event.kind not in (ChaosKind.CORDON, ChaosKind.DRAIN_SFU):
            continue
        for word in seen.words:
            within = each.began + CORDON_HEARD_S < word.at < (each.ended or float("inf"))
            if word.word == "switched" and word.sfu == each.event.target and within:
                sentence = f"{word.bot} came to {word.sfu} {word.at - each.began:.1f} s after it was cordoned"
                yield BrokenPrinciple("a cordoned SFU gets no players", sentence, (each,), each.event.target)


def _one_record_each(seen: ChaosSeen) -> Iterable[BrokenPrinciple]:
    for sight in seen.rooms:
        if sight.wrong:
            sentence = f"{sight.router} has {sight.wrong}, in {sight.room}"
            yield BrokenPrinciple("one record of a session", sentence, tuple(seen.happened), sight.router)


def _silence_seen(seen: ChaosSeen) -> Iterable[BrokenPrinciple]:
    """Nothing shows ONLINE that is not."""
    for each in seen.happened:
        if not each.event.traits.silent:
            continue
        end = each.ended if each.ended is not None else float("inf")
        for sight in seen.sights:
            if not each.began + SEEN_WITHIN_S < sight.at < min(end, each.began + each.event.lasts_s) - 0.5:
                continue
            if _was_away(seen, sight.router, sight.at):
                continue
            for sfu, placeable in sight.placeable.items():
                if placeable and each.event.target in (sfu, "*"):
                    silent_s = sight.at - each.began
                    sentence = f"{sight.router} calls {sfu} placeable after {silent_s:.0f} s without a word of it"
                    yield BrokenPrinciple("what is silent is shown as such", sentence, (each,), sight.router)
                    return


def _programs_live(seen: ChaosSeen) -> Iterable[BrokenPrinciple]:
    for name, how in sorted(seen.ended.items()):
        yield BrokenPrinciple("programs outlive what happens to others", f"{name} {how}", tuple(seen.happened), name)


def _all_placeable(seen: ChaosSeen) -> Iterable[BrokenPrinciple]:
    """An SFU that was not drained is not gone."""
    for name, why in sorted(seen.unplaceable.items()):
        yield BrokenPrinciple("an SFU that lives comes back", f"{name} {why}", tuple(seen.happened), name)


def _no_tracebacks(seen: ChaosSeen) -> Iterable[BrokenPrinciple]:
    for (log, line), times in sorted(Counter(seen.tracebacks).items()):
        sentence = f"{log}: {line}" + (f", {times} times" if times > 1 else "")
        yield BrokenPrinciple("no traceback in any log", sentence, tuple(seen.happened), log)


# --- whom an event touches ---


def _unaffected(seen: ChaosSeen) -> Iterable[tuple[str, float]]:
    return ((bot, gap) for _, bot, gap in _gaps_by_bot(seen))


def _gaps_by_bot(seen: ChaosSeen) -> Iterable[tuple[float, str, float]]:
    """End, bot and length of each sample's longest silence that no event excuses [s, -, ms]."""
    for sample in seen.samples:
        if sample.gap_ms is not None and not _is_touched(seen, sample.bot, sample.at, since=sample.gap_ms / 1000):
            yield sample.at, sample.bot, sample.gap_ms


def _is_touched(seen: ChaosSeen, bot: str, at: float, *, since: float = 0.0) -> bool:
    """Whether an event, or what follows on it, reaches into the `since` seconds before `at`, and touches the bot."""
    for each in seen.happened:
        end = float("inf") if each.ended is None else each.ended + RECOVER_S
        if bot in each.touched and each.began <= at and at - since <= end:
            return True
    return False


def _at(seen: ChaosSeen, at: float) -> tuple[Happened, ...]:
    """The events that were going on at that moment, or had just been."""
    return tuple(each for each in seen.happened if each.began <= at) or tuple(seen.happened)


def _was_away(seen: ChaosSeen, router: str, at: float) -> bool:
    """Whether an event about that router, or about everything, was on within the last seconds."""
    for each in seen.happened:
        about = each.event.target == router or each.event.traits.target is Aim.ALL
        end = float("inf") if each.ended is None else each.ended + SEEN_WITHIN_S
        if about and each.began <= at <= end:
            return True
    return False
