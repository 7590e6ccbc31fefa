/**
 * Everything between the player and one SFU: a websocket, a publish and a subscribe connection.
 *
 * What is asked for before the SFU has let us in is sent right behind `enter`, which saves a round trip. A websocket
 * that breaks says nothing about the media: while a peer connection lives, the link enters again with full jitter and
 * closes none; what was being negotiated is said again. Without media it is tried once more, at once. A peer connection
 * that falls silent restarts ICE: on another network it goes on as it was.
 *
 * Events:  "entered" {}                  the SFU let us in, or replaced our grants
 *          "connected" {}                the publish connection is up, whether or not packets flow; with nothing to publish
 *                                        here, the subscribe connection
 *          "flowing" {publication, generation}
 *          "consumers" {publication, count}
 *          "track" / "track-gone"        see subscriber.js
 *          "ended" {publication}         a publication is no longer on this SFU
 *          "please-move" {withinMs, incarnation, revision}
 *          "media" {}                    the state of one of the connections has changed; see `media`
 *          "publish-lost" {reason}       the publish connection broke; what is subscribed goes on
 *          "unsubscribed" {}             the subscribe connection broke and is opened again; its tracks are gone
 *          "silent" {}                   a media connection has fallen silent, and restarts ICE
 *          "away" {reason}               the websocket is away for long: look for another SFU while the media goes on
 *          "needs-access" {}             the SFU wants a fresh token: see `renew`
 *          "refused" {code, message, publication}   something was refused, of one publication when it is named; the link lives
 *          "lost" {reason}               the link is over, told once: "closed", "terminating", "refused", ...
 */

import { Emitter } from "./emitter.js";
import { Backoff } from "./jitter.js";
import { placesOf } from "./media-watch.js";
import { CHECK_MS, Close, read, REFUSALS, write } from "./protocol.js";
import { Publisher } from "./publisher.js";
import { Subscriber } from "./subscriber.js";

/** A media connection that has heard nothing for this long after it became "disconnected" is dead [ms]; twice as
 * long while the websocket is away, on which the SFU must hear of the restart of ICE. */
export const SILENCE_MS = 4000;
/** So often ICE is restarted in that time. */
const RESTARTS = 3;
/** An SFU whose websocket could not be opened so often is not waited for any longer than that. */
const MAX_RETURNS = 3;
/** Keeps proxies from closing an idle websocket, and finds one that is dead [ms]. */
export const PING_MS = 5000;
/** A websocket that was opened again and is not let in by then is given up: TCP and TLS fit [ms]. */
export const REENTER_TIMEOUT_MS = 5000;
/** The SFU keeps a session without a websocket for 30 s (sfu/core/session.py); half of that is left for a move [ms]. */
export const AWAY_MS = 15_000;
/** After these the SFU will not have us back, and has cut the media. */
const CUTTING = new Set([Close.TERMINATING, Close.REPLACED, Close.BAD_MESSAGE]);
/** After these it will not have us back as we are; media that flows is another matter. */
const FINAL = new Set([...CUTTING, Close.REFUSED, Close.BAD_TOKEN, Close.NO_JOIN]);
/** Said again from what we know, when a websocket is opened again. */
const RENEWED = new Set(["enter", "subscribe", "publish-offer", "ping"]);
/** The states of a peer connection whose media lives; how long "disconnected" may last is watched. */
const ALIVE = new Set(["connected", "disconnected"]);

export class MediaLink extends Emitter {
  #socket = null;
  #outbox = []; // [type, fields] for the time when the websocket is open
  #over = false;
  #mayReturn = false; // the SFU has let us in over this websocket
  #wasInside = false; // ... or over an earlier one
  #reentry = ""; // lets us in again after the token has expired; the SFU gives it
  /** The SFU wants a fresh token. */
  needsAccess = false;
  #subscribed = [];
  #published = [];
  #timers = new Map();
  #publisher = null;
  #subscriber = null;
  #unanswered = 0;
  #failedReturns = 0; // tries to enter again since the SFU has let us in
  #refusal = "";

