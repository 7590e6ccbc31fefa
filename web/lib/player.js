/**
 * A player: joins a room, publishes, shows the others, and moves off an SFU that is being retired without a gap.
 *
 *     const player = new Player({ routers: ["wss://router/player"], token });
 *     player.on("track", ({ publication, element }) => container.append(element));
 *     await player.join();
 *     player.publish(cameraTrack, { source: "camera" });
 *
 * Events:  "state" state            anything in `player.state` has changed (told once a turn of the event loop)
 *          "copy"  {publication, copy, kind, player, element}          arrives next to the one shown; mount it hidden
 *          "track" {publication, copy, kind, player, element, track}   show this one from now on
 *          "ended" {publication}    the publication is over
 *          "notice" {sfu, asksInMs, endsInMs, reason}                  our SFU is being retired
 *          "decided" {sfu, move, reason}
 *          "move-began" {leave, reason}, "move-failed" {sfu, reason}, "move-cancelled" {sfu, reason}
 *          "moved" {sfu, left, tookMs, audioMs, videoMs, steps}        our own move is complete
 *          "recovered" the same                                        on an SFU again after the old one was lost
 *          "switched" {publication, player, kind, from, to, cut, gapMs, overlapMs}   another player's copy was switched;
 *                                  `cut` when the old one had ended before, else both delivered for about `overlapMs`
 *          "trouble" {code, message, publication}                      for people; the player overcomes it, save codec-refused
 *          "device-lost" {publication, kind, source, label}            its device is gone, and it is silent; then one of:
 *          "device-replaced" {publication, kind, source, label}        the track of another device has taken its place
 *          "device-missing" {publication, kind, source}                there is none: the publication has ended. Later perhaps
 *          "device-back" {publication, was, kind, source, label}       there is one again, in a new publication
 *          "device-muted" {publication, kind, source, label, muted}    the device or the system silences it, or no longer
 *          "no-media" {missing, forMs, tried: [{sfu, where, reason}]}   `missing` (`send`, `receive`) does not get through
 *          "media" {}               what was missing gets through again
 *          "over"  {code, advice}   the session has ended and will not come back
 */

import { Devices } from "./devices.js";
import { Display } from "./display.js";
import { Emitter } from "./emitter.js";
import { LinkPool } from "./link-pool.js";
import { MediaWatch, needsOf } from "./media-watch.js";
import { Mover } from "./mover.js";
import { presenceOf, randomId } from "./protocol.js";
import { RouterConnection } from "./router-connection.js";
import { deskRule } from "./rule.js";

const MOVE = "move";
/** How often it is looked whether media gets through [ms]. */
const LOOK_MS = 1000;

export class Player extends Emitter {
  #router;
  #mover;
  #pool;
  #display = new Display();
  #sources = new Map(); // publication -> Source with `source`
  #announced = new Map(); // publication -> record, what the room has been told
  #players = new Map();
  #session = null; // the last `welcome`
  #connection = { status: "idle", url: null, retryInMs: null, detail: "" };
  #devices = new Devices();
  #media = new MediaWatch();
  #undecodable = new Set(); // publications that an SFU refused us, for we can't decode them
  #looking = null;
  #timer = null;
  #told = false;
  #lastMove = null;
  #timings = {};
  #iceServers = []; // the newest that the router gave; their credentials end

