/**
 * What the player receives: subscriptions decide which copy is shown, copies bring it, the ledger measures the gaps.
 *
 * Events:  "copy", "track", "ended", "switched"   as the Player passes them on (see player.js)
 *          "changed" {}                           what is wanted from which SFU may have changed
 */

import { Copies } from "./copies.js";
import { Emitter } from "./emitter.js";
import { wallClock } from "./frame-tap.js";
import { GapLedger } from "./gaps.js";
import { sfuOf } from "./link-pool.js";
import { Subscriptions } from "./subscriptions.js";

/** A switch is over this long after the new copy was shown: late frames of the old one have come by then [ms]. */
const SWITCH_SETTLES_MS = 500;

export class Display extends Emitter {
  #subscriptions = new Subscriptions();
  #copies = new Copies();
  #gaps = new GapLedger();
  #switches = new Map(); // publication -> the last switch of its copies, the newest last
  /** When the first picture was shown [ms of `performance.now()`]; null before. */
  firstVideoAt = null;

  constructor() {
    super();
    this.#copies.on("ready", (detail) => this.#show(this.#subscriptions.firstMedia(detail)));
    this.#copies.on("frames", (frames) => frames.forEach((frame) => this.#gaps.arrive(frame)));
    this.#copies.on("sound-blocked", () => this.emit("changed", {}));
  }

  // --- what the room says ---

  /** Publications of this session id are our own. */
  isSelf(player) {
    this.#subscriptions.self.add(player);
  }

  snapshot(publications) {
    this.#show(this.#subscriptions.snapshot(publications, { now: performance.now() }));
  }

  update(message) {
    this.#show(this.#subscriptions.update(message));
  }

  tick() {
    this.#show(this.#subscriptions.tick({ now: performance.now() }));
  }

  nextDeadline() {
    return this.#subscriptions.nextDeadline();
  }

  /** @returns {Map<string, Set<string>>} SFU -> publications to subscribe to there */
  desired() {
    return this.#subscriptions.desired();
  }

  // --- what the links say ---

  /** An SFU offers a track. */
  trackArrived({ key: sfu, publication, kind, mid, receiver }) {
    const copy = this.#copies.add({ publication, sfu, kind, mid, receiver });
    const { element } = this.#copies.get(copy);
    const record = this.#subscriptions.record(publication);
    if (record && !this.#gaps.has(windowOf(publication))) this.#gaps.open(windowOf(publication), { publication });
    const effects = this.#subscriptions.trackArrived({ publication, sfu, copy });
    if (!effects.some((effect) => effect.copy === copy)) {
      this.emit("copy", { publication, copy, kind, player: record.player, element });
    }
    this.#show(effects);
  }

  /** An m-line carries its publication no longer. */
  trackGone({ key: sfu, publication, mid }) {
    const copy = this.#copies.at(sfu, mid);
    if (copy === null) return;
    this.#copies.freeze(copy);
    this.#show(this.#subscriptions.copyEnded({ sfu, publication, copy }));
  }

  /** A publication is no longer at that SFU. */
  ended({ key: sfu, publication }) {
    this.#show(this.#subscriptions.copyEnded({ sfu, publication }));
  }

  /** Links have new keys, for they belong to a former session: what they bring is shown until it comes over new ones. */
  setAside(keys) {
    this.#copies.setAside(keys);
    this.#subscriptions.setAside(keys);
  }

  /** Nothing comes over the link of that key any longer. */
  lost(sfu) {
    for (const copy of this.#copies.of(sfu)) this.#copies.freeze(copy);
    this.#show(this.#subscriptions.linkLost({ sfu }));
  }

  // --- gaps ---

  /** Begin to measure the gaps of everything; a second call of the same name changes nothing. */
  openWindow(name) {
    if (!this.#gaps.has(name)) this.#gaps.open(name);
  }

  /** The longest gaps since then [ms]; null when there is no such window. */
  readWindow(name) {
    return this.#gaps.has(name) ? this.#gaps.read(name, { nowMs: wallClock() }) : null;
  }

  /** The same, and the window is gone. */
  closeWindow(name) {
    return this.#gaps.close(name, { nowMs: wallClock() });
  }

  // --- looking at it ---

  list() {
    return this.#subscriptions.list().map((one) => {
      return { ...one, shownFrom: one.shownFrom && sfuOf(one.shownFrom), isArriving: this.#copies.isArriving(one.copy) };
    });
  }

  switches() {
    return [...this.#switches.values()];
  }

  get gapsAreExact() {
    return this.#copies.tap.isExact;
  }

  get isSoundBlocked() {
    return this.#copies.isSoundBlocked;
  }

  resumeSound() {
    this.#copies.resumeSound();
  }

  async stats() {
    return { copies: await this.#copies.stats(), gaps: this.#gaps.overall() };
  }

  close() {
    this.#copies.close();
  }

  #show(effects) {
    for (const { do: name, ...effect } of effects) this.#effects[name](effect);
    this.emit("changed", {});
  }

  #effects = {
    show: ({ publication, copy, instead, cut }) => {
      const { element, receiver, kind, sfu } = this.#copies.get(copy);
      const { player } = this.#subscriptions.record(publication);
      if (kind === "video") this.firstVideoAt ??= performance.now();
      const former = instead && this.#copies.get(instead);
      const from = former && sfuOf(former.sfu);
      this.#copies.show(copy, instead);
      this.emit("track", { publication, copy, kind, player, element, track: receiver.track });
      const copies = { from: instead, to: copy };
      const change = { publication, player, kind, from, to: sfuOf(sfu), cut };
      setTimeout(() => this.#switched(change, copies), SWITCH_SETTLES_MS);
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
    if (!this.#gaps.has(windowOf(publication))) return;
    const { audioMs, videoMs } = this.closeWindow(windowOf(publication));
    if (!from) return;
    const overlapMs = this.#gaps.overlap(publication, copies);
    this.#gaps.forgetCopy(publication, copies.from);
    const done = { ...change, gapMs: kind === "audio" ? audioMs : videoMs, overlapMs };
    this.#switches.delete(publication); // so that the newest is the last
    this.#switches.set(publication, done);
    this.emit("switched", done);
    this.emit("changed", {});
  }
}

const windowOf = (publication) => `switch ${publication}`;
