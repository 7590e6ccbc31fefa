"""A player's way from SFU to SFU, make-before-break (D5, docs/protocol.md section 4): events in, effects out.

The home link carries the player's publications. A move opens a target link as well; once everything that flowed at
home flows there the target becomes the home, and the former home is let go when it has no subscriber left. A failure
before the switch costs the target only. `handle` takes what happened, `tick` what is due, `next_deadline` says when to
call it.

`web/lib/mover.js` is its twin: `tests/movers/` holds the stories that both must pass, `docs/decisions/movers.md` says
what was decided where they differed. Longer than our files ought to be, because a state machine reads best on one page.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable

from player.core import moves as m
from player.core.heard import Heard
from player.core.links import CarryingLink, CarryingLinks, FormerHome
from player.core.phases import (
    ENTER_TIMEOUT_S,
    EXCLUDING,
    FLOW_TIMEOUT_S,
    MAX_RETRY_AFTER_S,
    NO_MEDIA,
    REQUEST_TIMEOUT_S,
    REST_TIMEOUT_S,
    UNFORCED,
    BrokenMover,
    Cause,
    MoveWish,
    Phase,
)
from player.core.rules import PlayerFacts, RuleAnswer
from shared.jitter import full_jitter
from shared.records import Presence

AT_DESK = Presence()
Decide = Callable[[PlayerFacts, bool], RuleAnswer]


class Mover:
    """One player. `publications` never changes; without any, a link carries everything once it is entered.

    `decide(facts, asked)` is the ladder of `player.core.behaviour` with the plug-in inside. `spread_s` delays the
    first request of a move that the rule decides on by a uniform share of it, so that a room does not shake hands in
    one instant.
    """

    def __init__(
        self,
        *,
        identity: str,
        room: str,
        publications: tuple[str, ...],
        decide: Decide,
        rng: random.Random,
        presence: Presence = AT_DESK,
        spread_s: float = 0.0,
    ) -> None:
        self.identity = identity
        self.room = room
        self.publications = publications
        self.presence = presence
        self.phase = Phase.OUTSIDE
        self.links = CarryingLinks()
        self.heard = Heard()
        self.wish: MoveWish | None = None
        self.online = False
        self.story: deque[str] = deque(maxlen=60)
        self._decide = decide
        self._rng = rng
        self._spread_s = spread_s
        self._said: tuple[str, bool, str] | None = None
        self._due = 0.0
        """When the phase's own deadline is: the next request, or the time-out of the request or the link."""
        self._request = ""
        self._counter = 0
        self._fruitless = 0
        """Homes in a row that were lost before any media got through."""
        self._effects: list[m.Effect] = []

    # --- the outside ---

    def handle(self, event: m.Event, *, now: float) -> list[m.Effect]:
        """What to do about `event`, in this order. Raises `BrokenMover` when that makes no sense any more."""
        before = self.phase
        if self.phase is not Phase.LEFT:
            _HANDLERS[type(event)](self, event, now)
        self.story.append(f"{now:.3f} {type(event).__name__} {before}->{self.phase}")
        return self._flush()

    def tick(self, *, now: float) -> list[m.Effect]:
        """What to do because time has passed."""
        if now >= self._due:
            if self.phase is Phase.WAITING and self.online:
                self._ask(now)
            elif self.phase is Phase.ASKING:
                self._retry(now)
            elif self.phase is Phase.OPENING:
                self._open_due(now)
        for old in [old for old in self.links.olds if now >= old.until]:
            self._release(old, now)
        return self._flush()

    def next_deadline(self) -> float | None:
        """When `tick` has something to do; None when only an event can change anything."""
        times = [old.until for old in self.links.olds]
        if self.phase in (Phase.ASKING, Phase.OPENING) or (self.phase is Phase.WAITING and self.online):
            times.append(self._due)
        return min(times, default=None)

    def check(self) -> None:
        """Raise `BrokenMover` unless everything fits together."""
        home, links = self.links.home, self.links.all()
        rules = {
            "a target exists exactly while opening": (self.links.target is not None) == (self.phase is Phase.OPENING),
            "links are distinct": len({link.number for link in links}) == len(links),
            "at rest on a live home": self.phase is not Phase.SETTLED or (home is not None and not home.lost),
            "a wish exists exactly when not at rest": (self.wish is not None)
            == (self.phase in (Phase.WAITING, Phase.ASKING, Phase.OPENING)),
            "nothing is kept after leaving": self.phase is not Phase.LEFT or not links,
        }
        broken = [rule for rule, holds in rules.items() if not holds]
        if broken:
            raise BrokenMover(", ".join(broken), list(self.story))

    def _flush(self) -> list[m.Effect]:
        effects, self._effects = self._effects, []
        self.check()
        return effects

    def _do(self, *effects: m.Effect) -> None:
        self._effects.extend(effects)

    # --- the router ---

    def _joined(self, event: m.Joined, now: float) -> None:
        self.online = True
        if self.links.target is not None and self._is_all_we_have(self.links.target):
            self._take_home(now)
        elif self.links.target is not None:
            self._abandon_target()
        self.heard = Heard(excluded=self.heard.excluded)
        self._said = None
        self.wish = MoveWish(Cause.REJOIN if self.links.home else Cause.JOIN, now)
        # The assignment follows at once; without one an `error` follows that says when to ask.
        self._wait(now if event.assigned else now + full_jitter(0, self._rng))

    def _router_back(self, event: m.RouterBack, now: float) -> None:
        self.online = True
        if self.links.home is not None:  # it may have missed what we said while it was away
            self._announce_all(self.links.home)

    def _router_lost(self, event: m.RouterLost, now: float) -> None:
        self.online = False
        if self.phase is Phase.ASKING:
            self._wait(now)

    def _assigned(self, event: m.Assigned, now: float) -> None:
        if self.phase in (Phase.OUTSIDE, Phase.OPENING) or (event.request and event.request != self._request):
            return  # the answer to a question we have given up
        if self.wish is None:  # unasked: a resume on a router that wants us elsewhere
            if self.links.to(event.sfu) or self.heard.forbids(event):
                return
            self.wish = MoveWish(Cause.LOST, now)
        if self.heard.forbids(event):
            self.heard.exclude(event.sfu, now=now)
            self._retry(now)
            return
        self.heard.forget(event.sfu)
        home = self.links.home
        if home is not None and home.sfu == event.sfu and self.wish.cause in UNFORCED:
            self._said = None
            self._cancel("kept")
            return
        for old in [old for old in self.links.olds if old.link.sfu == event.sfu]:
            self._release(old, now)
        self._open(event, now)

    def _unassigned(self, event: m.Unassigned, now: float) -> None:
        answered = self.phase is Phase.ASKING and event.request == self._request
        told_at_join = self.phase is Phase.WAITING and not event.request
        if not (answered or told_at_join):
            return
        self._retry(now)
        if event.retry_after_s is not None:
            pause = self._rng.uniform(0.5, 1.5) * min(event.retry_after_s, MAX_RETRY_AFTER_S)
            self._due = max(self._due, now + pause)

    # --- what is said of SFUs ---

    def _cordoned(self, event: m.CordonHeard, now: float) -> None:
        target = self.links.target
        if self.heard.cordon(event, now=now) and self.links.to(event.sfu):
            self._do(m.TellStep(step=m.MoveStep.CORDONED, sfu=event.sfu))
        if target is not None and target.sfu == event.sfu:
            if self._is_all_we_have(target):
                self._take_home(now)
            else:
                self._fail_target("cordoned", now)
        self._consider(now)

    def _uncordoned(self, event: m.CordonTakenBack, now: float) -> None:
        home = self.links.home
        if self.heard.uncordon(event) and home is not None and home.sfu == event.sfu:
            self._said = None
            self._cancel("uncordoned")

    def _gone(self, event: m.SfuEnded, now: float) -> None:
        links = self.links.to(event.sfu)
        if links:
            self._do(m.TellStep(step=m.MoveStep.SFU_GONE, sfu=event.sfu, reason=event.reason))
        self.heard.forget(event.sfu)
        self.heard.exclude(event.sfu, now=now)
        for link in links:
            # Lost is what a router hears no more of. Its media may flow on, and is kept until other media does.
            self._lose(link, event.reason or "gone", now, cut=event.reason != "lost")

    def _asked_to_move(self, event: m.AskedToMove, now: float) -> None:
        home = self.links.home
        if home is None or home.sfu != event.sfu or event.sfu in self.heard.asked:
            return
        self.heard.ask(event, now=now, at=now + self._rng.uniform(0.0, max(0.0, event.within_s)))
        self._do(m.TellStep(step=m.MoveStep.PLEASE_MOVE, sfu=event.sfu))
        self._consider(now)

    def _presence_changed(self, event: m.PresenceChanged, now: float) -> None:
        self.presence = event.presence
        self._consider(now)

    # --- the links ---

    def _entered(self, event: m.LinkEntered, now: float) -> None:
        target = self.links.target
        if target is None or target.number != event.link:
            return
        self._do(m.TellStep(step=m.MoveStep.NEW_LINK_UP, sfu=target.sfu))
        target.entered = True
        self._due = now + FLOW_TIMEOUT_S
        self._switch_if_all_flow(now)

    def _media_connected(self, event: m.MediaConnected, now: float) -> None:
        link, home = self.links.numbered(event.link), self.links.home
        if link is None:
            return
        link.connected = True
        if link is home:
            self._fruitless = 0
        elif link is self.links.target and home is not None:
            self._switch_if_all_flow(now)

    def _flowing(self, event: m.PublicationFlows, now: float) -> None:
        link, publication = self.links.numbered(event.link), event.publication
        if link is None or publication in link.flowing or publication not in self.publications:
            return
        link.flowing.add(publication)
        link.entered = True
        if link is self.links.home:
            self._fruitless = 0
            self._announce(link, publication)
            self._release_idle(now)
        elif link is self.links.target:
            self._do(m.TellStep(step=m.MoveStep.FLOWING, sfu=link.sfu, reason=publication))
            if self.links.home is None:  # nothing to fall back to: let the room have each track as soon as it flows
                self._announce(link, publication)
            self._due = min(self._due, now + REST_TIMEOUT_S)
            self._switch_if_all_flow(now)

    def _switch_if_all_flow(self, now: float) -> None:
        """What does not flow at home, for it sends nothing, is not waited for; that media can get through is."""
        home, target = self.links.home, self.links.target
        assert target is not None
        awaited = set(self.publications) if home is None else home.flowing
        reached = target.has_media or not self.publications
        if target.entered and reached and awaited <= target.flowing:
            self._switch(now)

    def _open_due(self, now: float) -> None:
        """The target's time is over: what flows there is enough, and so is a connection when no home is left."""
        home, target = self.links.home, self.links.target
        assert target is not None
        if not target.entered:
            self._fail_target("no-answer", now)
        elif target.flowing or (home is None and target.connected):
            self._switch(now)
        else:
            self._fail_target("no-media", now)

    def _watched(self, event: m.Watched, now: float) -> None:
        link = self.links.numbered(event.link)
        if link is None or event.publication not in self.publications:
            return
        link.watched[event.publication] = event.count
        self._release_idle(now)

    def _link_down(self, event: m.LinkDown, now: float) -> None:
        link = self.links.numbered(event.link)
        if link is not None:
            self._lose(link, event.reason, now, cut=event.cut)

    def _lose(self, link: CarryingLink, reason: str, now: float, *, cut: bool) -> None:
        old = self.links.old(link)
        if old is not None and not cut:
            return  # it is heard on, and goes when it is heard no more
        if old is not None:
            self._release(old, now)
        elif link is self.links.target:
            self._fail_target(reason, now)
        else:
            if reason in EXCLUDING:
                self.heard.exclude(link.sfu, now=now)
            self._fruitless = self._fruitless + 1 if reason in NO_MEDIA and not link.has_media else 0
            self._lose_home(link, reason, now, cut=cut)

    def _lose_home(self, home: CarryingLink, reason: str, now: float, *, cut: bool) -> None:
        if cut:
            self._do(m.TellStep(step=m.MoveStep.EVICTED, sfu=home.sfu, reason=reason), m.Abandon(link=home.number))
            self.links.home = None
            if self.links.target is not None:
                self._announce_all(self.links.target)
        elif not home.lost:  # media goes on over it until the next link carries everything
            self._do(m.TellStep(step=m.MoveStep.LINK_LOST, sfu=home.sfu, reason=reason))
            home.lost = True
        if self.phase is Phase.SETTLED or (self.wish is not None and self.wish.cause in UNFORCED):
            self._hurry(now)

    def _hurry(self, now: float) -> None:
        """From now on the wish is to be somewhere at all; only a first request that still waits is brought forward."""
        if self.wish is None:
            self.wish = MoveWish(Cause.LOST, now)
        self.wish.cause = Cause.LOST
        if not (self.phase is Phase.SETTLED or (self.phase is Phase.WAITING and self.wish.attempts == 0)):
            return
        self.wish.attempts = max(0, self._fruitless - 1)
        if self._fruitless:
            self._retry(now)
        else:
            self._ask_at(now, now)

    # --- deciding ---

    def _consider(self, now: float) -> None:
        """Ask the ladder again, when at rest or in a move of our own will: until the switch it can be taken back."""
        home, wish = self.links.home, self.wish
        if home is None or home.lost or not (self.phase is Phase.SETTLED or (wish and wish.cause in UNFORCED)):
            return
        facts = self.heard.facts(home.sfu, self.presence, identity=self.identity, room=self.room, now=now)
        if facts is None:
            return
        moment = self.heard.asked.get(home.sfu)
        decision = self._decide(facts, moment is not None)
        self._say(home.sfu, decision)
        if not decision.move:
            self._cancel(decision.reason)
        elif wish is None:
            cause = Cause.CORDONED if moment is None else Cause.ASKED
            self.wish = MoveWish(cause, now)
            self._ask_at(now + self._rng.uniform(0.0, self._spread_s) if moment is None else moment, now)
        elif moment is not None:
            wish.cause = Cause.ASKED

    def _say(self, sfu: str, decision: RuleAnswer) -> None:
        said = (sfu, decision.move, decision.reason)
        if said != self._said:
            self._said = said
            self._do(m.ReportDecided(sfu=sfu, move=decision.move, reason=decision.reason))

    def _cancel(self, reason: str) -> None:
        """The reason to leave home is gone; a wish that was forced upon us does not end by that."""
        home = self.links.home
        if home is None or home.lost or self.wish is None or self.wish.cause not in UNFORCED:
            return
        if self.links.target is not None:
            self._abandon_target()
        self._do(m.TellStep(step=m.MoveStep.CANCELLED, sfu=home.sfu, reason=reason))
        self.wish = None
        self.phase = Phase.SETTLED

    # --- moving ---

    def _wait(self, at: float) -> None:
        self.phase = Phase.WAITING
        self._due = at

    def _ask_at(self, at: float, now: float) -> None:
        self._wait(at)
        if self.online and at <= now:
            self._ask(now)

    def _ask(self, now: float) -> None:
        assert self.wish is not None
        self._tell_start(now)
        home = self.links.home
        self._counter += 1
        self._request = f"move-{self._counter}"
        leave = home.sfu if home is not None else ""
        leaving = [old.link.sfu for old in self.links.olds]
        self._do(self.heard.question(self._request, leave, leaving=leaving, reason=self.wish.word, now=now))
        self.phase = Phase.ASKING
        self._due = now + REQUEST_TIMEOUT_S

    def _tell_start(self, now: float) -> None:
        assert self.wish is not None
        if self.links.home is not None and not self.wish.told:
            self.wish.told, self.wish.started = True, now
            self._do(m.TellStep(step=m.MoveStep.MOVE_STARTED, sfu=self.links.home.sfu, reason=self.wish.cause.value))

    def _retry(self, now: float) -> None:
        assert self.wish is not None
        pause = full_jitter(self.wish.attempts, self._rng)
        self.wish.attempts += 1
        self._wait(now + pause)

    def _open(self, assigned: m.Assigned, now: float) -> None:
        self._tell_start(now)
        self._counter += 1
        self._request = ""
        # The counter only grows, so it serves as the generation too: each link's copies are newer than all before.
        link = self.links.target = CarryingLink(self._counter, assigned.sfu, generation=self._counter)
        self.phase = Phase.OPENING
        self._due = now + ENTER_TIMEOUT_S
        self._do(
            m.OpenLink(
                link=link.number,
                sfu=link.sfu,
                address=assigned.address,
                token=assigned.token,
                generation=link.generation,
            )
        )

    def _fail_target(self, reason: str, now: float) -> None:
        assert self.links.target is not None
        self._do(m.TellStep(step=m.MoveStep.FAILED, sfu=self.links.target.sfu, reason=reason))
        self.heard.exclude(self.links.target.sfu, now=now)
        if self.wish is not None:
            self.wish.missed = True
        self._abandon_target()
        self._retry(now)

    def _abandon_target(self) -> None:
        assert self.links.target is not None
        self._do(m.Abandon(link=self.links.target.number))
        self.links.target = None

    def _announce(self, link: CarryingLink, publication: str) -> None:
        self._do(m.Announce(publication=publication, sfu=link.sfu, generation=link.generation))

    def _announce_all(self, link: CarryingLink) -> None:
        for publication in self.publications:
            if publication in link.flowing:
                self._announce(link, publication)

    def _is_all_we_have(self, target: CarryingLink) -> bool:
        return self.links.home is None and bool(target.flowing)

    def _switch(self, now: float) -> None:
        self._take_home(now)
        self._consider(now)

    def _take_home(self, now: float) -> None:
        """The target is the home from now on."""
        assert self.wish is not None
        home, old = self.links.switch(started=self.wish.started, now=now)
        if old is not None:
            self._announce_all(home)
        self._do(m.TellStep(step=m.MoveStep.SWITCHED, sfu=home.sfu, reason=self.wish.cause.value))
        self.wish = self._said = None
        self.phase = Phase.SETTLED
        if home.has_media:
            self._fruitless = 0
        self._release_idle(now)

    def _release_idle(self, now: float) -> None:
        for old in [old for old in self.links.olds if self.links.may_go(old)]:
            self._release(old, now)

    def _release(self, old: FormerHome, now: float) -> None:
        self.links.olds.remove(old)
        took_ms = round((now - old.started) * 1000.0, 1)
        self._do(
            m.Abandon(link=old.link.number) if old.link.lost else m.LetGo(link=old.link.number),
            m.ReportMoved(sfu=old.to, left=old.link.sfu, took_ms=took_ms),
        )

    def _left(self, event: m.Left, now: float) -> None:
        for link in self.links.all():
            self._do(m.Abandon(link=link.number))
        self.links = CarryingLinks()
        self.wish = None
        self.phase = Phase.LEFT


_HANDLERS: dict[type, Callable[..., None]] = {
    m.Joined: Mover._joined,
    m.RouterBack: Mover._router_back,
    m.RouterLost: Mover._router_lost,
    m.Assigned: Mover._assigned,
    m.Unassigned: Mover._unassigned,
    m.CordonHeard: Mover._cordoned,
    m.CordonTakenBack: Mover._uncordoned,
    m.SfuEnded: Mover._gone,
    m.AskedToMove: Mover._asked_to_move,
    m.PresenceChanged: Mover._presence_changed,
    m.LinkEntered: Mover._entered,
    m.MediaConnected: Mover._media_connected,
    m.PublicationFlows: Mover._flowing,
    m.Watched: Mover._watched,
    m.LinkDown: Mover._link_down,
    m.Left: Mover._left,
}
