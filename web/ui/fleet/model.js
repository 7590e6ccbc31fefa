/** What the fleet page says of an SFU and of the pool: pure, from `/api/fleet`. Null is "not known" and never zero. */

import { reasonText } from "../words.js";

/** In the order of how much they need a look. */
export const STATES = {
  silent: { label: "Silent", glyph: "?", tone: "bad", help: "Not heard of for five seconds; its figures are old" },
  ending: { label: "Ending", glyph: "×", tone: "bad", help: "Runs its final sequence" },
  asking: { label: "Asking", glyph: "!", tone: "warn", help: "Past its first bound: asks the remaining players to move" },
  draining: { label: "Draining", glyph: "↓", tone: "warn", help: "Takes no new work and ends when it is empty" },
  held: { label: "Cordoned", glyph: "=", tone: "warn", help: "Takes no new work, and is held until an operator says otherwise" },
  odd: { label: "Not placeable", glyph: "~", tone: "warn", help: "Alive, but a router gives it no new work" },
  warming: { label: "Warming up", glyph: "◔", tone: "info", help: "Has not forwarded its first packet yet, so it is no capacity" },
  online: { label: "Online", glyph: "", tone: "good", help: "Takes new work" },
};
export const PARTS = { egress: "Egress", streams: "Streams", cpu: "CPU" };
/** Where the autoscaler adds a node by default, and where a node is nearly full. */
export const HIGH = 0.65, FULL = 0.85;

/** One word for where the SFU stands. */
export function stateOf({ status, refused, drain, warmed_up }) {
  if (status === "TERMINATING") return "ending";
  if (refused === "stale" || refused === "missing") return "silent";
  if (status === "CORDONED") {
    // A controller's cordon has a lease: it ends the node when it is empty, though the SFU itself only holds.
    if (!drain?.exit_when_empty && (drain?.lease_left_s ?? null) === null) return "held";
    return drain.asking ? "asking" : "draining";
  }
  if (refused) return "odd";
  return warmed_up ? "online" : "warming";
}

/** `idle`, `high`, `full`, or `unknown`: a silent SFU's figures count as unknown. */
export function heatOf(row) {
  const load = row.state === "silent" ? null : row.load;
  if (load === null) return "unknown";
  return load >= FULL ? "full" : load >= HIGH ? "high" : "idle";
}

/** A row of the feed with what the page derives from it. */
export function understand(row) {
  const state = stateOf(row);
  const known = { ...row, state, drained: row.status !== "ONLINE" };
  return { ...known, heat: heatOf(known) };
}

/** Ids without what they all begin with, so that a small tile can show what tells them apart. */
export function shortNames(ids) {
  if (ids.length < 2) return new Map(ids.map((id) => [id, id]));
  let length = 0;
  while (ids.every((id) => id.length > length + 1 && id[length] === ids[0][length])) length += 1;
  const cut = ids[0].slice(0, length).search(/[^-_.:/]*$/);
  return new Map(ids.map((id) => [id, id.slice(cut)]));
}

/** The pool's figures: means over what counts as capacity (online, warmed up, with a report), sums over all. */
export function poolOf(rows) {
  const states = Object.fromEntries(Object.keys(STATES).map((state) => [state, 0]));
  const sums = { players: 0, streams: 0, egress_bps: 0, rooms: 0 };
  for (const row of rows) {
    states[row.state] += 1;
    for (const name of Object.keys(sums)) sums[name] += row[name] ?? 0;
  }
  const capacity = rows.filter(({ state, load }) => state === "online" && load !== null);
  const mean = (figure) => (capacity.length ? capacity.reduce((sum, row) => sum + figure(row), 0) / capacity.length : null);
  const parts = Object.fromEntries(Object.keys(PARTS).map((part) => [part, mean((row) => row.parts[part])]));
  const binding = capacity.length ? Object.keys(PARTS).reduce((a, b) => (parts[b] > parts[a] ? b : a)) : null;
  return { states, ...sums, count: rows.length, capacity: capacity.length, load: mean((row) => row.load), parts, binding };
}

