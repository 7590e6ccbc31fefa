/**
 * Does media get through? A websocket that is well says nothing about it: what ought to be connected and is not for ten
 * seconds is missing, and the person, the app and the router are told. Pure; the twin of player/core/media_watch.py.
 *
 * What ought to be connected has a name: `send`, or `receive` and an SFU. `send` and `receive` are the words told.
 */

/** A connection takes a second, on a poor line five; a move or a lost SFU less. With the five seconds in which a browser
 *  notices that a connection died, the person is told within 20 s [ms]. */
export const MISSING_AFTER_MS = 10_000;
/** So many SFUs are remembered as tried, the oldest forgotten first. */
export const MAX_TRIED = 8;

export class MediaWatch {
  #since = new Map(); // what is not connected -> since when
  #tried = new Map(); // sfu -> {sfu, where, reason}
  /** `send`, `receive`, or both: what has been missing for too long. */
  missing = [];

  /**
   * @param {{unmet: Set<string>, unsure: Set<string>}} facts as `needsOf` tells them
   * @returns {boolean} `missing` is another than before
   */
  look({ unmet, unsure }, { now }) {
    for (const name of this.#since.keys()) if (!unmet.has(name) && !unsure.has(name)) this.#since.delete(name);
    for (const name of unmet) if (!this.#since.has(name)) this.#since.set(name, now);
    if (!this.#since.size) this.#tried.clear();
    const late = [...this.#since].filter(([, since]) => now - since >= MISSING_AFTER_MS).map(([name]) => wordOf(name));
    const before = this.missing.join();
    this.missing = ["send", "receive"].filter((word) => late.includes(word));
    return this.missing.join() !== before;
  }

  /** An SFU is being tried at `where`, or failed for this reason. */
  tried({ sfu, where = "", reason = "" }) {
    const known = this.#tried.get(sfu) ?? { sfu, where: "", reason: "" };
    this.#tried.delete(sfu);
    this.#tried.set(sfu, { sfu, where: where || known.where, reason: reason || known.reason });
    if (this.#tried.size > MAX_TRIED) this.#tried.delete(this.#tried.keys().next().value);
  }

  /** For people: is anything not connected just now, what is missing, since when, and what was tried. */
  state(now) {
    const since = Math.min(...this.#since.values());
    return {
      isConnecting: this.#since.size > 0,
      missing: this.missing,
      forMs: this.#since.size ? now - since : 0,
      tried: [...this.#tried.values()],
    };
  }
}

const wordOf = (name) => name.split(" ")[0];

/**
 * What ought to be connected and is not (`unmet`), and what can't be told (`unsure`): an SFU that has let us in offers
 * nothing while a publication has not reached it.
 * @param {{sends: boolean, shown: object[], links: {sfu: string, isInside: boolean, publishes: string | null,
 *   subscribes: string | null}[]}} facts
 *   `sends`: there is something to publish; `shown`: the publications of others, as `Subscriptions.list` has them
 * @returns {{unmet: Set<string>, unsure: Set<string>}}
 */
export function needsOf({ sends, shown, links }) {
  const [unmet, unsure] = [new Set(), new Set()];
  if (sends && !links.some(({ publishes }) => publishes === "connected")) unmet.add("send");
  const arriving = new Set(links.filter(({ subscribes }) => subscribes === "connected").map(({ sfu }) => sfu));
  for (const { shownFrom, lost, switchingTo } of shown) {
    if ((!lost && arriving.has(shownFrom)) || arriving.has(switchingTo)) continue;
    const sfu = switchingTo ?? shownFrom;
    const isOffered = !links.some((link) => link.sfu === sfu && link.isInside && link.subscribes === null);
    (isOffered ? unmet : unsure).add(`receive ${sfu}`);
  }
  return { unmet, unsure };
}

/** Where an SFU's description says that its media goes: `UDP 203.0.113.7:5000`, each place once. */
export function placesOf(sdp) {
  const found = [...(sdp ?? "").matchAll(/^a=candidate:\S+ \d+ (\S+) \d+ (\S+) (\d+)/gm)];
  const places = found.map(([, transport, ip, port]) => `${transport.toUpperCase()} ${ip.includes(":") ? `[${ip}]` : ip}:${port}`);
  return [...new Set(places)].join(", ");
}
