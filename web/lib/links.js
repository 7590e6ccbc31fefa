/** The links that carry the player's publications: home, the target of a move, and former homes. Pure. */

/** A former home is let go after this long even if it has subscribers left (protocol section 4.3) [ms]. */
export const LET_GO_MS = 30_000;

/** A link that carries, or is to carry, the publications. */
export class CarryingLink {
  lost = false; // its websocket broke; media may go on
  former = false; // opened in a session that has ended; it carries on as it is and takes no change
  entered = false; // the SFU has let us in
  connected = false; // the publish connection is up: media can reach the SFU, whether or not we send any
  flowing = new Set(); // publications whose first packets the SFU has confirmed
  owes = null; // {left, startedAt}: that it recovered the player, to be told once its media gets through
  watched = new Map(); // publication -> subscribers there; SFUs tell every change, so silence means none

  constructor(number, sfu, generation) {
    Object.assign(this, { number, sfu, generation });
  }

  /** Media can get through to its SFU, or does. */
  get hasMedia() {
    return this.connected || this.flowing.size > 0;
  }

  /** None of its publications has a subscriber there. */
  get isUnheard() {
    return [...this.watched.values()].every((count) => count === 0);
  }

  /** The publication is no more. */
  forget(publication) {
    this.flowing.delete(publication);
    this.watched.delete(publication);
  }
}

export class CarryingLinks {
  home = null;
  target = null;
  olds = []; // {link, to, startedAt, until}

  /** Home, target, then the former homes. */
  all() {
    return [this.home, this.target, ...this.olds.map(({ link }) => link)].filter(Boolean);
  }

  to(sfu) {
    return this.all().filter((link) => link.sfu === sfu);
  }

  numbered(number) {
    return this.all().find((link) => link.number === number) ?? null;
  }

  /** The entry of a former home, or null. */
  old(link) {
    return this.olds.find((old) => old.link === link) ?? null;
  }

  /** The target becomes the home. @returns {object | null} the entry of the former one, which waits to be let go */
  switch({ startedAt, now }) {
    const former = this.home;
    [this.home, this.target] = [this.target, null];
    if (!former) return null;
    const old = { link: former, to: this.home.sfu, startedAt, until: now + LET_GO_MS };
    this.olds.push(old);
    return old;
  }

  /**
   * It has no subscriber left, and all that flowed there flows at home. That a router has lost the SFU, or we its
   * websocket, makes no difference: those who hear us there may have lost their routers, and can't follow yet.
   */
  mayGo({ link }) {
    const carried = this.home?.flowing ?? new Set();
    return link.isUnheard && [...link.flowing].every((publication) => carried.has(publication));
  }
}
