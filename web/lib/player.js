/**
 * A player: joins a room, publishes, shows the others, and moves off an SFU that is being retired without a gap.
 *
 *     const player = new Player({ routers: ["wss://router/player"], token });
 *     player.on("track", ({ publication, element }) => container.append(element));
 *     await player.join();
 *     player.publish(cameraTrack, { source: "camera" });
 *
 * Events:  "state" state            anything in `player.state` has changed (told once a turn of the event loop)
 *          "copy"  {publication, copy, kind, player, element}          arrives beside the one shown; mount it hidden
 *          "track" {publication, copy, kind, player, element, track}   show this one from now on
 *          "ended" {publication}    the publication is over
 *          "notice" {sfu, asksInMs, endsInMs, reason}                  our SFU is being retired
 *          "decided" {sfu, move, reason}
 *          "moved" {sfu, left, tookMs, audioMs, videoMs, steps}        our own move is complete
 *          "switched" {publication, player, kind, from, to, gapMs, overlapMs}   somebody else's copy was switched;
 *                                  both copies delivered for `overlapMs` before that
 *          "trouble" {code, message}                                   for people; the player goes on by itself
 *          "over"  {code, advice}   the session has ended and will not come back by itself
 */

import { Copies } from "./copies.js";
import { Emitter } from "./emitter.js";
import { wallClock } from "./frame-tap.js";
import { GapLedger } from "./gaps.js";
import { LinkPool } from "./link-pool.js";
import { Mover } from "./mover.js";
import { presenceOf, randomId } from "./protocol.js";
import { RouterConnection } from "./router-connection.js";
import { deskRule } from "./rule.js";
import { Subscriptions } from "./subscriptions.js";

/** A switch is over this long after the new copy was shown: late frames of the old one have come by then [ms]. */
const SWITCH_SETTLES_MS = 500;
const MOVE = "move";

export class Player extends Emitter {
  #router;
  #mover;
  #pool;
  #copies;
  #subscriptions = new Subscriptions();
  #gaps = new GapLedger();
  #sources = new Map(); // publication -> Source with `source`
  #announced = new Map(); // publication -> record, what the room has been told
  #players = new Map();
  #session = null; // the last `welcome`
  #connection = { status: "idle", url: null, retryInMs: null, detail: "" };
  #timer = null;
  #told = false;
  #lastMove = null;
  #switches = new Map(); // publication -> the last switch of its copies, the newest last
  #timings = {};

  /**
   * @param {object} options
   * @param {string[]} options.routers websocket URLs of routers
   * @param {string | (() => Promise<string>)} options.token from the app
   * @param {(facts: import("./rule.js").Facts) => import("./rule.js").Decision} [options.rule] is it safe to move?
   * @param {object} [options.presence] `at_desk`, `in_ambient_meeting`, `in_conversation`
   * @param {() => number} [options.rng]
   */
  constructor({ routers, token, rule = deskRule, presence = {}, rng = Math.random, shuffle = true }) {
    super();
    this.#mover = new Mover({ rng, newId: () => randomId(8), rule, presence });
    const facts = () => this.#resumeFacts();
    this.#router = new RouterConnection({ routers, token, facts, rng, shuffle });
    this.#pool = new LinkPool({ requestAccess: (sfu) => this.#requestAccess(sfu), rng });
    this.#copies = new Copies();
    this.#listen();
  }

  /** Join the room. Resolves with the first state; rejects with advice for people when the room refuses us. */
  async join() {
    const over = this.#router.once("over").then(({ advice }) => Promise.reject(new Error(advice)));
    const welcome = this.#router.once("welcome");
    this.#router.connect();
    await Promise.race([welcome, over]);
    over.catch(() => {}); // later ends are told by the event
    return this.state;
  }

