/**
 * The longest silence of each publication, in audio packets and in whole video frames, over all its copies.
 *
 * During a move a publication arrives twice. A frame counts once: one that was seen on another copy (same hash of its
 * payload, which SFUs forward untouched) is a duplicate and ends no gap. A video copy counts from its first key frame,
 * because nothing before it can be shown. Times are the caller's, in milliseconds of one clock.
 */

/** How long a frame is remembered to recognise its twin [ms]. */
export const TWIN_WINDOW_MS = 2000;

/** The arrivals of one publication. */
class Meter {
  constructor(kind) {
    this.kind = kind;
    this.lastMs = null;
    this.longestMs = 0;
    this.frames = 0;
    this.duplicates = 0;
    this.seen = new Map(); // hash -> [{copy, atMs}], twins not yet met
    this.spans = new Map(); // copy -> {firstMs, lastMs} of its usable frames: video counts from a copy's first key frame
  }

  /** @returns {number | null} the gap that this arrival ended [ms]; null when it counts for nothing */
  arrive({ copy, atMs, hash, key }) {
    const span = this.spans.get(copy);
    if (!span && this.kind === "video" && !key) return null;
    this.spans.set(copy, { firstMs: span?.firstMs ?? atMs, lastMs: atMs });
    if (hash !== null && this.#isTwin(copy, atMs, hash)) {
      this.duplicates++;
      return null;
    }
    this.frames++;
    const gap = this.lastMs === null ? 0 : Math.max(0, atMs - this.lastMs);
    this.lastMs = Math.max(atMs, this.lastMs ?? atMs);
    this.longestMs = Math.max(this.longestMs, gap);
    return gap;
  }

  #isTwin(copy, atMs, hash) {
    const earlier = this.seen.get(hash) ?? [];
    const twin = earlier.findIndex((frame) => frame.copy !== copy);
    if (twin >= 0) {
      earlier.splice(twin, 1);
      if (!earlier.length) this.seen.delete(hash);
      return true;
    }
    // Re-inserted, so that the map stays in the order of arrival and the oldest are found first.
    this.seen.delete(hash);
    this.seen.set(hash, [...earlier, { copy, atMs }].slice(-8));
    for (const [old, frames] of this.seen) {
      if (atMs - frames.at(-1).atMs < TWIN_WINDOW_MS) break;
      this.seen.delete(old);
    }
    return false;
  }
}

/** The longest gaps of all publications, overall and within named windows (a move, a switch). */
export class GapLedger {
  #meters = new Map();
  #windows = new Map();

  /**
   * A whole frame has arrived.
   * @param {{publication: string, kind: "audio" | "video", copy: string, atMs: number, hash?: number | string | null,
   *          key?: boolean}} frame `key`: a video key frame, or unknown (then say true)
   */
  arrive({ publication, kind, copy, atMs, hash = null, key = true }) {
    const meter = this.#meters.get(publication) ?? new Meter(kind);
    this.#meters.set(publication, meter);
    const gap = meter.arrive({ copy, atMs, hash, key });
    if (gap === null) return;
    for (const window of this.#windows.values()) {
      if (window.only && window.only !== publication) continue;
      window[kind] = Math.max(window[kind] ?? 0, gap);
    }
  }

  /**
   * How long both copies delivered: from the first usable frame of `to` until the last of `from` [ms]. Negative: the old
   * one had stopped before the new one began. Null when one of them has never delivered.
   */
  overlap(publication, { from, to }) {
    const spans = this.#meters.get(publication)?.spans;
    const [old, fresh] = [spans?.get(from), spans?.get(to)];
    return old && fresh ? old.lastMs - fresh.firstMs : null;
  }

  /** The copy is of no further interest. */
  forgetCopy(publication, copy) {
    this.#meters.get(publication)?.spans.delete(copy);
  }

  /** The publication has ended: its silence is no gap. */
  end(publication) {
    this.#meters.delete(publication);
  }

  /**
   * Begin a window; a gap that is open at this moment counts in full.
   * @param {string} name
   * @param {{publication?: string | null}} scope null: all publications
   */
  open(name, { publication = null } = {}) {
    this.#windows.set(name, { only: publication, audio: null, video: null });
  }

  /**
   * The longest gaps of the window so far, the one still open included; null for a kind that is not received.
   * @returns {{audioMs: number | null, videoMs: number | null}}
   */
  read(name, { nowMs }) {
    const window = this.#windows.get(name) ?? { only: null, audio: null, video: null };
    const longest = { audio: window.audio, video: window.video };
    for (const [publication, meter] of this.#meters) {
      if (meter.lastMs === null || (window.only && window.only !== publication)) continue;
      longest[meter.kind] = Math.max(longest[meter.kind] ?? 0, nowMs - meter.lastMs);
    }
    return { audioMs: longest.audio, videoMs: longest.video };
  }

  /** The window's gaps, and the window is gone. */
  close(name, { nowMs }) {
    const gaps = this.read(name, { nowMs });
    this.#windows.delete(name);
    return gaps;
  }

  /** Is there such a window? */
  has(name) {
    return this.#windows.has(name);
  }

  /**
   * Since the beginning, for each publication.
   * @returns {Record<string, {kind: string, longestMs: number, frames: number, duplicates: number}>}
   */
  overall() {
    const entries = [...this.#meters].map(([publication, { kind, longestMs, frames, duplicates }]) => [
      publication,
      { kind, longestMs, frames, duplicates },
    ]);
    return Object.fromEntries(entries);
  }
}