  /**
   * @param {object} options
   * @param {string} options.sfu
   * @param {string} options.address
   * @param {string} options.token
   * @param {() => RTCConfiguration} [options.ice] the servers of the time at which a connection is made, and the policy
   * @param {() => number} [options.rng]
   * @param {typeof WebSocket} [options.WebSocketClass]
   */
  constructor({ sfu, address, token, ice = () => ({}), rng = Math.random, WebSocketClass = globalThis.WebSocket }) {
    super();
    const connection = () => new RTCPeerConnection({ bundlePolicy: "max-bundle", ...ice() });
    Object.assign(this, { sfu, address, token, connection, WebSocketClass });
    this.backoff = new Backoff({ rng });
    this.#connect();
  }

  /** Has the SFU let us in before, and is the websocket away now? */
  get isAway() {
    return this.#wasInside && !this.#mayReturn;
  }

  #connect() {
    const socket = new this.WebSocketClass(this.address);
    this.#socket = socket;
    this.#unanswered = 0;
    this.#outbox.unshift(["enter", this.#credentials()]);
    socket.onopen = () => socket === this.#socket && this.#flush();
    socket.onmessage = ({ data }) => socket === this.#socket && this.#receive(data);
    socket.onclose = ({ code }) => this.#closed(socket, code);
  }

  #credentials() {
    return this.#reentry ? { token: this.token, reentry: this.#reentry } : { token: this.token };
  }

  #closed(socket, code) {
    if (socket !== this.#socket || this.#over) return;
    const wasLetIn = this.#mayReturn;
    this.#socket = null;
    this.#mayReturn = false;
    this.#cancel("ping");
    this.#cancel("check");
    this.#cancel("reenter");
    const isCut = CUTTING.has(code) || this.#refusal === "terminating" || !this.#wasInside;
    const livesOn = !isCut && this.#carriesMedia();
    if (!livesOn && (!wasLetIn || FINAL.has(code) || this.#refusal)) {
      this.#lose(this.#reason(code));
      return;
    }
    this.#failedReturns += wasLetIn ? 0 : 1;
    if (wasLetIn) this.#after("away", AWAY_MS, () => this.emit("away", { reason: "closed" }));
    if (code === Close.REFUSED) this.emit("away", { reason: this.#reason(code) });
    this.#refusal = "";
    if (!livesOn) this.#reenter();
    else if (code === Close.BAD_TOKEN) this.#askForAccess();
    else this.#after("reenter", this.backoff.next(), () => this.#reenter());
  }

  #carriesMedia() {
    return [this.#publisher, this.#subscriber].some((each) => each && ALIVE.has(each.pc.connectionState));
  }

  #reenter() {
    const kept = this.#outbox.filter(([type]) => !RENEWED.has(type));
    this.#outbox = [["subscribe", { publications: this.#subscribed }], ...kept];
    this.#connect();
    this.#publisher?.sayAgain();
    const socket = this.#socket;
    this.#after("reenter", REENTER_TIMEOUT_MS, () => this.#giveUp(socket));
  }

  #giveUp(socket) {
    socket.close(); // whose own close event would wait for an answer, too
    this.#closed(socket, Close.IDLE);
  }

  #askForAccess() {
    this.#reentry = ""; // it was refused with the token
    this.needsAccess = true;
    this.emit("needs-access", {});
  }

  /** Fresh access to the same SFU: enter again with it. */
  renew({ address, token }) {
    if (this.#over || !this.needsAccess) return;
    Object.assign(this, { address, token, needsAccess: false });
    this.#reenter();
  }

  /** A visit becomes the player's home: replace what we may do here. */
  enterAgain(token) {
    this.token = token;
    this.#send("enter", { token });
  }

  /** Build the offer while the websocket opens. */
  prepare(sources) {
    if (sources.length) this.#publishing().prepare(sources).catch((error) => this.#lose(`offer: ${error.message}`));
  }

  /**
   * Publish exactly these here.
   * @param {import("./publisher.js").Source[]} sources
   * @param {number} generation
   */
  publish(sources, generation) {
    if (!sources.length && !this.#publisher) return;
    this.#published = sources.map(({ publication }) => publication);
    this.#publishing()
      .set(sources, generation)
      .catch((error) => this.emit("refused", { code: "bad-sdp", message: String(error.message) }));
  }

  /** End all that is published here; what is subscribed goes on. */
  stopPublishing() {
    if (!this.#publisher) return;
    this.#send("stop-publishing", { publications: this.#published });
    this.#publisher.close();
    this.#publisher = null;
  }

  replaceTrack(publication, track) {
    return this.#publisher?.replaceTrack(publication, track);
  }

  /** Subscribe to exactly this set. */
  subscribe(publications) {
    const list = [...publications].sort();
    if (list.join() === this.#subscribed.join()) return;
    this.#subscribed = list;
    this.#send("subscribe", { publications: list });
  }

  requestKeyframe(publication) {
    this.#send("request-keyframe", { publication });
  }

  /** We need nothing here any longer. */
  leave() {
    this.#send("leave-sfu");
    this.close();
  }

  /** Close without a word; no "lost" follows. */
  close() {
    this.#over = true;
    for (const timer of this.#timers.values()) clearTimeout(timer);
    this.#socket?.close();
    this.#publisher?.close();
    this.#subscriber?.close();
  }

  /** Has the SFU let us in, the states of both connections (null for one that there is not), where their media goes. */
  get media() {
    const [publish, subscribe] = [this.#publisher?.pc, this.#subscriber?.pc];
    const said = (publish ?? subscribe)?.remoteDescription ?? subscribe?.remoteDescription;
    return {
      isInside: this.#mayReturn,
      publishes: publish?.connectionState ?? null,
      subscribes: subscribe?.connectionState ?? null,
      where: placesOf(said?.sdp),
    };
  }

  /** @returns {Promise<RTCStatsReport[]>} of both connections */
  async stats() {
    const connections = [this.#publisher?.pc, this.#subscriber?.pc].filter(Boolean);
    return Promise.all(connections.map((pc) => pc.getStats()));
  }

  #publishing() {
    if (!this.#publisher) {
      this.#publisher = new Publisher({ send: (type, fields) => this.#send(type, fields), connection: this.connection });
      const lost = (reason) => this.#publishingLost(reason);
      const restart = () => this.#publisher?.restart().catch((error) => lost(`restart: ${error.message}`));
      this.#watch(this.#publisher.pc, "publishing", { lost, restart, connected: () => this.emit("connected", {}) });
    }
    return this.#publisher;
  }

  #subscribing() {
    if (!this.#subscriber) {
      this.#subscriber = new Subscriber({ send: (type, fields) => this.#send(type, fields), connection: this.connection });
      for (const name of ["track", "track-gone"]) this.#subscriber.on(name, (detail) => this.emit(name, detail));
      const restart = () => this.isAway || this.#send("restart-ice"); // once let in again, we say so anyway
      const connected = () => this.#publisher || this.emit("connected", {});
      this.#watch(this.#subscriber.pc, "subscribing", { lost: (reason) => this.#subscribingLost(reason), restart, connected });
    }
    return this.#subscriber;
  }

  #watch(pc, what, { lost, restart, connected = () => {} }) {
    const revive = (tries, whileAway) => {
      if (tries === 0) {
        lost("ice-silent");
        return;
      }
      restart(); // more than once: a device that changes its network has no address for a moment
      this.#after(what, SILENCE_MS / RESTARTS, () => {
        const isComing = this.isAway && this.#failedReturns < MAX_RETURNS;
        if (isComing && whileAway > 0) revive(tries, whileAway - 1);
        else revive(tries - 1, whileAway);
      });
    };
    pc.onconnectionstatechange = () => {
      this.#cancel(what);
      if (pc.connectionState === "connected") connected();
      if (pc.connectionState === "failed") lost("ice-timeout");
      this.emit("media", {});
      if (pc.connectionState !== "disconnected") return;
      revive(RESTARTS, RESTARTS);
      this.#check();
      this.emit("silent", {});
    };
  }

  /** The network is another one, says the browser: do not wait for connections to notice. */
  networkChanged() {
    if (this.#over || !this.#wasInside) return;
    if (this.#socket) this.#giveUp(this.#socket);
    this.#publisher?.restart().catch((error) => this.#publishingLost(`restart: ${error.message}`));
    if (this.#subscriber) this.#send("restart-ice");
  }

  /** What is published goes on while it gets through, and no other SFU has what we want from here: ask for ways again. */
  #subscribingLost(reason) {
    if (this.#publisher?.pc.connectionState === "connected") this.#send("restart-ice");
    else this.#lose(reason);
  }

  #publishingLost(reason) {
    if (this.#over) return;
    this.stopPublishing();
    this.emit("publish-lost", { reason });
  }

  #send(type, fields) {
    if (this.#over) return;
    if (this.#socket?.readyState === 1) this.#socket.send(write(type, fields));
    else this.#outbox.push([type, fields]);
  }

  #flush() {
    for (const [type, fields] of this.#outbox.splice(0)) this.#socket.send(write(type, fields));
    this.#after("ping", PING_MS, () => this.#ping());
  }

  #ping() {
    if (this.#unanswered >= 2) {
      this.#giveUp(this.#socket);
      return;
    }
    this.#unanswered++;
    this.#send("ping", { n: 0 });
    this.#after("ping", PING_MS, () => this.#ping());
  }

  #check() {
    const socket = this.#socket;
    if (!this.#mayReturn) return;
    this.#unanswered++;
    this.#send("ping", { n: 0 });
    this.#after("check", CHECK_MS, () => socket === this.#socket && this.#unanswered > 0 && this.#giveUp(socket));
  }

  #receive(data) {
    let message;
    try {
      message = read(data);
    } catch (error) {
      console.warn(`sluice: ${this.sfu} sent what is no message`, error);
      return;
    }
    this.#unanswered = 0;
    if (message && Object.hasOwn(this.#handlers, message.type)) this.#handlers[message.type](message);
  }

  #handlers = {
    entered: ({ reentry }) => {
      if (this.#wasInside && this.#subscriber?.pc.connectionState === "disconnected") this.#send("restart-ice");
      this.#mayReturn = this.#wasInside = true;
      this.#failedReturns = 0;
      this.#reentry = reentry || this.#reentry;
      this.#cancel("away");
      this.#cancel("reenter");
      this.backoff.reset();
      this.emit("entered", {});
    },
    "publish-answer": (message) => this.#publisher?.answer(message),
    "subscribe-offer": (message) => {
      this.#subscribing()
        .offer(message)
        .catch((error) => !this.#over && this.#lose(`offer refused: ${error.message}`));
    },
    "publication-flowing": (message) => this.emit("flowing", message),
    consumers: (message) => this.emit("consumers", message),
    "publication-ended": (message) => this.emit("ended", message),
    "please-move": ({ within_s, incarnation, revision }) => {
      this.emit("please-move", { withinMs: within_s * 1000, incarnation, revision });
    },
    closing: () => {
      this.#refusal = "terminating";
    },
    error: ({ code, message, request, publication }) => {
      const isBroken = !REFUSALS.has(code);
      if (isBroken && request === "subscribe") this.#subscribeAgain();
      else if (isBroken && request === "publish-offer") {
        // Also said of a connection that we have closed ourselves; then there is none, or another one by now.
        if (this.#publisher?.isAnswered) this.#publishingLost(code);
      } else {
        if (!this.#mayReturn) this.#refusal = code;
        this.emit("refused", { code, message, publication });
      }
    },
  };

  #subscribeAgain() {
    this.#subscriber?.close();
    this.#subscriber = null;
    this.emit("unsubscribed", {});
    this.#send("subscribe", { publications: this.#subscribed });
  }

  #reason(code) {
    if (code === Close.TERMINATING) return "terminating";
    if (code === Close.REPLACED) return "replaced";
    return this.#refusal || "closed";
  }

  #lose(reason) {
    if (this.#over) return;
    this.close();
    this.emit("lost", { reason });
  }

  #after(name, ms, action) {
    this.#cancel(name);
    this.#timers.set(name, setTimeout(action, ms));
  }

  #cancel(name) {
    clearTimeout(this.#timers.get(name));
  }
}
