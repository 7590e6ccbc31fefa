/**
 * Where the player publishes, and how it moves from one SFU to another without a gap. Pure: events and `now` in,
 * effects out; docs/protocol.md section 4 is the source of its steps.
 *
 * A move in order: request an SFU, open a link there, publish the same publications beside the old ones, wait until
 * all of them flow, tell the room, and let the old link go once nobody consumes from it. A step that fails before the
 * room was told leaves the old link as it was.
 *
 * Effects:  {do: "decided", sfu, move, reason}
 *           {do: "request-sfu", request, leave, incarnation, revision, exclude, reason}
 *           {do: "open-link", sfu, address, token}
 *           {do: "publish-on", sfu, generation}        publish everything there, with this generation
 *           {do: "announce", publication, kind, source, sfu, generation}
 *           {do: "release", sfu}                       stop publishing there; close it unless it is subscribed to
 *           {do: "move-began", leave, reason}
 *           {do: "move-failed", sfu, reason}
 *           {do: "move-ended", sfu, left, tookMs}
 */

import { Cordons } from "./cordons.js";
import { fullJitter } from "./jitter.js";
import { Leaving } from "./leaving.js";
import { Phase, TIMED_OUT, TIMEOUT_MS } from "./phase.js";
import { presenceOf } from "./protocol.js";
import { decide, deskRule } from "./rule.js";

/** An SFU that failed this player is not asked for again for this long (jicofo's failed-node retry) [ms]. */
export const EXCLUDE_MS = 60_000;

export class Mover {
  #home = null; // {sfu, incarnation, revision, generation}
  #attempt = null; // {cause, leave, startedAt, phase, deadline, request, target, generation, flowing, retrying, missed}
  #publications = new Map(); // id -> {kind, source, live}; live once the room has been told
  #cordons = new Cordons();
  #leaving = new Leaving();
  #excluded = new Map(); // sfu -> until
  #generation = 0; // the highest given out
  #decision = null; // {sfu, move, reason, by}
  #failures = 0;
  #steps = []; // of the attempt under way, or of the last one: {step, atMs}
  #effects = [];
  #now = 0;

  /** @param {{rng: () => number, newId: () => string, rule?: Function, presence?: object}} options */
  constructor({ rng, newId, rule = deskRule, presence = {} }) {
    this.rng = rng;
    this.newId = newId;
    this.rule = rule;
    this.presence = presenceOf(presence);
  }

