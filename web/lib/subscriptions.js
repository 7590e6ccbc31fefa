/**
 * Which copy of each publication is displayed. Pure: facts and `now` in, effects out.
 *
 * A publication that moves is carried by two SFUs for a while. The new copy is subscribed in addition; the old
 * one stays on display until the new one has delivered (audio: packets; video: a complete frame), then they are
 * switched and the old one is let go. Nothing is let go because something else is merely promised.
 *
 * Effects:  {do: "show", publication, copy, instead, cut}   display `copy`; `instead` is the copy shown so far, or null;
 *                                               `cut` says that it had ended before this one could be shown
 *           {do: "retire", publication, copy}   this copy is of no further use
 *           {do: "gone", publication}           the publication has ended
 *
 * @typedef {{publication: string, player: string, kind: string, source: string, sfu: string, generation: number}} Publication
 */

/** A publication missing from a snapshot is believed to live on for this long: a router that has just lost its store
 *  may not know everything yet, and media does not depend on it [ms]. */
export const DOUBT_MS = 10_000;

export class Subscriptions {
  #entries = new Map();

  /** @param {{wants?: (publication: Publication) => boolean, doubtMs?: number}} options */
  constructor({ wants = () => true, doubtMs = DOUBT_MS } = {}) {
    this.wants = wants;
    this.doubtMs = doubtMs;
    /** Session ids that are (or were) this player's own; their publications are not subscribed. */
    this.self = new Set();
  }