  /**
   * Publish a track; it stays published through every move.
   * @param {MediaStreamTrack} track
   * @param {{source?: string, encodings?: RTCRtpEncodingParameters[]}} options
   * @returns {string} the publication's id
   */
  publish(track, { source = track.kind === "audio" ? "microphone" : "camera", encodings } = {}) {
    if (this.#session && !this.#session.can_publish) throw new Error("this token does not allow to publish");
    const publication = randomId();
    this.#sources.set(publication, { publication, kind: track.kind, source, track, encodings });
    track.addEventListener("ended", () => this.unpublish(publication));
    this.#move({ type: "add-publication", publication, kind: track.kind, source });
    return publication;
  }

  unpublish(publication) {
    if (!this.#sources.delete(publication)) return;
    if (this.#announced.delete(publication)) this.#router.send("unpublish", { publication });
    this.#move({ type: "remove-publication", publication });
  }

  /** Another track for the same publication: a changed camera, without anybody noticing more than that. */
  async replaceTrack(publication, track) {
    Object.assign(this.#sources.get(publication), { track });
    await Promise.all(this.#pool.sfus().map((sfu) => this.#pool.get(sfu).replaceTrack(publication, track)));
  }

  /** Tell the rule and the room what we are doing. */
  setPresence(changes) {
    const presence = presenceOf({ ...this.#mover.presence, ...changes });
    this.#router.send("set-presence", { presence });
    this.#move({ type: "presence", presence });
  }

  /** Move off the cordoned SFU now, whatever the rule says. False when our SFU is not cordoned. */
  moveNow() {
    return this.#choose("move");
  }

  /** Stay on the cordoned SFU until it asks, whatever the rule says. False when our SFU is not cordoned. */
  stay() {
    return this.#choose("stay");
  }

  /** Leave it to the rule again. */
  letRuleDecide() {
    return this.#choose(null);
  }

  /** After a click: play the sound that the browser has held back. */
  resumeSound() {
    this.#copies.resumeSound();
    this.#changed();
  }

  /** Do not wait for the next retry of the router. */
  retryNow() {
    this.#router.retryNow();
  }

  /** End everything. */
  close() {
    clearTimeout(this.#timer);
    this.#router.close();
    this.#pool.close();
    this.#copies.close();
  }

  /** All that a page shows, as plain values. Times are milliseconds from now. */
  get state() {
    const now = performance.now();
    const { cordon, retryAt, ...move } = this.#mover.state();
    const inMs = (at) => (at === null ? null : Math.max(0, at - now));
    return {
      connection: this.#connection,
      router: this.#session?.router ?? null,
      player: this.#session?.player ?? null,
      room: this.#session?.room ?? null,
      name: this.#session?.name ?? null,
      canPublish: this.#session?.can_publish ?? null,
      presence: this.#mover.presence,
      move: { ...move, retryInMs: inMs(retryAt) },
      cordon: cordon && { ...cordon, asksInMs: inMs(cordon.asksAt), endsInMs: inMs(cordon.endsAt) },
      links: this.#pool.sfus(),
      players: [...this.#players.values()],
      publications: this.#subscriptions.list(),
      published: [...this.#announced.values()],
      lastMove: this.#lastMove,
      switches: [...this.#switches.values()],
      moveGaps: this.#gaps.has(MOVE) ? this.#gaps.read(MOVE, { nowMs: wallClock() }) : null,
      gapsAreExact: this.#copies.tap.isExact,
      soundBlocked: this.#copies.isSoundBlocked,
      timings: this.#timings,
    };
  }

  /**
   * What the browser counts of each copy, and the gaps since the beginning.
   * @returns {Promise<{copies: object[], gaps: object}>}
   */
  async stats() {
    return { copies: await this.#copies.stats(), gaps: this.#gaps.overall() };
  }

  // --- what comes in ---

  #listen() {
    this.#router.on("status", (status) => {
      this.#connection = status;
      this.#changed();
    });
    this.#router.on("open", () => (this.#timings.openedAt ??= performance.now()));
    this.#router.on("welcome", (message) => this.#welcome(message));
    this.#router.on("message", (message) => this.#fromRouter[message.type]?.(message));
    this.#router.on("over", (detail) => this.#end(detail));
    for (const type of ["entered", "flowing", "consumers", "please-move"]) {
      this.#pool.on(type, (detail) => this.#move({ ...detail, type }));
    }
    this.#pool.on("track", (detail) => this.#trackArrived(detail));
    this.#pool.on("track-gone", ({ sfu, publication, mid }) => this.#trackGone(sfu, publication, mid));
    this.#pool.on("ended", ({ sfu, publication }) => this.#show(this.#subscriptions.copyEnded({ sfu, publication })));
    this.#pool.on("refused", (detail) => this.#refusedBySfu(detail));
    this.#pool.on("lost", (detail) => this.#linkLost(detail));
    this.#copies.on("ready", (detail) => this.#show(this.#subscriptions.firstMedia(detail)));
    this.#copies.on("frames", (frames) => frames.forEach((frame) => this.#gaps.arrive(frame)));
    this.#copies.on("sound-blocked", () => this.#changed());
  }

  #welcome(message) {
    this.#timings.welcomeAt ??= performance.now();
    if (!message.resumed && this.#session) {
      this.#announced.clear();
      this.#move({ type: "rejoined" });
    }
    this.#session = message;
    this.#subscriptions.self.add(message.player);
    this.#players = new Map(message.snapshot.players.map((player) => [player.player, player]));
    const now = performance.now();
    this.#show(message.can_subscribe ? this.#subscriptions.snapshot(message.snapshot.publications, { now }) : []);
    for (const notice of message.cordoned) this.#fromRouter["cordoned-sfu"](notice);
    if (message.assignment) this.#move({ ...message.assignment, request: "", type: "assigned" });
    // What the router may have missed while we were away.
    for (const record of this.#announced.values()) this.#announce(record);
    this.#changed();
  }

  #fromRouter = {
    "assigned-sfu": (message) => this.#move({ ...message, type: "assigned" }),
    "sfu-access": (message) => {
      this.#pool.granted(message);
      this.#reconcile();
    },
    "room-snapshot": ({ players, publications }) => {
      this.#players = new Map(players.map((player) => [player.player, player]));
      this.#show(this.#subscriptions.snapshot(publications, { now: performance.now() }));
    },
    "room-update": (message) => {
      for (const player of message.players) this.#players.set(player.player, player);
      for (const player of message.left) this.#players.delete(player);
      if (this.#session.can_subscribe) this.#show(this.#subscriptions.update(message));
    },
    "cordoned-sfu": ({ sfu, incarnation, revision, reason, asks_in_s, ends_in_s }) => {
      const ms = (seconds) => (seconds === null ? null : seconds * 1000);
      const notice = { sfu, incarnation, revision, reason, asksInMs: ms(asks_in_s), endsInMs: ms(ends_in_s) };
      this.#move({ type: "cordoned", ...notice });
      if (this.#mover.state().home === sfu) this.emit("notice", notice);
    },
    "uncordoned-sfu": (message) => this.#move({ ...message, type: "uncordoned" }),
    "sfu-gone": ({ sfu, reason }) => {
      this.#move({ type: "sfu-gone", sfu });
      this.#pool.drop(sfu, reason || "gone");
    },
    error: ({ code, message, request, retry_after_s }) => {
      if (request && this.#pool.refused(request)) return;
      const retryAfterMs = retry_after_s === null ? null : retry_after_s * 1000;
      if (request || code === "no-sfu") this.#move({ type: "refused", request, code, retryAfterMs });
      this.emit("trouble", { code, message });
    },
  };

  #refusedBySfu({ sfu, code, message }) {
    this.emit("trouble", { code, message: message || `${sfu} refused: ${code}` });
    if (this.#mover.state().target === sfu) this.#move({ type: "link-lost", sfu, reason: code });
  }

  #linkLost({ sfu, reason }) {
    for (const copy of this.#copies.of(sfu)) this.#copies.freeze(copy);
    this.#show(this.#subscriptions.linkLost({ sfu }));
    this.#move({ type: "link-lost", sfu, reason });
  }

  #end(detail) {
    this.#pool.close();
    clearTimeout(this.#timer);
    this.emit("over", detail);
  }

  // --- moving ---

  #move(event) {
    this.#do(this.#mover.handle(event, { now: performance.now() }));
    this.#reconcile();
  }

  #choose(pick) {
    if (!this.#mover.state().cordon) return false;
    this.#move({ type: "choose", pick });
    return true;
  }

  #do(effects) {
    for (const { do: name, ...effect } of effects) this.#effects[name](effect);
  }

  #effects = {
    decided: (effect) => {
      this.#router.send("decided", effect);
      this.emit("decided", effect);
    },
    "request-sfu": (effect) => this.#router.send("request-sfu", effect),
    "open-link": (effect) => {
      const isVisit = this.#pool.get(effect.sfu) !== null;
      const link = this.#pool.openHome(effect);
      if (!isVisit) link.prepare([...this.#sources.values()]);
    },
    "publish-on": ({ sfu, generation }) => this.#pool.get(sfu)?.publish([...this.#sources.values()], generation),
    announce: (record) => {
      this.#announced.set(record.publication, record);
      this.#announce(record);
    },
    release: ({ sfu }) => this.#pool.get(sfu)?.stopPublishing([...this.#sources.keys()]),
    "move-began": (effect) => {
      if (!this.#gaps.has(MOVE)) this.#gaps.open(MOVE);
      this.emit("move-began", effect);
    },
    "move-failed": (effect) => {
      if (this.#mover.state().phase === "settled") this.#gaps.close(MOVE, { nowMs: wallClock() });
      this.emit("move-failed", effect);
    },
    "move-ended": ({ sfu, left, tookMs }) => {
      const { audioMs, videoMs } = this.#gaps.close(MOVE, { nowMs: wallClock() });
      this.#lastMove = { sfu, left, tookMs, audioMs, videoMs, steps: this.#mover.state().steps };
      this.#router.send("moved", { sfu, left, took_ms: tookMs, audio_gap_ms: audioMs, video_gap_ms: videoMs });
      this.emit("moved", this.#lastMove);
    },
  };

  #announce({ publication, kind, source, sfu, generation }) {
    this.#router.send("publish", { publication, kind, source, sfu, generation });
  }

  // --- showing ---

  #trackArrived({ sfu, publication, kind, mid, receiver }) {
    const copy = this.#copies.add({ publication, sfu, kind, mid, receiver });
    const { element } = this.#copies.get(copy);
    const record = this.#subscriptions.record(publication);
    const window = `switch ${publication}`;
    if (record && !this.#gaps.has(window)) this.#gaps.open(window, { publication });
    const effects = this.#subscriptions.trackArrived({ publication, sfu, copy });
    if (!effects.some((effect) => effect.copy === copy)) {
      this.emit("copy", { publication, copy, kind, player: record.player, element });
    }
    this.#show(effects);
  }

  #trackGone(sfu, publication, mid) {
    const copy = this.#copies.at(sfu, mid);
    if (copy === null) return;
    this.#copies.freeze(copy);
    this.#show(this.#subscriptions.copyEnded({ sfu, publication, copy }));
  }

  #show(effects) {
    for (const { do: name, ...effect } of effects) this.#shows[name](effect);
    this.#reconcile();
  }

  #shows = {
    show: ({ publication, copy, instead }) => {
      const { element, receiver, kind, sfu } = this.#copies.get(copy);
      const { player } = this.#subscriptions.record(publication);
      if (kind === "video") this.#timings.firstVideoAt ??= performance.now();
      const from = instead && this.#copies.get(instead)?.sfu;
      this.#copies.show(copy, instead);
      this.emit("track", { publication, copy, kind, player, element, track: receiver.track });
      const copies = { from: instead, to: copy };
      setTimeout(() => this.#switched({ publication, player, kind, from, to: sfu }, copies), SWITCH_SETTLES_MS);
    },
    retire: ({ copy }) => this.#copies.remove(copy),
    gone: ({ publication }) => {
      this.#gaps.end(publication);
      this.#switches.delete(publication);
      this.emit("ended", { publication });
    },
  };

  #switched(change, copies) {
    const { publication, kind, from } = change;
    const window = `switch ${publication}`;
    if (!this.#gaps.has(window)) return;
    const { audioMs, videoMs } = this.#gaps.close(window, { nowMs: wallClock() });
    if (!from) return;
    const overlapMs = this.#gaps.overlap(publication, copies);
    this.#gaps.forgetCopy(publication, copies.from);
    const done = { ...change, gapMs: kind === "audio" ? audioMs : videoMs, overlapMs };
    this.#switches.delete(publication); // so that the newest is the last
    this.#switches.set(publication, done);
    this.emit("switched", done);
    this.#changed();
  }

  // --- keeping it all together ---

  #requestAccess(sfu) {
    const request = randomId(8);
    return this.#router.send("request-access", { sfu, request }) ? request : null;
  }

  #resumeFacts() {
    const publications = [...this.#announced.values()].map((record) => ({ ...record, player: this.#session?.player ?? "" }));
    return { presence: this.#mover.presence, sfu: this.#mover.state().home ?? "", publications };
  }

  #reconcile() {
    this.#pool.reconcile(this.#subscriptions.desired(), this.#mover.links());
    this.#schedule();
    this.#changed();
  }

  #schedule() {
    clearTimeout(this.#timer);
    const at = [this.#mover.nextDeadline(), this.#subscriptions.nextDeadline()].filter((time) => time !== null);
    if (!at.length) return;
    // A millisecond late rather than early: a timer that fires early would find nothing to do.
    const inMs = Math.max(0, Math.min(...at) - performance.now()) + 1;
    this.#timer = setTimeout(() => {
      this.#show(this.#subscriptions.tick({ now: performance.now() }));
      this.#move({ type: "tick" });
    }, inMs);
  }

  #changed() {
    if (this.#told) return;
    this.#told = true;
    queueMicrotask(() => {
      this.#told = false;
      this.emit("state", this.state);
    });
  }
}
