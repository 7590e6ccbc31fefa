/** The pool at a glance: how many in which state (which are also the filters), its mean load, who is on it. */

import { amount, isolated, make } from "../format.js";
import { keyed, shell, style, text } from "./dom.js";
import { meter, partLines, percent } from "./meters.js";
import { PARTS, STATES } from "./model.js";

/** `toggle(state)` when a state's chip is pressed. */
export function overview(root, { toggle }) {
  const count = make("b", { className: "big" });
  const strip = make("div", { className: "strip", ariaHidden: "true" });
  const chips = make("div", { className: "chips" });
  const [mean, binds, whole, lines] = [make("b", { className: "big" }), make("span", { className: "muted" }), meter(), partLines()];
  const carries = make("dl", { className: "carries" });
  const silenced = make("p", { className: "error", hidden: true });
  root.append(
    shell("section", "card glance", make("h2", { textContent: "SFUs" }), shell("div", "big-line", count), strip, chips),
    shell("section", "card glance", make("h2", { textContent: "Load of the pool" }), shell("div", "big-line", mean, binds), whole.bar, lines.list),
    shell("section", "card glance", make("h2", { textContent: "Carries" }), carries, silenced),
  );
  const createChip = ([state, { label, glyph, tone, help }]) => {
    const chip = make("button", { type: "button", className: "chip", title: help }, make("i", { textContent: glyph }), make("span", { textContent: label }), make("b"));
    chip.dataset.tone = tone;
    chip.addEventListener("click", () => toggle(state));
    return chip;
  };
  const paintStates = (pool, chosen) => {
    text(count, String(pool.count));
    const present = Object.entries(STATES).reverse().filter(([state]) => pool.states[state] || chosen.has(state));
    keyed(strip, present, ([state]) => state, ([, { tone }]) => toned(tone), (bar, [state]) => style(bar, "--n", pool.states[state]));
    keyed(chips, present, ([state]) => state, createChip, (chip, [state]) => {
      text(chip.lastElementChild, String(pool.states[state]));
      const pressed = String(chosen.has(state));
      if (chip.getAttribute("aria-pressed") !== pressed) chip.setAttribute("aria-pressed", pressed);
    });
  };
  return (pool, { chosen, routers }) => {
    paintStates(pool, chosen);
    text(mean, pool.load === null ? "not known" : percent(pool.load));
    text(binds, pool.binding ? `mean of ${pool.capacity} that count as capacity; ${PARTS[pool.binding]} binds` : "no SFU counts as capacity");
    whole.paint(pool.load);
    lines.paint(pool);
    paintCarries(carries, pool, routers);
    text(silenced, withoutMediaWords(routers));
    silenced.hidden = !silenced.textContent;
  };
}

function toned(tone) {
  const bar = make("i");
  bar.dataset.tone = tone;
  return bar;
}

/** How many players say that their media does not get through; null while a router does not know. */
export function withoutMedia(routers) {
  const counts = routers.map(({ without_media = null }) => without_media);
  return counts.includes(null) ? null : counts.reduce((sum, count) => sum + count, 0);
}

/** Who that is, as far as routers name them. */
export function withoutMediaWords(routers) {
  const named = routers.flatMap(({ who_without_media = [] }) => who_without_media);
  const lines = named.map(({ who, room, missing }) => `${isolated(who)} in ${isolated(room)} can’t ${missing.join(" or ")}`);
  return lines.length ? `No media gets through: ${lines.join("; ")}.` : "";
}

function paintCarries(list, pool, routers) {
  const egress = pool.egress_bps;
  const figures = {
    Players: amount(pool.players),
    "Streams out": amount(pool.streams),
    Egress: egress < 1e9 ? `${(egress / 1e6).toFixed(egress < 1e8 ? 1 : 0)} Mbit/s` : `${(egress / 1e9).toFixed(1)} Gbit/s`,
    Routers: String(Math.max(1, routers.length)),
    "Without media": amount(withoutMedia(routers)),
  };
  keyed(list, Object.entries(figures), ([term]) => term, ([term]) => shell("div", "", make("dt", { textContent: term }), make("dd")), (row, [, value]) => text(row.lastElementChild, value));
}