  /** The whole room, after a join or a resume. */
  snapshot(publications, { now }) {
    const listed = new Set(publications.map((publication) => publication.publication));
    for (const [id, entry] of this.#entries) {
      if (!listed.has(id)) entry.doubtUntil ??= now + this.doubtMs;
    }
    return publications.flatMap((publication) => this.#apply(publication));
  }

  /** What has changed in the room. */
  update({ publications = [], ended = [], left = [] }) {
    const gone = new Set(left);
    const orphans = [...this.#entries.values()].filter((entry) => gone.has(entry.record.player));
    const over = [...ended, ...orphans.map((entry) => entry.record.publication)];
    return [...over.flatMap((id) => this.#end(id)), ...publications.flatMap((publication) => this.#apply(publication))];
  }

  #apply(record) {
    if (this.self.has(record.player) || !record.sfu || !this.wants(record)) return [];
    const entry = this.#entries.get(record.publication);
    if (!entry) {
      const next = { sfu: record.sfu, copy: null };
      this.#entries.set(record.publication, { record, shown: null, next, doubtUntil: null });
      return [];
    }
    entry.doubtUntil = null;
    if (record.player === entry.record.player && record.generation < entry.record.generation) return [];
    entry.record = record;
    const effects = [];
    if (entry.next && entry.next.sfu !== record.sfu) {
      if (entry.next.copy) effects.push({ do: "retire", publication: record.publication, copy: entry.next.copy });
      entry.next = null;
    }
    const isThere = entry.shown && !entry.shown.lost && entry.shown.sfu === record.sfu;
    if (!isThere) entry.next ??= { sfu: record.sfu, copy: null };
    return effects;
  }

  #end(id) {
    const entry = this.#entries.get(id);
    if (!entry) return [];
    this.#entries.delete(id);
    const copies = [entry.shown?.copy, entry.next?.copy].filter(Boolean);
    return [
      ...copies.map((copy) => ({ do: "retire", publication: id, copy })),
      { do: "gone", publication: id },
    ];
  }

  /** An SFU has offered a track for the publication; `copy` is the caller's unique name for it. */
  trackArrived({ publication, sfu, copy }) {
    const entry = this.#entries.get(publication);
    const retire = (old) => [{ do: "retire", publication, copy: old }];
    if (!entry) return retire(copy);
    if (entry.next?.sfu === sfu) {
      const superseded = entry.next.copy;
      entry.next.copy = copy;
      return superseded ? retire(superseded) : [];
    }
    if (entry.shown?.sfu === sfu) {
      // Published again on the SFU it is on already: the same make-before-break, within one link.
      const superseded = entry.next?.copy;
      entry.next = { sfu, copy };
      return superseded ? retire(superseded) : [];
    }
    return retire(copy);
  }

  /** The copy has delivered its first audio packets or its first complete video frame. */
  firstMedia({ publication, copy }) {
    const entry = this.#entries.get(publication);
    if (!entry?.next || entry.next.copy !== copy) return [];
    const old = entry.shown;
    entry.shown = { sfu: entry.next.sfu, copy, lost: false };
    entry.next = null;
    const show = { do: "show", publication, copy, instead: old?.copy ?? null, cut: old?.lost ?? false };
    return old ? [show, { do: "retire", publication, copy: old.copy }] : [show];
  }

  /**
   * The publication is no longer at the SFU; or, with `copy`, that one copy has ended. What was shown last stays until
   * something better comes.
   */
  copyEnded({ publication, sfu, copy = null }) {
    const entry = this.#entries.get(publication);
    return entry ? this.#lose(entry, sfu, copy) : [];
  }

  /** Links have new keys (see link-pool.js); what they bring is wanted over a link of the present session as well. */
  setAside(keys) {
    for (const entry of this.#entries.values()) {
      const { shown, next, record } = entry;
      if (next?.copy && keys.has(next.sfu)) next.sfu = keys.get(next.sfu);
      if (!shown || shown.lost || !keys.has(shown.sfu)) continue;
      shown.sfu = keys.get(shown.sfu);
      entry.next ??= { sfu: record.sfu, copy: null };
    }
  }

  /** The link to the SFU broke: every copy that came over it has stopped. */
  linkLost({ sfu }) {
    return [...this.#entries.values()].flatMap((entry) => this.#lose(entry, sfu));
  }

  #lose(entry, sfu, only = null) {
    const effects = [];
    const isIt = (known) => known?.sfu === sfu && (only === null || known.copy === only);
    if (isIt(entry.next) && entry.next.copy) {
      effects.push({ do: "retire", publication: entry.record.publication, copy: entry.next.copy });
      entry.next.copy = null;
    }
    if (isIt(entry.shown)) {
      entry.shown.lost = true;
      entry.next ??= { sfu: entry.record.sfu, copy: null };
    }
    return effects;
  }

  /**
   * What to subscribe to, for each SFU.
   * @returns {Map<string, Set<string>>} SFU -> publications
   */
  desired() {
    const result = new Map();
    for (const [id, { shown, next }] of this.#entries) {
      const sfus = [next?.sfu, shown && !shown.lost ? shown.sfu : null].filter(Boolean);
      for (const sfu of sfus) result.set(sfu, (result.get(sfu) ?? new Set()).add(id));
    }
    return result;
  }

  /** When `tick` has something to do, or null [ms of the caller's clock]. */
  nextDeadline() {
    const doubts = [...this.#entries.values()].map((entry) => entry.doubtUntil).filter((at) => at !== null);
    return doubts.length ? Math.min(...doubts) : null;
  }

  /** Publications that no router has spoken of for too long are over. */
  tick({ now }) {
    const over = [...this.#entries].filter(([, entry]) => entry.doubtUntil !== null && entry.doubtUntil <= now);
    return over.flatMap(([id]) => this.#end(id));
  }

  /** The publication as the room tells it, or null. */
  record(publication) {
    return this.#entries.get(publication)?.record ?? null;
  }

  /**
   * For people and tests: each publication, the SFU it is shown from and the one it is switching to.
   * @returns {{publication: string, player: string, kind: string, source: string, sfu: string, generation: number,
   *            shownFrom: string | null, copy: string | null, lost: boolean, switchingTo: string | null}[]}
   */
  list() {
    return [...this.#entries.values()].map(({ record, shown, next }) => ({
      publication: record.publication,
      player: record.player,
      kind: record.kind,
      source: record.source,
      sfu: record.sfu,
      generation: record.generation,
      shownFrom: shown?.sfu ?? null,
      copy: shown?.copy ?? null,
      lost: shown?.lost ?? false,
      switchingTo: next?.sfu ?? null,
    }));
  }
}
