/** What a player has heard of SFUs: which are cordoned, which asked it to move, which failed it. Pure. */

/** An SFU that failed is not asked for again within this time while another is eligible (jicofo's failed-node retry)
 *  [ms]. */
export const EXCLUDE_MS = 60_000;
/** No list is longer, which routers take as a whole; the oldest are forgotten first. */
export const MAX_EXCLUDED = 16;

/** `a` is older than `b`, by incarnation, then revision: the only order between two messages about one SFU. */
export const isOlder = (a, b) =>
  a.incarnation < b.incarnation || (a.incarnation === b.incarnation && a.revision < b.revision);

export class Heard {
  #notices = new Map(); // sfu -> {sfu, incarnation, revision, reason, asksAt, endsAt}
  #asked = new Map(); // sfu -> when to move, drawn within the time the SFU gave
  #choices = new Map(); // sfu -> "move" | "stay"
  #excluded = new Map(); // sfu -> until

  /** The SFU is cordoned. An older notice than the one we know changes nothing. */
  cordon({ sfu, incarnation, revision, reason = "", asksInMs = null, endsInMs = null }, now) {
    const known = this.#notices.get(sfu);
    if (known && isOlder({ incarnation, revision }, known)) return;
    const at = (inMs) => (inMs === null ? null : now + inMs);
    this.#notices.set(sfu, { sfu, incarnation, revision, reason, asksAt: at(asksInMs), endsAt: at(endsInMs) });
  }

  /** @returns {boolean} false when a newer cordon is known */
  uncordon(event) {
    const known = this.#notices.get(event.sfu);
    if (known && isOlder(event, known)) return false;
    this.forget(event.sfu);
    this.#excluded.delete(event.sfu);
    return true;
  }

  /** The SFU wants us to go, and we will at `at`. It is cordoned, even if no router said so yet. */
  ask({ sfu, incarnation = 0, revision = 0 }, at) {
    this.#asked.set(sfu, at);
    if (!this.#notices.has(sfu)) {
      this.#notices.set(sfu, { sfu, incarnation, revision, reason: "", asksAt: null, endsAt: null });
    }
  }

  /** The person said what to do about this SFU; null takes it back. */
  choose(sfu, pick) {
    if (pick) this.#choices.set(sfu, pick);
    else this.#choices.delete(sfu);
  }

  /** The notice about `sfu`, or null while it takes new work. */
  notice(sfu) {
    return this.#notices.get(sfu) ?? null;
  }

  /** When to move because the SFU asked, or null. */
  askedAt(sfu) {
    return this.#asked.get(sfu) ?? null;
  }

  choice(sfu) {
    return this.#choices.get(sfu) ?? null;
  }

  /** The router assigned an SFU in a state not newer than the one we know to be cordoned. */
  forbids(event) {
    const notice = this.#notices.get(event.sfu);
    return notice !== undefined && !isOlder(notice, event);
  }

  /** The SFU has ended, or is as good as new. */
  forget(sfu) {
    for (const map of [this.#notices, this.#asked, this.#choices]) map.delete(sfu);
  }

  /** A new session is told everything again; only which SFUs failed is still true. */
  clear() {
    for (const map of [this.#notices, this.#asked, this.#choices]) map.clear();
  }

  /** Skip this SFU for a while. */
  exclude(sfu, now) {
    this.#excluded.delete(sfu);
    while (this.#excluded.size >= MAX_EXCLUDED) this.#excluded.delete(this.#excluded.keys().next().value);
    this.#excluded.set(sfu, now + EXCLUDE_MS);
  }

  /** SFUs to exclude from an assignment, oldest first. */
  skipped(now) {
    for (const [sfu, until] of this.#excluded) if (until <= now) this.#excluded.delete(sfu);
    return [...this.#excluded.keys()];
  }

  /**
   * The request for another SFU; it names the home as the one to leave when that is cordoned (invariant 1). SFUs that
   * are being left are excluded, too: their links still carry the copies that others listen to.
   */
  question({ request, home, leaving, reason }, now) {
    const notice = this.#notices.get(home);
    const exclude = [...new Set([...this.skipped(now), ...leaving])].slice(-MAX_EXCLUDED);
    const { incarnation = 0, revision = 0 } = notice ?? {};
    return { request, leave: notice ? home : "", incarnation, revision, exclude, reason };
  }
}
