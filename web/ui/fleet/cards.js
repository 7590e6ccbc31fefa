/** A few SFUs: a card each, with everything on it. */

import { amount, badge, countdown, isolated, make, paintBadge } from "../format.js";
import { data, facts, shell, style, text } from "./dom.js";
import { partLines, percent, sparkline } from "./meters.js";
import { STATES, drainOf, reasonsOf } from "./model.js";

/** A pill with an SFU's state. */
export function statePill() {
  const pill = make("span", { className: "pill" });
  const paint = (state) => {
    const { label, glyph, tone, help } = STATES[state];
    text(pill, glyph ? `${glyph} ${label}` : label);
    data(pill, { tone });
    if (pill.title !== help) pill.title = help;
  };
  return { pill, paint };
}

/** A drain: a line in words, the way to its bounds, who is left and why. */
export function drainBlock({ people = 4 } = {}) {
  const words = make("p", { className: "drain-words" });
  const bar = make("div", { className: "drain-bar" }, make("i"), make("b"));
  const left = make("ul", { className: "left" });
  const block = shell("div", "drain", words, bar, left);
  const paint = (row, { since = 0, players } = {}) => {
    const drain = drainOf(row, since);
    block.hidden = !drain;
    if (!drain) return;
    text(words, drainWords(row, drain));
    bar.hidden = drain.share === null;
    style(bar, "--share", (drain.share ?? 0).toFixed(3));
    style(bar, "--ask", (drain.askShare ?? 0).toFixed(3));
    paintLeft(left, row, players, people);
  };
  return { block, paint };
}

function drainWords({ drain, state }, { elapsed, asks, ends, lapses, cause }) {
  const inTime = (seconds) => countdown(seconds * 1000);
  const parts = [`${state === "held" ? "Held" : "Draining"} for ${inTime(elapsed)}, by ${isolated(cause)}${drain.reason ? `: ${isolated(drain.reason)}` : ""}.`];
  if (drain.asking) parts.push("Asks the remaining players to move.");
  else if (asks !== null) parts.push(`Asks players to move in ${inTime(asks)}.`);
  if (ends !== null) parts.push(`Killed from outside in ${inTime(ends)}.`);
  if (lapses !== null) parts.push(`Lapses in ${inTime(lapses)} unless it is renewed.`);
  if (state === "held") parts.push("It stays until a person ends it.");
  return parts.join(" ");
}

function paintLeft(list, row, players, most) {
  const lines = [];
  if (players?.length) {
    const reasons = reasonsOf(players);
    lines.push(...reasons.slice(0, most).map(([why, count]) => `${count} ${why}`));
    if (reasons.length > most) lines.push(`and ${reasons.length - most} more reasons`);
  }
  const here = row.players;
  const head = here === null ? "How many are left is not known" : here ? `${here} still here` : "No one is left";
  const all = [head, ...lines];
  while (list.childElementCount > all.length) list.lastElementChild.remove();
  all.forEach((line, i) => text(list.children[i] ?? list.appendChild(make("li")), line));
}

/** Creates and paints cards; `open(sfu)` when one is chosen. */
export function cards({ open }) {
  const parts = new WeakMap();
  const create = ({ sfu }) => {
    const [pill, lines, spark, drain, list] = [statePill(), partLines(), sparkline(), drainBlock(), facts()];
    const [name, load, note] = [badge(sfu), make("b", { className: "load" }), make("p", { className: "muted" })];
    const more = make("button", { className: "small", type: "button", textContent: "Details and commands" });
    more.addEventListener("click", () => open(sfu, more));
    const card = shell("article", "card sfu-card",
      shell("div", "sfu-head", name, pill.pill),
      shell("div", "load-line", load, spark.svg), note, lines.list, drain.block, list.list, more);
    parts.set(card, { pill, lines, spark, drain, list, name, load, note, more });
    return card;
  };
  const paint = (card, row, { since, history, most, players }) => {
    const { pill, lines, spark, drain, list, name, load, note, more } = parts.get(card);
    card.setAttribute("aria-label", `${row.sfu}, ${STATES[row.state].label}`);
    more.setAttribute("aria-label", `Details and commands of ${row.sfu}`);
    paintBadge(name, row.sfu, { cordoned: row.drained });
    pill.paint(row.state);
    text(load, row.heat === "unknown" ? "load not known" : `${percent(row.load)} load`);
    spark.paint(history, most);
    lines.paint(row);
    drain.paint(row, { since, players });
    text(note, noteOf(row));
    list.paint({
      "Players, rooms": `${amount(row.players)}, ${amount(row.rooms)}`,
      "Tracks in, out": `${amount(row.producers)}, ${amount(row.consumers)}`,
      "Cell, version": `${isolated(row.cell)}, ${isolated(row.version || "–")}`,
    });
  };
  return { create, paint };
}

/** What is odd about an SFU, in a sentence; empty when nothing is. */
export function noteOf({ state, age_s, refused, probe_failure }) {
  if (state === "silent") return `Not heard of for ${age_s.toFixed(0)} s: figures are old, no new work goes there.`;
  if (state === "warming") return probe_failure ? `Its probe call fails: ${isolated(probe_failure)}. No capacity yet.` : "No packet forwarded yet: no capacity.";
  if (state === "odd") return `Takes no new work: ${isolated(refused)}.`;
  return "";
}
