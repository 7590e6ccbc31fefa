/** Full jitter: the wait before a retry is drawn evenly from zero to a doubling bound, so that a crowd spreads out. */

/** Bound of the first wait [ms]. */
export const FIRST_MS = 1000;
/** No bound is above this [ms]. */
export const CAP_MS = 7000;

/**
 * The wait before retry number `attempt`.
 * @param {number} attempt 0 for the first retry
 * @param {{rng: () => number, firstMs?: number, capMs?: number}} options `rng` gives [0, 1)
 * @returns {number} milliseconds
 */
export function fullJitter(attempt, { rng, firstMs = FIRST_MS, capMs = CAP_MS }) {
  const bound = Math.min(capMs, firstMs * 2 ** Math.min(attempt, 30));
  return rng() * bound;
}

/** Counts the attempts of one endeavour. */
export class Backoff {
  /** @param {{rng: () => number, firstMs?: number, capMs?: number}} options */
  constructor(options) {
    this.options = options;
    this.attempts = 0;
  }

  /** The next wait [ms]. */
  next() {
    return fullJitter(this.attempts++, this.options);
  }

  /** It worked: start from the bottom again. */
  reset() {
    this.attempts = 0;
  }
}

/**
 * A shuffled copy (Fisher-Yates), so that not every player asks the same router first.
 * @template T
 * @param {readonly T[]} items
 * @param {() => number} rng
 * @returns {T[]}
 */
export function shuffled(items, rng) {
  const result = [...items];
  for (let i = result.length - 1; i > 0; i--) {
    const j = Math.floor(rng() * (i + 1));
    [result[i], result[j]] = [result[j], result[i]];
  }
  return result;
}
