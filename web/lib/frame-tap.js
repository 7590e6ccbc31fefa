/**
 * Tells when frames arrive on each copy. With encoded transforms (a worker sees each frame) where the browser has them;
 * else by watching what is played, which is coarser and knows no hashes.
 *
 * Events:  "frames" [{copy, atMs, hash, key}]   times are `performance.timeOrigin + performance.now()` [ms]
 *          "started" {copy, atMs}               a first key frame, or the first audio packets, have arrived
 */

import { Emitter } from "./emitter.js";

/** How often playback is looked at without encoded transforms [ms]; one Opus packet. */
const POLL_MS = 20;

/** Milliseconds on the clock of pages and workers alike. */
export const wallClock = () => performance.timeOrigin + performance.now();

export class FrameTap extends Emitter {
  #keys = new WeakMap(); // receiver -> key; a receiver keeps its transform for life, an m-line is used again
  #watched = new Map(); // copy -> {stop, key, receiver, kind, element}
  #worker = null;
  #serial = 0;

  /** @param {{transforms?: boolean}} options false: never use encoded transforms */
  constructor({ transforms = typeof RTCRtpScriptTransform === "function" } = {}) {
    super();
    if (!transforms) return;
    this.#worker = openWorker(new URL("./frame-worker.js", import.meta.url));
    if (!this.#worker) return;
    let isRunning = false;
    this.#worker.onmessage = ({ data: { frames, started, atMs } }) => {
      isRunning = true;
      if (frames) this.emit("frames", frames);
      if (started) this.emit("started", { copy: started, atMs });
    };
    this.#worker.onerror = (event) => {
      event.preventDefault?.();
      console.warn("sluice: the worker for frames", event.message || "could not be loaded");
      if (!isRunning) this.#goOnWithout();
    };
  }

  /** The worker never ran, and frames handed to it would wait for ever: take them back, and watch playback instead. */
  #goOnWithout() {
    this.#worker.terminate();
    this.#worker = null;
    for (const [copy, { receiver, kind, element }] of [...this.#watched]) {
      receiver.transform = null;
      this.watch(receiver, { copy, kind, element });
    }
  }

  /** Does each frame get seen, hash and all? */
  get isExact() {
    return this.#worker !== null;
  }

  /** Begin to watch what `receiver` brings, under the name `copy`. */
  watch(receiver, { copy, kind, element }) {
    if (!this.#worker) {
      const stop = kind === "audio" ? this.#pollAudio(receiver, copy) : this.#pollVideo(element, copy);
      this.#watched.set(copy, { stop, receiver, kind, element });
      return;
    }
    let key = this.#keys.get(receiver);
    if (!key) {
      key = `r${++this.#serial}`;
      this.#keys.set(receiver, key);
      this.#worker.postMessage({ key, copy, kind });
      receiver.transform = new RTCRtpScriptTransform(this.#worker, { key });
    } else this.#worker.postMessage({ key, copy, kind });
    // An m-line may be in use for another copy by the time this one is unwatched: then its label stays.
    const stop = () => this.#isLast(key, copy) && this.#worker?.postMessage({ key, copy: null });
    this.#watched.set(copy, { stop, key, receiver, kind, element });
  }

  #isLast(key, copy) {
    const labelled = [...this.#watched].filter(([, watched]) => watched.key === key).map(([name]) => name);
    return labelled.at(-1) === copy;
  }

  unwatch(copy) {
    this.#watched.get(copy)?.stop();
    this.#watched.delete(copy);
  }

  close() {
    for (const copy of [...this.#watched.keys()]) this.unwatch(copy);
    this.#worker?.terminate();
  }

  #pollAudio(receiver, copy) {
    let last = null;
    const timer = setInterval(() => {
      const at = receiver.getSynchronizationSources()[0]?.timestamp ?? null;
      if (at === null || at === last) return;
      if (last === null) this.emit("started", { copy, atMs: at });
      last = at;
      this.emit("frames", [{ copy, atMs: at, hash: null, key: true }]);
    }, POLL_MS);
    return () => clearInterval(timer);
  }

  #pollVideo(element, copy) {
    let running = true;
    let first = true;
    const frame = (_now, { presentationTime }) => {
      if (!running) return;
      const atMs = performance.timeOrigin + presentationTime;
      if (first) this.emit("started", { copy, atMs });
      first = false;
      this.emit("frames", [{ copy, atMs, hash: null, key: true }]);
      element.requestVideoFrameCallback(frame);
    };
    element.requestVideoFrameCallback?.(frame);
    return () => (running = false);
  }
}

/**
 * The worker, also where the library comes from another origin than the page: a page may only start workers of its own,
 * so a line of its own imports ours. null where the page's policy forbids that (`worker-src blob:`); copies are then
 * told apart without looking into their frames. A policy may also let it start and then refuse what it imports: that, too,
 * comes as `onerror`.
 */
function openWorker(url) {
  const options = { type: "module", name: "sluice-frames" };
  try {
    if (url.origin === globalThis.location?.origin) return new Worker(url, options);
    const own = URL.createObjectURL(new Blob([`import ${JSON.stringify(url.href)};`], { type: "text/javascript" }));
    return new Worker(own, options);
  } catch (error) {
    console.warn("sluice: no worker for frames", error);
    return null;
  }
}
