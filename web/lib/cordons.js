/** What a player has been told about SFUs that are being retired, and what it said about them itself. Pure. */

/** `a` is older than `b`, by incarnation, then revision: the only order between two words about one SFU. */
export const isOlder = (a, b) =>
  a.incarnation < b.incarnation || (a.incarnation === b.incarnation && a.revision < b.revision);

export class Cordons {
  #notices = new Map(); // sfu -> {sfu, incarnation, revision, reason, asksAt, endsAt}
  #asked = new Map(); // sfu -> when to move, drawn within the time the SFU gave
  #choices = new Map(); // sfu -> "move" | "stay"

  /** @returns {boolean} false for a word older than what is known */
  cordoned({ sfu, incarnation, revision, reason, asksInMs, endsInMs }, now) {
    const known = this.#notices.get(sfu);
    if (known && isOlder({ incarnation, revision }, known)) return false;
    const at = (inMs) => (inMs == null ? null : now + inMs);
    this.#notices.set(sfu, { sfu, incarnation, revision, reason, asksAt: at(asksInMs), endsAt: at(endsInMs) });
    return true;
  }

  /** @returns {boolean} false for a word older than what is known, or about an SFU that is not cordoned */
  uncordoned(word) {
    const known = this.#notices.get(word.sfu);
    if (!known || isOlder(word, known)) return false;
    this.forget(word.sfu);
    return true;
  }

  /** The SFU asks us to move at `at`; the first time it says so counts. */
  ask(sfu, at) {
    if (!this.#asked.has(sfu)) this.#asked.set(sfu, at);
  }

  /** The person said what to do about this SFU; null takes it back. */
  choose(sfu, pick) {
    if (pick) this.#choices.set(sfu, pick);
    else this.#choices.delete(sfu);
  }

  /** The notice about `sfu`, or null while it takes new work. An SFU that asks is cordoned, told or not. */
  notice(sfu) {
    if (!this.#notices.has(sfu) && this.#asked.has(sfu)) return { sfu, reason: "", asksAt: null, endsAt: null };
    return this.#notices.get(sfu) ?? null;
  }

  /** When to move because the SFU asked, or null. */
  askedAt(sfu) {
    return this.#asked.get(sfu) ?? null;
  }

  choice(sfu) {
    return this.#choices.get(sfu) ?? null;
  }

  forget(sfu) {
    for (const map of [this.#notices, this.#asked, this.#choices]) map.delete(sfu);
  }

  clear() {
    for (const map of [this.#notices, this.#asked, this.#choices]) map.clear();
  }
}
