/** The SFUs a player publishes to no more but has not let go yet, because somebody still consumes from them. Pure. */

/** An old link is let go after this long even if somebody still consumes from it (protocol section 4.3) [ms]. */
export const RELEASE_TIMEOUT_MS = 30_000;

export class Leaving {
  #until = new Map(); // sfu -> {until, startedAt}
  #consumers = new Map(); // sfu -> Map(publication -> count), of every SFU that has said so

  /** Begin to leave `sfu`; `startedAt` is when the move began. */
  add(sfu, { now, startedAt }) {
    this.#until.set(sfu, { until: now + RELEASE_TIMEOUT_MS, startedAt });
  }

  /** An SFU said how many subscribers a publication has there. SFUs tell every change, so silence means none. */
  consumers(sfu, publication, count) {
    const counts = this.#consumers.get(sfu) ?? new Map();
    this.#consumers.set(sfu, counts.set(publication, count));
  }

  /** The publication is no more: nobody consumes it anywhere. */
  forgetPublication(publication) {
    for (const counts of this.#consumers.values()) counts.delete(publication);
  }

  /** Nothing the SFU has said counts any longer. */
  forgetSfu(sfu) {
    this.#consumers.delete(sfu);
  }

  has(sfu) {
    return this.#until.has(sfu);
  }

  sfus() {
    return [...this.#until.keys()];
  }

  /** @returns {number | null} when the first of them is let go in any case */
  nextDeadline() {
    const at = [...this.#until.values()].map(({ until }) => until);
    return at.length ? Math.min(...at) : null;
  }

  /** The SFUs that nobody consumes from any longer, or whose time is over. */
  due(now) {
    return this.sfus().filter((sfu) => {
      const counts = [...(this.#consumers.get(sfu)?.values() ?? [])];
      return now >= this.#until.get(sfu).until || counts.every((count) => count === 0);
    });
  }

  /** The SFU is left. @returns {number} when the move that left it began */
  take(sfu) {
    const { startedAt } = this.#until.get(sfu);
    this.#until.delete(sfu);
    this.#consumers.delete(sfu);
    return startedAt;
  }

  clear() {
    this.#until.clear();
    this.#consumers.clear();
  }
}
