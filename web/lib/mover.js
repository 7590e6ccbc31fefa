/**
 * A player's way from SFU to SFU, make-before-break: events and `now` in, effects out; docs/protocol.md section 4 is the
 * source of its steps.
 *
 * The home link carries the player's publications. A move opens a target link as well; once everything that flowed at
 * home flows there the target becomes the home, the room is told, and the former home is let go when it has no subscriber
 * left. A failure before the switch costs the target only.
 *
 * `player/core/mover.py` is its twin: tests/movers/ holds the stories that both must pass, docs/decisions/movers.md says
 * what was decided where they differed. What only this one has: publications that come and go, a person who chooses, and
 * a state for people to look at.
 *
 * Effects:  {do: "decided", sfu, move, reason}
 *           {do: "request-sfu", request, leave, incarnation, revision, exclude, reason}
 *           {do: "open-link", link, sfu, address, token}
 *           {do: "publish-on", link, generation}       publish everything there, with this generation
 *           {do: "announce", publication, kind, source, sfu, generation}
 *           {do: "release", link, sfu}                 stop publishing there; close it unless it is subscribed to
 *           {do: "move-began", leave, reason}
 *           {do: "move-failed", sfu, reason}           `sfu` is null when no link was opened yet
 *           {do: "move-cancelled", sfu, reason}        the reason to move is gone, and the player stays
 *           {do: "move-ended", sfu, left, tookMs}      the old link is let go
 *           {do: "recovered", sfu, left, tookMs}       on an SFU again after the loss of the old one
 */

import { Heard, MAX_EXCLUDED } from "./heard.js";
import { fullJitter } from "./jitter.js";
import { CarryingLink, CarryingLinks } from "./links.js";
import {
  ENTER_TIMEOUT_MS,
  EXCLUDING,
  FLOW_TIMEOUT_MS,
  MAX_RETRY_AFTER_MS,
  NO_MEDIA,
  Phase,
  REQUEST_TIMEOUT_MS,
  REST_TIMEOUT_MS,
  UNFORCED,
} from "./phase.js";
import { presenceOf } from "./protocol.js";
import { decide, deskRule, RuleBox } from "./rule.js";

export class Mover {
  #phase = Phase.OUTSIDE;
  #due = 0; // when the phase's own deadline is: the next request, or the time-out of the request or the link
  #links = new CarryingLinks();
  #heard = new Heard();
  #wish = null; // {cause, left, startedAt, attempts, told, missed}; exactly while waiting, asking or opening
  #online = false;
  #request = "";
  #publications = new Map(); // id -> {kind, source}
  #fruitless = 0; // homes in a row that were lost before any media got through
  #number = 0; // the highest link number given out; it only grows, so it serves as the generation, too
  #decision = null; // {sfu, move, reason, by}, about the home while that is cordoned
  #steps = []; // of the move under way, or of the last one: {step, reason, atMs}
  #effects = [];
  #now = 0;

  /** @param {{rng: () => number, newId: () => string, rule?: Function, presence?: object}} options */
  constructor({ rng, newId, rule = deskRule, presence = {} }) {
    this.rng = rng;
    this.newId = newId;
    this.box = new RuleBox(rule);
    this.presence = presenceOf(presence);
  }

