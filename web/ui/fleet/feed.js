/** Asks the routers: one knows all SFUs, each knows its own players and rooms. Nothing here touches the page. */

const TIMEOUT_MS = 4000;
/** How often what is asked for [ms]; a big fleet's rows come half as often. */
export const EVERY_MS = { fleet: 1000, bigFleet: 2000, placements: 2000, scaling: 3000, stayers: 3000, open: 2000, drains: 15_000, rooms: 5000 };
const BIG = 60;
/** Draining SFUs whose players are asked for in one round. */
const STAYERS_A_ROUND = 6;

const WHY = {
  404: "This router's version keeps no record of scaling.",
  503: "Redis is away, so the record of scaling can't be read.",
};

async function get(base, path) {
  const response = await fetch(new URL(path, base), { signal: AbortSignal.timeout(TIMEOUT_MS) });
  if (!response.ok) throw Object.assign(new Error(`${path} answered ${response.status}`), { status: response.status });
  return response.json();
}

export class Feed {
  /** What is known; replaced piece by piece. `fleet` is null until the first answer. */
  known = { fleet: null, at: 0, trouble: "", placements: null, scaling: undefined, drains: [], stayers: new Map(), open: null, rooms: null };
  /** The SFU whose players and rooms are wanted; SFUs whose players are; whether rooms are. */
  wanted = { open: "", stayers: [], rooms: false };
  #told;
  #due = {};
  #turn = 0;
  #big = false;

  constructor(told) {
    this.#told = told;
  }

  /** Never returns. */
  async run() {
    for (;;) {
      const jobs = [];
      if (this.#is("fleet", this.#big ? EVERY_MS.bigFleet : EVERY_MS.fleet)) jobs.push(this.#fleet());
      for (const name of ["placements", "scaling", "drains", "stayers"]) if (this.#is(name, EVERY_MS[name])) jobs.push(this[`_${name}`]());
      if (this.wanted.open && this.#is("open", EVERY_MS.open)) jobs.push(this._open(this.wanted.open));
      if (this.wanted.rooms && this.#is("rooms", EVERY_MS.rooms)) jobs.push(this._rooms());
      if (jobs.length) {
        await Promise.allSettled(jobs);
        try {
          this.#told(this.known);
        } catch (error) {
          console.error(error); // one answer that can't be shown must not be the last that is asked for
        }
      }
      await new Promise((resolve) => setTimeout(resolve, document.hidden ? 3000 : 250));
    }
  }

  /** Ask for this at once, in the next round. */
  hurry(name) {
    this.#due[name] = 0;
  }

  #is(name, everyMs) {
    const now = performance.now();
    if (now < (this.#due[name] ?? 0)) return false;
    this.#due[name] = now + everyMs;
    return true;
  }

  async #fleet() {
    try {
      const fleet = await get(document.baseURI, "api/fleet");
      this.#big = fleet.sfus.length > BIG;
      Object.assign(this.known, { fleet, at: performance.now(), trouble: "" });
    } catch (error) {
      this.known.trouble = `This router does not answer (${error.message}). It may be restarting; trying again. What you see is the last it said.`;
    }
  }

  async _placements() {
    this.known.placements = (await get(document.baseURI, "api/placements?last=40")).placements;
  }

  async _scaling() {
    try {
      this.known.scaling = await get(document.baseURI, "api/scaling?last=40");
    } catch (error) {
      this.known.scaling = { trouble: WHY[error.status] ?? error.message };
    }
  }

  async _drains() {
    this.known.drains = (await get(document.baseURI, "api/drains")).drains;
  }

  async _stayers() {
    const { stayers } = this.known;
    const wanted = this.wanted.stayers;
    for (const sfu of stayers.keys()) if (!wanted.includes(sfu)) stayers.delete(sfu);
    const round = Array.from({ length: Math.min(STAYERS_A_ROUND, wanted.length) }, (_, i) => wanted[(this.#turn + i) % wanted.length]);
    this.#turn += round.length;
    await Promise.allSettled(round.map(async (sfu) => stayers.set(sfu, await this.#players(sfu))));
  }

  async _open(sfu) {
    const [players, answers] = await Promise.all([this.#players(sfu), this.#all(`/api/sfus/${encodeURIComponent(sfu)}/rooms`)]);
    this.known.open = { sfu, players, rooms: merged(answers) };
  }

  async _rooms() {
    this.known.rooms = merged(await this.#all("/api/rooms"));
  }

  async #players(sfu) {
    return (await this.#all(`/api/sfus/${encodeURIComponent(sfu)}/players`)).flatMap(({ players }) => players);
  }

  /** The same question to every router; those that don't answer are left out. */
  async #all(path) {
    const bases = (this.known.fleet?.routers ?? []).map(({ http }) => http).filter((http) => /^https?:\/\//.test(http));
    const answers = await Promise.allSettled((bases.length ? bases : [document.baseURI]).map((base) => get(base, path)));
    return answers.filter(({ status }) => status === "fulfilled").map(({ value }) => value);
  }
}

/** Routers host the same room for different players; a room is shown once. */
function merged(answers) {
  const rooms = new Map();
  for (const { router, rooms: rows } of answers) {
    for (const row of rows) {
      const known = rooms.get(row.room);
      rooms.set(row.room, {
        ...row,
        players: Math.max(row.players, known?.players ?? 0),
        publications: Math.max(row.publications, known?.publications ?? 0),
        sfus: [...new Set([...(known?.sfus ?? []), ...(row.sfus ?? [])])].sort(),
        routers: [...(known?.routers ?? []), router],
      });
    }
  }
  return [...rooms.values()].sort((a, b) => a.room.localeCompare(b.room, "en", { numeric: true }));
}
