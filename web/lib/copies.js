/**
 * The copies of publications that this page receives: an element for each, and the moment when each can be shown.
 *
 * A video copy can be shown when it has put a whole frame on its element; an audio copy when its first packets are here.
 *
 * Events:  "ready" {publication, copy}
 *          "sound-blocked" {}              the browser wants a click before it plays sound
 *          "frames" [{publication, kind, copy, atMs, hash, key}]
 */

import { Emitter } from "./emitter.js";
import { FrameTap } from "./frame-tap.js";

/** A page in the background gets no frame callbacks; then the decoder's own count is looked at this often [ms]. */
const DECODER_POLL_MS = 100;
/** Frames are reported in batches: those of a copy that has just been removed are awaited this long [ms]. */
const LATE_FRAMES_MS = 400;

export class Copies extends Emitter {
  #copies = new Map(); // copy -> {publication, sfu, mid, kind, receiver, element, ready}
  #labels = new Map(); // copy -> {publication, kind}; outlives the copy a little
  #serial = 0;
  #soundBlocked = false;

  constructor({ tap = new FrameTap() } = {}) {
    super();
    this.tap = tap;
    tap.on("frames", (frames) => this.#frames(frames));
    tap.on("started", ({ copy }) => this.#started(copy));
  }

  /** @returns {string} the new copy's unique name */
  add({ publication, sfu, kind, mid, receiver }) {
    const copy = `${sfu}#${++this.#serial}`;
    const element = makeElement(kind, receiver.track);
    this.#copies.set(copy, { publication, sfu, mid, kind, receiver, element, ready: false });
    this.#labels.set(copy, { publication, kind });
    this.tap.watch(receiver, { copy, kind, element });
    if (kind === "video") element.requestVideoFrameCallback?.(() => this.#ready(copy));
    this.#play(element);
    return copy;
  }

  get(copy) {
    return this.#copies.get(copy) ?? null;
  }

  /** Links have new keys (see link-pool.js). */
  setAside(keys) {
    for (const known of this.#copies.values()) known.sfu = keys.get(known.sfu) ?? known.sfu;
  }

  /** Has a packet of this copy arrived within the last ten seconds? The browser remembers sources for that long. */
  isArriving(copy) {
    const receiver = this.#copies.get(copy)?.receiver;
    return Boolean(receiver?.getSynchronizationSources?.().length);
  }

  /** The copies that come over the link to `sfu`. */
  of(sfu) {
    return [...this.#copies].filter(([, known]) => known.sfu === sfu).map(([copy]) => copy);
  }

  /** The copy on m-line `mid` of the link to `sfu`. */
  at(sfu, mid) {
    return [...this.#copies].find(([, known]) => known.sfu === sfu && known.mid === mid)?.[0] ?? null;
  }

  /** Display `copy`, and no longer `instead`. */
  show(copy, instead) {
    const shown = this.#copies.get(copy);
    shown.element.muted = shown.kind === "video";
    shown.element.dataset.shown = "true";
    this.#play(shown.element);
    const old = this.#copies.get(instead);
    if (!old) return;
    old.element.muted = true;
    old.element.dataset.shown = "false";
  }

  /** Nothing comes on this copy any longer; its last picture stays. Its m-line, and so its track, may soon carry another. */
  freeze(copy) {
    const known = this.#copies.get(copy);
    if (!known) return;
    this.tap.unwatch(copy);
    known.mid = null;
    known.element.muted = true;
    known.element.pause();
  }

  remove(copy) {
    const known = this.#copies.get(copy);
    if (!known) return;
    this.#copies.delete(copy);
    this.tap.unwatch(copy);
    setTimeout(() => this.#labels.delete(copy), LATE_FRAMES_MS);
    known.element.srcObject = null;
    known.element.remove();
  }

  /** The browser wanted a click before it plays sound; this is it. */
  resumeSound() {
    this.#soundBlocked = false;
    for (const { element } of this.#copies.values()) this.#play(element);
  }

  get isSoundBlocked() {
    return this.#soundBlocked;
  }

  /** What the browser counts of each copy. */
  async stats() {
    const entries = [...this.#copies].map(async ([copy, { publication, sfu, kind, receiver }]) => {
      const report = [...(await receiver.getStats()).values()].find(({ type }) => type === "inbound-rtp");
      return { copy, publication, sfu, kind, inbound: report ?? null };
    });
    return Promise.all(entries);
  }

  close() {
    for (const copy of [...this.#copies.keys()]) this.remove(copy);
    this.tap.close();
  }

  #frames(frames) {
    const known = frames.filter(({ copy }) => this.#labels.has(copy));
    const labelled = known.map((frame) => ({ ...this.#labels.get(frame.copy), ...frame }));
    if (labelled.length) this.emit("frames", labelled);
  }

  #started(copy) {
    const known = this.#copies.get(copy);
    if (!known) return;
    if (known.kind === "audio") this.#ready(copy);
    else this.#pollDecoder(copy);
  }

  async #pollDecoder(copy) {
    const known = this.#copies.get(copy);
    if (!known || known.ready) return;
    const report = [...(await known.receiver.getStats()).values()].find(({ type }) => type === "inbound-rtp");
    if (report?.framesDecoded > 0) this.#ready(copy);
    else setTimeout(() => this.#pollDecoder(copy), DECODER_POLL_MS);
  }

  #ready(copy) {
    const known = this.#copies.get(copy);
    if (!known || known.ready) return;
    known.ready = true;
    this.emit("ready", { publication: known.publication, copy });
  }

  #play(element) {
    element.play().catch((error) => {
      if (error.name !== "NotAllowedError" || this.#soundBlocked) return;
      this.#soundBlocked = true;
      this.emit("sound-blocked", {});
    });
  }
}

function makeElement(kind, track) {
  const element = document.createElement(kind);
  element.autoplay = true;
  element.playsInline = true;
  element.muted = true; // until it is shown; and video elements never carry sound of ours
  element.dataset.shown = "false";
  element.className = "sluice-copy";
  element.srcObject = new MediaStream([track]);
  return element;
}