  /** @returns {object[]} effects, to be done in this order */
  handle(event, { now }) {
    const handler = Object.hasOwn(this.#handlers, event.type) && this.#handlers[event.type];
    if (!handler) throw new Error(`the mover knows no event ${event.type}`);
    this.#now = now;
    this.#effects = [];
    handler(event);
    return this.#effects;
  }

  /** When to send a `tick` event, or null [ms of the caller's clock]. */
  nextDeadline() {
    const at = this.#links.olds.map(({ until }) => until);
    const isWaiting = this.#phase === Phase.WAITING && this.#online;
    if (isWaiting || [Phase.ASKING, Phase.OPENING].includes(this.#phase)) at.push(this.#due);
    return at.length ? Math.min(...at) : null;
  }

  /** The numbers of the links that must stay open for publishing. */
  links() {
    return new Set(this.#links.all().map(({ number }) => number));
  }

  /** Is it the link that is being opened? */
  isTarget(link) {
    return link !== null && this.#links.target?.number === link;
  }

  /**
   * SFUs to exclude from a join. A session that begins again on an SFU whose old link still carries media would have to
   * replace that media at once; elsewhere the old copies go on until the new ones flow. Routers give an excluded SFU
   * where there is no other.
   */
  skipped({ now }) {
    const carrying = this.#links.all().map((link) => link.sfu);
    return [...new Set([...this.#heard.skipped(now), ...carrying])].slice(-MAX_EXCLUDED);
  }

  /** For people and tests; times are the caller's clock [ms]. */
  state() {
    const { home, target, olds } = this.#links;
    const sfu = home?.sfu ?? null;
    const retrying = this.#phase === Phase.WAITING && this.#wish.attempts > 0;
    return {
      phase: this.#phase,
      home: sfu,
      target: target?.sfu ?? null,
      entered: target?.entered ?? false,
      leaving: olds.map(({ link }) => link.sfu),
      cordon: sfu && this.#heard.notice(sfu),
      asked: sfu !== null && this.#heard.askedAt(sfu) !== null,
      choice: sfu && this.#heard.choice(sfu),
      decision: this.#decision,
      retryAt: retrying ? this.#due : null,
      failures: this.#wish?.attempts ?? 0,
      ruleFaults: this.box.faults,
      generation: home?.generation ?? 0,
      steps: [...this.#steps],
    };
  }

  // --- deciding ---

  /** Ask the ladder again, when at rest or in a move of our own will: until the switch it can be taken back. */
  #consider() {
    const { home } = this.#links;
    if (!home || home.lost || !(this.#phase === Phase.SETTLED || UNFORCED.includes(this.#wish?.cause))) return;
    const notice = this.#heard.notice(home.sfu);
    if (!notice) return;
    const moment = this.#heard.askedAt(home.sfu);
    const choice = this.#heard.choice(home.sfu);
    const decision = decide({ asked: moment !== null, choice, box: this.box, facts: this.#facts(notice) });
    this.#say({ sfu: home.sfu, ...decision });
    if (!decision.move) this.#cancel(decision.reason);
    else if (!this.#wish) {
      this.#wish = this.#newWish(moment === null ? "cordoned" : "asked");
      this.#askAt(moment === null || choice === "move" ? this.#now : moment);
    } else {
      if (moment !== null) this.#wish.cause = "asked";
      if (choice === "move" && this.#phase === Phase.WAITING && !this.#wish.attempts) this.#askAt(this.#now);
    }
  }

  #facts({ sfu, asksAt, endsAt }) {
    const inS = (at) => (at === null ? null : Math.max(0, (at - this.#now) / 1000));
    return { sfu, asksInS: inS(asksAt), endsInS: inS(endsAt), presence: this.presence };
  }

  #say(decision) {
    const { sfu, move, reason } = decision;
    const last = this.#decision;
    this.#decision = decision;
    if (last?.sfu === sfu && last.move === move && last.reason === reason) return;
    this.#do("decided", { sfu, move, reason });
  }

  /** The reason to leave home is gone; a wish that was forced upon us does not end by that. */
  #cancel(reason) {
    const { home, target } = this.#links;
    if (!home || home.lost || !UNFORCED.includes(this.#wish?.cause)) return;
    if (target) this.#abandonTarget();
    this.#step("given up", reason);
    this.#do("move-cancelled", { sfu: home.sfu, reason });
    this.#wish = null;
    this.#phase = Phase.SETTLED;
  }

  // --- moving ---

  #newWish(cause) {
    return { cause, left: this.#links.home?.sfu ?? null, startedAt: this.#now, attempts: 0, told: false, missed: false };
  }

  #wait(at) {
    this.#phase = Phase.WAITING;
    this.#due = at;
  }

  #askAt(at) {
    this.#wait(at);
    if (this.#online && at <= this.#now) this.#ask();
  }

  #ask() {
    this.#tellStart();
    this.#request = this.newId();
    this.#phase = Phase.ASKING;
    this.#due = this.#now + REQUEST_TIMEOUT_MS;
    this.#step("asked the router");
    const leaving = this.#links.olds.map(({ link }) => link.sfu);
    const home = this.#links.home?.sfu ?? "";
    const question = { request: this.#request, home, leaving, reason: this.#reason() };
    this.#do("request-sfu", this.#heard.question(question, this.#now));
  }

  #tellStart() {
    if (this.#wish.told) return;
    Object.assign(this.#wish, { told: true, startedAt: this.#now });
    this.#steps = [];
    this.#do("move-began", { leave: this.#wish.left, reason: this.#wish.cause });
  }

  /** Why the router is asked: as long as home carries us nothing is lost by an attempt that failed. */
  #reason() {
    const { cause, missed } = this.#wish;
    if (cause === "join") return missed ? "failed" : "join";
    return cause === "rejoin" ? "lost" : cause;
  }

  #retry() {
    const pause = fullJitter(this.#wish.attempts++, { rng: this.rng });
    this.#wait(this.#now + pause);
  }

  #open({ sfu, address, token }) {
    this.#tellStart();
    this.#request = "";
    const link = (this.#links.target = new CarryingLink(++this.#number, sfu, this.#number));
    this.#phase = Phase.OPENING;
    this.#due = this.#now + ENTER_TIMEOUT_MS;
    this.#step(`assigned ${sfu}`);
    this.#do("open-link", { link: link.number, sfu, address, token });
  }

  #failTarget(reason) {
    const { sfu } = this.#links.target;
    this.#step("failed", reason);
    this.#do("move-failed", { sfu, reason });
    this.#heard.exclude(sfu, this.#now);
    this.#wish.missed = true; // one could not be reached; that there was none to be had is another thing
    this.#abandonTarget();
    this.#retry();
  }

  #abandonTarget() {
    const { target } = this.#links;
    this.#links.target = null;
    this.#do("release", { link: target.number, sfu: target.sfu });
  }

  #announce(link, publication) {
    const { kind, source } = this.#publications.get(publication);
    this.#do("announce", { publication, kind, source, sfu: link.sfu, generation: link.generation });
  }

  #announceAll(link) {
    for (const id of this.#publications.keys()) if (link.flowing.has(id)) this.#announce(link, id);
  }

  /** What does not flow at home, for it sends nothing, is not waited for; that media can get through is. */
  #switchIfAllFlow() {
    const { home, target } = this.#links;
    const awaited = home ? [...home.flowing] : [...this.#publications.keys()];
    if (!target.entered || (this.#publications.size && !target.hasMedia)) return;
    if (awaited.every((publication) => target.flowing.has(publication))) this.#switch();
  }

  /** The target's time is over: what flows there is enough, and so is a connection when no home is left. */
  #openDue() {
    const { home, target } = this.#links;
    if (!target.entered) this.#failTarget("no-answer");
    else if (target.flowing.size || (!home && target.connected)) this.#switch();
    else this.#failTarget("no-media");
  }

  #isAllWeHave(target) {
    return !this.#links.home && target.flowing.size > 0;
  }

  #switch() {
    this.#takeHome();
    this.#consider();
  }

  /** The target is the home from now on. */
  #takeHome() {
    const { cause, left, startedAt } = this.#wish;
    const old = this.#links.switch({ startedAt, now: this.#now });
    const { home } = this.#links;
    if (old) this.#announceAll(home);
    this.#step("switched");
    this.#wish = this.#decision = null;
    this.#phase = Phase.SETTLED;
    if (!old && cause !== "join") home.owes = { left, startedAt };
    if (home.hasMedia || !this.#fruitless) this.#mediaIsBack();
    this.#releaseIdle();
  }

  /** Nothing counts as recovered while SFU after SFU lets us in and no media gets through. */
  #mediaIsBack() {
    const { home } = this.#links;
    if (home.hasMedia) this.#fruitless = 0;
    if (!home.owes) return;
    const { left, startedAt } = home.owes;
    home.owes = null;
    this.#do("recovered", { sfu: home.sfu, left, tookMs: this.#now - startedAt });
  }

  #releaseIdle() {
    for (const old of this.#links.olds.filter((each) => this.#links.mayGo(each))) this.#release(old);
  }

  #release(old) {
    const { number, sfu } = old.link;
    this.#links.olds = this.#links.olds.filter((each) => each !== old);
    this.#step("let the old one go");
    this.#do("release", { link: number, sfu });
    this.#do("move-ended", { sfu: old.to, left: sfu, tookMs: this.#now - old.startedAt });
  }

  // --- losing things ---

  #lose(link, reason, { cut }) {
    const old = this.#links.old(link);
    if (old && !cut) return; // it is heard on, and goes when it is heard no more
    if (old) this.#release(old);
    else if (link === this.#links.target) this.#failTarget(reason);
    else this.#loseHome(link, reason, { cut });
  }

  #loseHome(home, reason, { cut }) {
    if (EXCLUDING.includes(reason)) this.#heard.exclude(home.sfu, this.#now);
    this.#fruitless = NO_MEDIA.includes(reason) && !home.hasMedia ? this.#fruitless + 1 : 0;
    if (cut) {
      this.#links.home = null;
      this.#decision = null;
      this.#do("release", { link: home.number, sfu: home.sfu });
      if (this.#links.target) this.#announceAll(this.#links.target);
    } else home.lost = true; // media goes on over it until the next link carries everything
    if (this.#phase !== Phase.SETTLED && !UNFORCED.includes(this.#wish?.cause)) return;
    this.#wish ??= this.#newWish("lost");
    Object.assign(this.#wish, { cause: "lost", left: home.sfu });
    // Only a first request that still waits is brought forward.
    const isFirst = this.#phase === Phase.WAITING && !this.#wish.attempts;
    if (this.#phase !== Phase.SETTLED && !isFirst) return;
    this.#wish.attempts = Math.max(0, this.#fruitless - 1);
    if (this.#fruitless) this.#retry();
    else this.#askAt(this.#now);
  }

  #step(step, reason = "") {
    this.#steps.push({ step, reason, atMs: this.#now });
  }

  #do(effect, fields) {
    this.#effects.push({ do: effect, ...fields });
  }

  // --- what each event does ---

  #handlers = {
    presence: ({ presence }) => {
      this.presence = presenceOf(presence);
      this.#consider();
    },

    /** The person said what to do about the SFU it is on: {pick: "move" | "stay" | null}. */
    choose: ({ pick }) => {
      if (this.#links.home) this.#heard.choose(this.#links.home.sfu, pick);
      this.#consider();
    },

    "add-publication": ({ publication, kind, source }) => {
      this.#publications.set(publication, { kind, source });
      this.#republish();
    },

    "remove-publication": ({ publication }) => {
      this.#publications.delete(publication);
      for (const link of this.#links.all()) link.forget(publication);
      this.#republish();
      this.#releaseIdle();
      if (this.#links.target) this.#switchIfAllFlow();
    },

    /** The router opened a new session. With `assigned` true the assignment comes next. */
    joined: ({ assigned }) => {
      this.#online = true;
      const { target } = this.#links;
      if (target && this.#isAllWeHave(target)) this.#takeHome();
      else if (target) this.#abandonTarget();
      for (const link of this.#links.all()) link.former = true;
      this.#heard.clear();
      this.#decision = null;
      this.#wish = this.#newWish(this.#links.home ? "rejoin" : "join");
      // Without an assignment an `error` follows that says when to ask.
      this.#wait(this.#now + (assigned ? 0 : fullJitter(0, { rng: this.rng })));
    },

    /** The session was resumed on some router, which may have missed what we said meanwhile. */
    "router-back": () => {
      this.#online = true;
      if (this.#links.home) this.#announceAll(this.#links.home);
    },

    /** The websocket to the router broke. What was asked will not be answered. */
    "router-lost": () => {
      this.#online = false;
      if (this.#phase === Phase.ASKING) this.#wait(this.#now);
    },

    /** The router named an SFU: in answer to a request, or (no `request`) unasked, behind a `welcome`. */
    assigned: (event) => {
      if ([Phase.OUTSIDE, Phase.OPENING].includes(this.#phase)) return;
      if (event.request && event.request !== this.#request) return;
      const isForbidden = this.#heard.forbids(event);
      if (!this.#wish) {
        if (this.#links.to(event.sfu).length || isForbidden) return;
        this.#wish = this.#newWish("lost");
      }
      if (isForbidden) {
        this.#heard.exclude(event.sfu, this.#now);
        this.#retry();
        return;
      }
      this.#heard.forget(event.sfu);
      if (this.#links.home?.sfu === event.sfu && UNFORCED.includes(this.#wish.cause)) {
        this.#decision = null;
        this.#cancel("kept");
        return;
      }
      for (const old of this.#links.olds.filter(({ link }) => link.sfu === event.sfu)) this.#release(old);
      this.#open(event);
    },

    /** The router refused, or (no `request`) had no SFU for us at the join: {request, code, retryAfterMs}. */
    refused: ({ request, code, retryAfterMs = null }) => {
      const isAnswer = this.#phase === Phase.ASKING && request === this.#request;
      if (!isAnswer && !(this.#phase === Phase.WAITING && !request)) return;
      this.#step("failed", code);
      this.#do("move-failed", { sfu: null, reason: code });
      this.#retry();
      if (retryAfterMs === null) return;
      // Spread over the time the router gave, so that a whole room does not come back in one moment.
      const pause = Math.min(retryAfterMs, MAX_RETRY_AFTER_MS) * (0.5 + this.rng());
      this.#due = Math.max(this.#due, this.#now + pause);
    },

    /** The SFU let us in over {link}. */
    entered: ({ link }) => {
      const { target } = this.#links;
      if (target?.number !== link || target.entered) return;
      target.entered = true;
      this.#due = this.#now + FLOW_TIMEOUT_MS;
      this.#step("connected");
      this.#do("publish-on", { link, generation: target.generation });
      this.#switchIfAllFlow();
    },

    /** The publish connection of {link} is up, whether or not packets flow; with nothing to publish, the other one. */
    connected: ({ link }) => {
      const { home, target } = this.#links;
      const found = this.#links.numbered(link);
      if (!found) return;
      found.connected = true;
      if (found === home) this.#mediaIsBack();
      else if (found === target && home) this.#switchIfAllFlow();
    },

    /** {publication} of {generation} has begun to flow over {link}. */
    flowing: ({ link: number, publication, generation }) => {
      const known = this.#publications.get(publication);
      const link = this.#links.numbered(number);
      if (!known || link?.generation !== generation || link.flowing.has(publication)) return;
      link.flowing.add(publication);
      link.entered = true;
      if (link === this.#links.home) {
        this.#announce(link, publication);
        this.#mediaIsBack();
        this.#releaseIdle();
      } else if (link === this.#links.target) {
        this.#step(`${known.kind} flows`);
        // With nothing to fall back to, the room has each publication as soon as it flows.
        if (!this.#links.home) this.#announce(link, publication);
        this.#due = Math.min(this.#due, this.#now + REST_TIMEOUT_MS);
        this.#switchIfAllFlow();
      }
    },

    consumers: ({ link, publication, count }) => {
      if (!this.#publications.has(publication)) return;
      this.#links.numbered(link)?.watched.set(publication, count);
      this.#releaseIdle();
    },

    /** {link} broke, could not be opened, or was refused; `cut` unless its media may go on. */
    "link-lost": ({ link, reason, cut = true }) => {
      const found = this.#links.numbered(link);
      if (found) this.#lose(found, reason, { cut });
    },

    /** A router says that {sfu} has ended or was lost. */
    "sfu-gone": ({ sfu, reason }) => {
      this.#heard.forget(sfu);
      this.#heard.exclude(sfu, this.#now);
      // Lost is what a router hears no more of. Its media may flow on, and is kept until other media does.
      for (const link of this.#links.to(sfu)) this.#lose(link, reason || "gone", { cut: reason !== "lost" });
    },

    /** {sfu, incarnation, revision, reason, asksInMs, endsInMs} takes no new work. */
    cordoned: (event) => {
      this.#heard.cordon(event, this.#now);
      const { target } = this.#links;
      if (target?.sfu === event.sfu) {
        if (this.#isAllWeHave(target)) this.#takeHome();
        else this.#failTarget("cordoned");
      }
      this.#consider();
    },

    /** The cordon of {sfu, incarnation, revision} was taken back. */
    uncordoned: (event) => {
      if (!this.#heard.uncordon(event) || this.#links.home?.sfu !== event.sfu) return;
      this.#decision = null;
      this.#cancel("uncordoned");
    },

    /** {sfu, incarnation, revision} asks us to move within {withinMs}, at a moment of our own choice. */
    "please-move": (event) => {
      if (this.#links.home?.sfu !== event.sfu || this.#heard.askedAt(event.sfu) !== null) return;
      this.#heard.ask(event, this.#now + this.rng() * Math.max(0, event.withinMs));
      this.#consider();
    },

    tick: () => {
      if (this.#now >= this.#due) {
        if (this.#phase === Phase.WAITING && this.#online) this.#ask();
        else if (this.#phase === Phase.ASKING) this.#unanswered();
        else if (this.#phase === Phase.OPENING) this.#openDue();
      }
      for (const old of this.#links.olds.filter(({ until }) => this.#now >= until)) this.#release(old);
    },
  };

  #unanswered() {
    this.#step("failed", "router-silent");
    this.#do("move-failed", { sfu: null, reason: "router-silent" });
    this.#retry();
  }

  /** The set of publications has changed: say so wherever the present session publishes them. */
  #republish() {
    const { home, target } = this.#links;
    for (const link of [home, target]) {
      if (link?.entered && !link.lost && !link.former) this.#do("publish-on", { link: link.number, generation: link.generation });
    }
  }
}