const FIGURES = {
  load: (row) => (row.load === null ? null : row.load * 100),
  players: (row) => row.players,
  streams: (row) => row.streams,
  rooms: (row) => row.rooms,
};

/** Whether a row fits what was typed: all words must; `load>80`, `players<10` and the like compare. */
export function fits(row, query) {
  return query.toLowerCase().split(/\s+/).filter(Boolean).every((word) => {
    const compared = /^(load|players|streams|rooms)([<>])(\d+(?:\.\d+)?)$/.exec(word);
    if (compared) {
      const value = FIGURES[compared[1]](row);
      return value !== null && (compared[2] === ">" ? value > Number(compared[3]) : value < Number(compared[3]));
    }
    const text = [row.sfu, row.cell, row.version, STATES[row.state].label, row.binding ?? "", row.drain?.by ?? ""];
    return text.join(" ").toLowerCase().includes(word);
  });
}

const byId = (a, b) => a.sfu.localeCompare(b.sfu, "en", { numeric: true });
const down = (figure) => (a, b) => (figure(b) ?? -1) - (figure(a) ?? -1) || byId(a, b);
const states = Object.keys(STATES);
export const ORDERS = {
  name: { label: "name", compare: byId },
  load: { label: "load", compare: down((row) => row.load) },
  players: { label: "players", compare: down((row) => row.players) },
  streams: { label: "streams", compare: down((row) => row.streams) },
  state: { label: "what needs a look", compare: (a, b) => states.indexOf(a.state) - states.indexOf(b.state) || byId(a, b) },
};

export const GROUPS = {
  none: { label: "nothing", of: () => "" },
  cell: { label: "cell", of: ({ cell }) => cell },
  state: { label: "state", of: ({ state }) => STATES[state].label },
  version: { label: "version", of: ({ version }) => version || "no version" },
  binding: { label: "binding part", of: ({ binding }) => PARTS[binding] ?? "not known" },
};

/** Groups in alphabetical order (states: in theirs), each with its rows in the order asked for. */
export function grouped(rows, { group, order }) {
  const groups = new Map();
  for (const row of rows) {
    const name = GROUPS[group].of(row);
    if (!groups.has(name)) groups.set(name, []);
    groups.get(name).push(row);
  }
  const rank = group === "state" ? states.map((state) => STATES[state].label) : null;
  const names = [...groups.keys()].sort((a, b) => (rank ? rank.indexOf(a) - rank.indexOf(b) : a.localeCompare(b, "en", { numeric: true })));
  return names.map((name) => ({ name, rows: groups.get(name).sort(ORDERS[order].compare) }));
}

/** A drain in seconds: how long it goes on, when it asks, when it is killed from outside. `since_s`: age of the report. */
export function drainOf({ drain, age_s }, sinceS = 0) {
  if (!drain) return null;
  const elapsed = drain.elapsed_s + age_s + sinceS;
  const left = (bound) => (bound === null ? null : bound - elapsed);
  const asks = drain.asking ? null : left(drain.drain_max_s);
  const ends = left(drain.grace_s);
  const whole = drain.grace_s ?? drain.drain_max_s;
  return {
    elapsed, asks, ends, asking: drain.asking,
    share: whole ? Math.min(1, elapsed / whole) : null,
    askShare: whole && drain.drain_max_s !== null ? drain.drain_max_s / whole : null,
    next: asks ?? ends,
    lapses: (drain.lease_left_s ?? null) === null ? null : drain.lease_left_s - age_s - sinceS,
    cause: drain.cause === "sigterm" ? "SIGTERM" : drain.by || "an operator",
  };
}

/** Why players are still there, the commonest reason first: `[["in a conversation", 12], ...]`. */
export function reasonsOf(players) {
  const counts = new Map();
  for (const { moving_to, decided, reason } of players) {
    const why = moving_to ? "moving now" : decided ? reasonText(reason) || "gave no reason" : "has not decided";
    counts.set(why, (counts.get(why) ?? 0) + 1);
  }
  return [...counts].sort((a, b) => b[1] - a[1]);
}