  /** @returns {object[]} effects, to be done in this order */
  handle(event, { now }) {
    const handler = Object.hasOwn(this.#handlers, event.type) && this.#handlers[event.type];
    if (!handler) throw new Error(`the mover knows no event ${event.type}`);
    this.#now = now;
    this.#effects = [];
    handler(event);
    this.#consider();
    for (const sfu of this.#leaving.due(now)) this.#letGo(sfu);
    return this.#effects;
  }

  /** When to send a `tick` event, or null [ms of the caller's clock]. */
  nextDeadline() {
    const asked = this.#home && !this.#attempt ? this.#cordons.askedAt(this.#home.sfu) : null;
    const at = [this.#leaving.nextDeadline(), this.#attempt?.deadline ?? null, asked].filter((time) => time !== null);
    return at.length ? Math.min(...at) : null;
  }

  /** The SFUs whose links must stay open for publishing. */
  links() {
    return new Set([this.#home?.sfu, this.#attempt?.target?.sfu, ...this.#leaving.sfus()].filter(Boolean));
  }

  /** For people and tests; times are the caller's clock [ms]. */
  state() {
    const sfu = this.#home?.sfu ?? null;
    const phase = this.#attempt?.phase ?? (sfu ? Phase.SETTLED : Phase.IDLE);
    return {
      phase,
      home: sfu,
      target: this.#attempt?.target?.sfu ?? null,
      leaving: this.#leaving.sfus(),
      cordon: sfu && this.#cordons.notice(sfu),
      asked: sfu !== null && this.#cordons.askedAt(sfu) !== null,
      choice: sfu && this.#cordons.choice(sfu),
      decision: this.#decision,
      retryAt: phase === Phase.BACKING_OFF ? this.#attempt.deadline : null,
      failures: this.#failures,
      excluded: [...this.#excluded.keys()],
      generation: this.#home?.generation ?? 0,
      steps: [...this.#steps],
    };
  }

  // --- deciding ---

  #consider() {
    const sfu = this.#home?.sfu;
    const notice = sfu && this.#cordons.notice(sfu);
    if (!notice) {
      this.#decision = null;
      return;
    }
    const inS = (at) => (at === null ? null : Math.max(0, (at - this.#now) / 1000));
    const facts = { sfu, asksInS: inS(notice.asksAt), endsInS: inS(notice.endsAt), presence: this.presence };
    const askedAt = this.#cordons.askedAt(sfu);
    const choice = this.#cordons.choice(sfu);
    const decision = { sfu, ...decide({ asked: askedAt !== null, choice, rule: this.rule, facts }) };
    const last = this.#decision;
    if (last?.sfu !== sfu || last.move !== decision.move || last.reason !== decision.reason) {
      this.#do("decided", { sfu, move: decision.move, reason: decision.reason });
    }
    this.#decision = decision;
    if (!decision.move) this.#giveUpMove(decision.reason);
    else if (!this.#attempt && (choice === "move" || this.#now >= (askedAt ?? 0))) {
      this.#begin({ leave: this.#home, cause: decision.by === "asked" ? "asked" : "cordoned" });
      this.#request();
    }
  }

  /** The move stops, if the room does not know of it yet. */
  #giveUpMove(reason) {
    const attempt = this.#attempt;
    if (!attempt || !this.#home) return;
    if (attempt.target) this.#do("release", { sfu: attempt.target.sfu });
    this.#attempt = null;
    this.#failures = 0;
    this.#step(`given up: ${reason}`);
    this.#do("move-failed", { sfu: attempt.target?.sfu ?? null, reason });
  }

  // --- an attempt ---

  #begin({ leave, cause, retrying = null }) {
    this.#steps = [];
    this.#failures = 0;
    this.#attempt = { cause, leave, retrying, startedAt: this.#now, target: null, request: null };
    this.#do("move-began", { leave: leave?.sfu ?? retrying?.sfu ?? null, reason: cause });
  }

  #enter(phase, deadline = this.#now + TIMEOUT_MS[phase]) {
    Object.assign(this.#attempt, { phase, deadline });
  }

  #request() {
    const attempt = this.#attempt;
    this.#enter(Phase.REQUESTING);
    attempt.request = this.newId();
    for (const [sfu, until] of this.#excluded) if (until <= this.#now) this.#excluded.delete(sfu);
    this.#step("asked the router");
    this.#do("request-sfu", {
      request: attempt.request,
      leave: attempt.leave?.sfu ?? "",
      incarnation: attempt.leave?.incarnation ?? 0,
      revision: attempt.leave?.revision ?? 0,
      exclude: [...new Set([...this.#excluded.keys(), ...this.#leaving.sfus()])],
      reason: this.#reason(),
    });
  }

  /** Why the router is asked: as long as home carries us nothing is lost by an attempt that failed. */
  #reason() {
    const { cause, missed } = this.#attempt;
    if (["cordoned", "asked", "lost"].includes(cause)) return cause;
    return missed ? "failed" : "join";
  }

  #connect({ sfu, address, token, incarnation, revision }) {
    if (this.#leaving.has(sfu)) this.#letGo(sfu);
    Object.assign(this.#attempt, { target: { sfu, incarnation, revision }, request: null });
    this.#enter(Phase.CONNECTING);
    this.#step(`assigned ${sfu}`);
    this.#do("open-link", { sfu, address, token });
  }

  #confirm() {
    const attempt = this.#attempt;
    this.#enter(Phase.CONFIRMING);
    Object.assign(attempt, { generation: ++this.#generation, flowing: new Set() });
    this.#step("connected");
    this.#do("publish-on", { sfu: attempt.target.sfu, generation: attempt.generation });
    this.#switchIfAllFlow();
  }

  #switchIfAllFlow() {
    const { flowing, target, generation, leave, retrying, startedAt } = this.#attempt;
    if ([...this.#publications].some(([id, { live }]) => live && !flowing.has(id))) return;
    const old = this.#home;
    this.#home = { ...target, generation };
    this.#attempt = null;
    this.#failures = 0;
    this.#step("switched");
    for (const id of flowing) this.#announce(id);
    if (old) {
      this.#leaving.add(old.sfu, { now: this.#now, startedAt });
      this.#cordons.choose(old.sfu, null);
    } else if (leave ?? retrying) this.#ended((leave ?? retrying).sfu, startedAt);
  }

  #announce(publication) {
    const known = this.#publications.get(publication);
    const { sfu, generation } = this.#home;
    known.live = true;
    this.#do("announce", { publication, kind: known.kind, source: known.source, sfu, generation });
  }

  #fail(reason, { atOnce = false, notBefore = 0 } = {}) {
    const attempt = this.#attempt;
    const sfu = attempt.target?.sfu ?? null;
    if (sfu) {
      this.#do("release", { sfu });
      this.#excluded.set(sfu, this.#now + EXCLUDE_MS);
      attempt.missed = true; // one could not be reached; that there was none to be had is another thing
    }
    this.#step(`failed: ${reason}`);
    this.#do("move-failed", { sfu, reason });
    this.#failures++;
    Object.assign(attempt, { target: null, request: null });
    if (atOnce) this.#request();
    else {
      const retryAt = this.#now + fullJitter(this.#failures - 1, { rng: this.rng });
      this.#enter(Phase.BACKING_OFF, Math.max(notBefore, retryAt));
    }
  }

  // --- letting the old one go ---

  #letGo(sfu) {
    const startedAt = this.#leaving.take(sfu);
    this.#do("release", { sfu });
    this.#ended(sfu, startedAt);
  }

  #ended(left, startedAt) {
    this.#step("let the old one go");
    this.#do("move-ended", { sfu: this.#home?.sfu ?? "", left, tookMs: this.#now - startedAt });
  }

  /** `again`: the router may send us back there, which tries the SFU once more. */
  #loseHome({ again }) {
    const lost = this.#home;
    this.#home = null;
    this.#leaving.forgetSfu(lost.sfu);
    for (const publication of this.#publications.values()) publication.live = false;
    this.#do("release", { sfu: lost.sfu });
    if (!this.#attempt) {
      this.#begin({ leave: again ? null : lost, cause: "lost", retrying: again ? lost : null });
      this.#request();
      return;
    }
    // A move was under way: it goes on, with nothing left to keep.
    this.#attempt.cause = "lost";
    if (this.#attempt.phase === Phase.BACKING_OFF) this.#request();
    else if (this.#attempt.phase === Phase.CONFIRMING) this.#switchIfAllFlow();
  }

  #step(step) {
    this.#steps.push({ step, atMs: this.#now });
  }

  #do(effect, fields) {
    this.#effects.push({ do: effect, ...fields });
  }

  // --- what each event does ---

  #handlers = {
    presence: ({ presence }) => {
      this.presence = presenceOf(presence);
    },

    /** The person said what to do about the SFU it is on: {pick: "move" | "stay" | null}. */
    choose: ({ pick }) => {
      if (this.#home) this.#cordons.choose(this.#home.sfu, pick);
    },

    "add-publication": ({ publication, kind, source }) => {
      this.#publications.set(publication, { kind, source, live: false });
      this.#republish();
    },

    "remove-publication": ({ publication }) => {
      this.#publications.delete(publication);
      this.#leaving.forgetPublication(publication);
      this.#republish();
      if (this.#attempt?.phase === Phase.CONFIRMING) this.#switchIfAllFlow();
    },

    /** The router named an SFU: in answer to a request, or (no `request`) by itself in `welcome`. */
    assigned: (event) => {
      if (event.request && event.request !== this.#attempt?.request) return;
      if (event.sfu === this.#home?.sfu) {
        Object.assign(this.#home, { incarnation: event.incarnation, revision: event.revision });
        this.#giveUpMove("the router keeps us where we are");
        return;
      }
      if (this.#attempt?.target) this.#do("release", { sfu: this.#attempt.target.sfu });
      if (!this.#attempt) this.#begin({ leave: this.#home, cause: "assigned" });
      this.#connect(event);
    },

    /** The router refused, or (no `request`) had no SFU for us at the join: {request, code, retryAfterMs}. */
    refused: ({ request, code, retryAfterMs }) => {
      if (request ? request !== this.#attempt?.request : this.#home || this.#attempt) return;
      if (!this.#attempt) this.#begin({ leave: null, cause: "join" });
      // Spread over the time the router gave, so that a whole room does not come back in one moment.
      this.#fail(code, { notBefore: this.#now + (retryAfterMs ?? 0) * (0.5 + this.rng()) });
    },

    /** The link to {sfu} is open for us. */
    entered: ({ sfu }) => {
      if (this.#attempt?.phase === Phase.CONNECTING && this.#attempt.target.sfu === sfu) this.#confirm();
    },

    /** {publication} of {generation} has begun to flow at {sfu}. */
    flowing: ({ sfu, publication, generation }) => {
      const known = this.#publications.get(publication);
      const attempt = this.#attempt;
      if (!known) return;
      if (attempt?.phase === Phase.CONFIRMING && attempt.target.sfu === sfu) {
        if (generation !== attempt.generation) return;
        attempt.flowing.add(publication);
        this.#step(`${known.kind} flows`);
        this.#switchIfAllFlow();
      } else if (this.#home?.sfu === sfu && generation === this.#home.generation && !known.live) {
        this.#announce(publication);
      }
    },

    consumers: ({ sfu, publication, count }) => this.#leaving.consumers(sfu, publication, count),

    /** The link to {sfu} broke, could not be opened, or was refused: {reason}. */
    "link-lost": ({ sfu, reason }) => {
      const attempt = this.#attempt;
      if (attempt?.target?.sfu === sfu) {
        const atOnce = attempt.retrying?.sfu === sfu;
        if (atOnce) Object.assign(attempt, { leave: attempt.retrying, retrying: null });
        this.#fail(reason, { atOnce });
      } else if (this.#leaving.has(sfu)) this.#letGo(sfu);
      else if (this.#home?.sfu === sfu) this.#loseHome({ again: reason !== "terminating" });
    },

    /** A router says that {sfu} has ended or was lost. */
    "sfu-gone": ({ sfu }) => {
      this.#cordons.forget(sfu);
      this.#excluded.set(sfu, this.#now + EXCLUDE_MS);
      if (this.#attempt?.target?.sfu === sfu) this.#fail("gone", { atOnce: true });
      else if (this.#leaving.has(sfu)) this.#letGo(sfu);
      else if (this.#home?.sfu === sfu) this.#loseHome({ again: false });
    },

    /** {sfu, incarnation, revision, reason, asksInMs, endsInMs} takes no new work. */
    cordoned: (event) => {
      if (!this.#cordons.cordoned(event, this.#now) || this.#home?.sfu !== event.sfu) return;
      Object.assign(this.#home, { incarnation: event.incarnation, revision: event.revision });
    },

    /** The cordon of {sfu, incarnation, revision} was taken back. */
    uncordoned: (event) => {
      if (!this.#cordons.uncordoned(event)) return;
      if (this.#home?.sfu === event.sfu) this.#giveUpMove("the cordon was taken back");
    },

    /** {sfu} asks us to move within {withinMs}, at a moment of our own choice. */
    "please-move": ({ sfu, withinMs }) => {
      if (this.#home?.sfu === sfu) this.#cordons.ask(sfu, this.#now + this.rng() * withinMs);
    },

    /** The session is a new one (the old could not be resumed): what is open belongs to nobody. */
    rejoined: () => {
      for (const sfu of this.links()) this.#do("release", { sfu });
      this.#home = null;
      this.#attempt = null;
      this.#leaving.clear();
      this.#cordons.clear();
      for (const publication of this.#publications.values()) publication.live = false;
    },

    tick: () => {
      const attempt = this.#attempt;
      if (!attempt || this.#now < attempt.deadline) return;
      if (attempt.phase === Phase.BACKING_OFF) this.#request();
      else this.#fail(TIMED_OUT[attempt.phase]);
    },
  };

  /** The set of publications has changed: say so wherever they are published. */
  #republish() {
    if (this.#home) this.#do("publish-on", { sfu: this.#home.sfu, generation: this.#home.generation });
    if (this.#attempt?.phase !== Phase.CONFIRMING) return;
    this.#do("publish-on", { sfu: this.#attempt.target.sfu, generation: this.#attempt.generation });
  }
}