  /**
   * @param {object} options
   * @param {string[]} options.routers websocket URLs of routers
   * @param {string | (() => Promise<string>)} options.token from the app
   * @param {(facts: import("./rule.js").Facts) => import("./rule.js").Decision} [options.rule] is it safe to move?
   * @param {object} [options.presence] `at_desk`, `in_ambient_meeting`, `in_conversation`
   * @param {boolean} [options.relayOnly] send all media through the fleet's TURN servers, so that it sees no address of ours
   * @param {() => number} [options.rng]
   */
  constructor({
    routers,
    token,
    rule = deskRule,
    presence = {},
    relayOnly = false,
    rng = Math.random,
    shuffle = true,
  }) {
    super();
    this.#mover = new Mover({ rng, newId: () => randomId(8), rule, presence });
    const facts = () => this.#resumeFacts();
    this.#router = new RouterConnection({ routers, token, facts, rng, shuffle });
    const iceTransportPolicy = relayOnly ? "relay" : "all";
    const ice = () => ({ iceServers: this.#iceServers, iceTransportPolicy });
    this.#pool = new LinkPool({ requestAccess: (sfu) => this.#requestAccess(sfu), rng, ice });
    this.#listen();
  }

  /** Join the room. Resolves with the first state; rejects with advice for people when the room refuses us. */
  async join() {
    const over = this.#router.once("over").then(({ advice }) => Promise.reject(new Error(advice)));
    const welcome = this.#router.once("welcome");
    this.#looking = setInterval(() => this.#look(), LOOK_MS);
    this.#router.connect();
    await Promise.race([welcome, over]);
    over.catch(() => {}); // later ends are told by the event
    return this.state;
  }

  /**
   * Publish a track; it stays published through every move.
   * @param {MediaStreamTrack} track
   * @param {{source?: string, encodings?: RTCRtpEncodingParameters[], stereo?: boolean}} options `stereo`: sound with two
   *   channels, as music has; a microphone with echo cancellation has one
   * @param {() => Promise<MediaStreamTrack>} [options.renew] opens another device's track when this one's is gone. Without it
   *   the publication ends with its track
   * @returns {string} the publication's id
   */
  publish(track, { source = track.kind === "audio" ? "microphone" : "camera", encodings, stereo = false, renew } = {}) {
    if (this.#session && !this.#session.can_publish) throw new Error("this token does not allow to publish");
    const publication = randomId();
    const known = { publication, kind: track.kind, source, track, encodings, stereo, renew };
    this.#sources.set(publication, known);
    this.#devices.watch(known);
    this.#move({ type: "add-publication", publication, kind: track.kind, source });
    return publication;
  }

  unpublish(publication) {
    if (!this.#sources.delete(publication)) return;
    this.#devices.forget(publication);
    if (this.#announced.delete(publication)) this.#router.send("unpublish", { publication });
    this.#move({ type: "remove-publication", publication });
  }

  /** Another track for the same publication: a changed camera. From now on its end is the publication's end. */
  async replaceTrack(publication, track) {
    const source = this.#sources.get(publication);
    if (!source) throw new Error(`there is no publication ${publication}`);
    source.track = track;
    this.#devices.watch({ ...source });
    await this.#pool.replaceTrack(publication, track);
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
    this.#display.resumeSound();
    this.#changed();
  }

  /** Do not wait for the next retry of the router. */
  retryNow() {
    this.#router.retryNow();
  }

  /** The device is on another network: do not wait for websockets and media to notice. What flows goes on. */
  networkChanged() {
    this.#router.check();
    this.#pool.networkChanged();
  }

  /** End everything. */
  close() {
    this.#stopLooking();
    this.#router.close();
    this.#pool.close();
    this.#display.close();
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
      media: this.#media.state(now),
      players: [...this.#players.values()],
      publications: this.#display.list(),
      published: [...this.#announced.values()],
      lastMove: this.#lastMove,
      switches: this.#display.switches(),
      moveGaps: this.#display.readWindow(MOVE),
      gapsAreExact: this.#display.gapsAreExact,
      soundBlocked: this.#display.isSoundBlocked,
      timings: { ...this.#timings, firstVideoAt: this.#display.firstVideoAt },
    };
  }

  /**
   * What the browser counts of each copy, and the gaps since the beginning.
   * @returns {Promise<{copies: object[], gaps: object}>}
   */
  stats() {
    return this.#display.stats();
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
    this.#router.on("lost", () => this.#move({ type: "router-lost" }));
    this.#router.on("over", (detail) => this.#end(detail));
    for (const type of ["entered", "connected", "flowing", "consumers", "please-move"]) {
      this.#pool.on(type, (detail) => this.#move({ ...detail, type }));
    }
    this.#pool.on("media", () => this.#look());
    this.#pool.on("track", (detail) => this.#display.trackArrived(detail));
    this.#pool.on("track-gone", (detail) => this.#display.trackGone(detail));
    this.#pool.on("ended", (detail) => this.#display.ended(detail));
    this.#pool.on("refused", (detail) => this.#refusedBySfu(detail));
    this.#pool.on("publish-lost", ({ sfu, link, reason }) => {
      this.#media.tried({ sfu, reason });
      this.#move({ type: "link-lost", link, reason });
    });
    this.#pool.on("away", ({ link, reason }) => this.#move({ type: "link-lost", link, reason, cut: false }));
    this.#pool.on("silent", () => this.#router.check());
    this.#pool.on("unsubscribed", ({ key }) => this.#display.lost(key));
    this.#pool.on("lost", ({ sfu, key, link, reason }) => {
      this.#media.tried({ sfu, reason });
      this.#display.lost(key);
      this.#move({ type: "link-lost", link, reason });
    });
    this.#devices.on("lost", (detail) => this.emit("device-lost", detail));
    this.#devices.on("muted", (detail) => this.emit("device-muted", detail));
    for (const name of ["replace", "end", "back"]) this.#devices.on(name, (detail) => this.#fromDevices[name](detail));
    this.#display.on("changed", () => this.#reconcile());
    this.#display.on("ended", ({ publication }) => this.#undecodable.delete(publication));
    for (const name of ["copy", "track", "ended", "switched"]) {
      this.#display.on(name, (detail) => this.emit(name, detail));
    }
  }

  #welcome(message) {
    this.#timings.welcomeAt ??= performance.now();
    if (!message.resumed && this.#session) this.#setAside();
    this.#session = message;
    this.#display.isSelf(message.player);
    this.#players = new Map(message.snapshot.players.map((player) => [player.player, player]));
    this.#move(message.resumed ? { type: "router-back" } : { type: "joined", assigned: message.assignment !== null });
    for (const notice of message.cordoned) this.#fromRouter["cordoned-sfu"](notice);
    // The assignment first: the link to the home serves for subscribing too, and no visit is asked for.
    if (message.assignment) this.#fromRouter["assigned-sfu"]({ ...message.assignment, request: "" });
    if (message.can_subscribe) this.#display.snapshot(message.snapshot.publications);
    if (this.#media.missing.length) this.#tellMedia();
    this.#changed();
  }

  /** A new session needs links of its own; what the old ones carry goes on until those carry it. */
  #setAside() {
    this.#announced.clear();
    this.#display.setAside(this.#pool.newSession());
  }

  #fromRouter = {
    "assigned-sfu": (message) => {
      this.#iceServers = message.ice_servers ?? [];
      this.#move({ ...message, type: "assigned" });
    },
    "sfu-access": (message) => {
      this.#iceServers = message.ice_servers ?? [];
      this.#pool.granted(message);
      this.#reconcile();
    },
    "room-snapshot": ({ players, publications }) => {
      this.#players = new Map(players.map((player) => [player.player, player]));
      if (this.#session.can_subscribe) this.#display.snapshot(publications);
    },
    "room-update": (message) => {
      for (const player of message.players) this.#players.set(player.player, player);
      for (const player of message.left) this.#players.delete(player);
      if (this.#session.can_subscribe) this.#display.update(message);
    },
    "cordoned-sfu": ({ sfu, incarnation, revision, reason, asks_in_s, ends_in_s }) => {
      const ms = (seconds) => (seconds === null ? null : seconds * 1000);
      const notice = { sfu, incarnation, revision, reason, asksInMs: ms(asks_in_s), endsInMs: ms(ends_in_s) };
      this.#move({ type: "cordoned", ...notice });
      if (this.#mover.state().home === sfu) this.emit("notice", notice);
    },
    "uncordoned-sfu": (message) => this.#move({ ...message, type: "uncordoned" }),
    "sfu-gone": ({ sfu, reason }) => {
      this.#move({ type: "sfu-gone", sfu, reason });
      // What a router has lost may live on for us; its own connections tell when their media ends.
      if (reason !== "lost") this.#pool.drop(sfu, reason || "gone");
    },
    error: ({ code, message, request, retry_after_s }) => {
      if (request && this.#pool.refused(request)) return;
      const retryAfterMs = retry_after_s === null ? null : retry_after_s * 1000;
      if (request || code === "no-sfu") this.#move({ type: "refused", request, code, retryAfterMs });
      this.emit("trouble", { code, message });
    },
  };

  #fromDevices = {
    replace: ({ publication, track }) => {
      const { kind, source } = this.#sources.get(publication);
      this.replaceTrack(publication, track).catch((error) => console.warn("sluice: the track was not replaced", error));
      this.emit("device-replaced", { publication, kind, source, label: track.label ?? "" });
    },
    end: ({ publication }) => {
      const { kind, source, renew } = this.#sources.get(publication);
      this.unpublish(publication);
      if (renew) this.emit("device-missing", { publication, kind, source });
    },
    back: ({ item, track }) => {
      if (this.#session && !this.#session.can_publish) return track.stop();
      const { publication: was, kind, source } = item;
      const publication = this.publish(track, item);
      this.emit("device-back", { publication, was, kind, source, label: track.label ?? "" });
    },
  };

  #refusedBySfu({ sfu, link, code, message, publication = "" }) {
    if (code === "codec-refused" && publication) this.#undecodable.add(publication);
    this.emit("trouble", { code, message: message || `${sfu} refused: ${code}`, publication });
    // A publication that we can't decode here, we can decode nowhere: no reason to stay away from this SFU.
    if (!publication && this.#mover.isTarget(link)) this.#move({ type: "link-lost", link, reason: code });
  }

  #end(detail) {
    this.#pool.close();
    this.#stopLooking();
    this.emit("over", detail);
  }

  #stopLooking() {
    this.#devices.close();
    clearTimeout(this.#timer);
    clearInterval(this.#looking);
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
    "open-link": (effect) => this.#pool.openHome(effect, [...this.#sources.values()]),
    "publish-on": ({ link, generation }) => this.#pool.publish(link, [...this.#sources.values()], generation),
    announce: (record) => {
      this.#announced.set(record.publication, record);
      this.#router.send("publish", record);
    },
    release: ({ link }) => this.#pool.release(link),
    "move-began": (effect) => {
      // The first assignment is no move: nothing is left, and there is nothing to have a gap in yet.
      if (effect.leave) this.#display.openWindow(MOVE);
      this.emit("move-began", effect);
    },
    "move-failed": (effect) => {
      if (effect.sfu) this.#media.tried(effect);
      this.emit("move-failed", effect);
    },
    "move-cancelled": (effect) => {
      this.#display.closeWindow(MOVE);
      this.emit("move-cancelled", effect);
    },
    "move-ended": (effect) => {
      const { sfu, left, tookMs, audioMs, videoMs } = this.#moved(effect);
      this.#router.send("moved", { sfu, left, took_ms: tookMs, audio_gap_ms: audioMs, video_gap_ms: videoMs });
      this.emit("moved", this.#lastMove);
    },
    recovered: (effect) => this.emit("recovered", this.#moved(effect)),
  };

  #moved(effect) {
    this.#lastMove = { ...effect, ...this.#display.closeWindow(MOVE), steps: this.#mover.state().steps };
    return this.#lastMove;
  }

  // --- does media get through? ---

  #look() {
    if (!this.#session) return;
    const links = this.#pool.media();
    const sends = this.#sources.size > 0 && this.#session.can_publish;
    const shown = this.#display.list().filter(({ publication }) => !this.#undecodable.has(publication));
    const needs = needsOf({ sends, shown, links });
    if (needs.unmet.size) for (const { sfu, where } of links) if (where) this.#media.tried({ sfu, where });
    if (this.#media.look(needs, { now: performance.now() })) this.#tellMedia();
    this.#changed();
  }

  #tellMedia() {
    const { missing, forMs, tried } = this.#media.state(performance.now());
    this.#router.send("media-state", { missing });
    if (missing.length) this.emit("no-media", { missing, forMs, tried });
    else this.emit("media", {});
  }

  // --- keeping it all together ---

  #requestAccess(sfu) {
    const request = randomId(8);
    return this.#router.send("request-access", { sfu, request }) ? request : null;
  }

  #resumeFacts() {
    const publications = [...this.#announced.values()].map((record) => ({ ...record, player: this.#session?.player ?? "" }));
    const exclude = this.#mover.skipped({ now: performance.now() });
    return { presence: this.#mover.presence, sfu: this.#mover.state().home ?? "", publications, exclude };
  }

  #reconcile() {
    this.#pool.reconcile(this.#display.desired(), this.#mover.links());
    this.#schedule();
    this.#changed();
  }

  #schedule() {
    clearTimeout(this.#timer);
    const at = [this.#mover.nextDeadline(), this.#display.nextDeadline()].filter((time) => time !== null);
    if (!at.length) return;
    // A millisecond late rather than early: a timer that fires early would find nothing to do.
    const inMs = Math.max(0, Math.min(...at) - performance.now()) + 1;
    this.#timer = setTimeout(() => {
      this.#display.tick();
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
