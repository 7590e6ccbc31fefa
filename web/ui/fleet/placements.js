/** Placements as they happen, each with what decided it; opened, with who else there was and why not. */

import { badge, make } from "../format.js";
import { keyed, shell, text } from "./dom.js";
import { ago } from "./scaling.js";

const SHOWN = 30, CANDIDATES = 10;

export function placements(root) {
  const [list, none] = [make("ol", { className: "rows placed" }), make("p", { className: "muted" })];
  root.append(list, none);
  return (known, { nowAt }) => {
    const rows = (known ?? []).slice(0, SHOWN);
    keyed(list, rows, (p) => `${p.at} ${p.room} ${p.identity ?? p.player}`, create, (item, placed) => text(item.querySelector("time"), ago(nowAt - placed.at)));
    text(none, rows.length || known === null ? "" : "Nobody has been placed yet.");
  };
}

function create(placed) {
  const { room, sfu, reason, cause } = placed;
  const who = placed.identity ?? placed.player ?? "";
  const head = shell("span", "row-head", sfu ? badge(sfu) : make("b", { className: "error", textContent: "nowhere" }), make("span", { className: "who", textContent: `${who} in ${room}` }), make("time", { className: "when" }));
  const line = make("span", { className: "muted", textContent: `${words(reason)} · ${words(cause)}` });
  return make("li", {}, make("details", {}, make("summary", {}, head, line), explained(placed)));
}

function explained(placed) {
  const { eligible = [], rejected = [], kind, sort_by, limit_ignored } = placed;
  const list = make("ul", { className: "muted" });
  const say = (textContent) => list.append(make("li", { textContent }));
  if (kind) say(`asked for ${kind} by ${sort_by}${limit_ignored ? "; the limit left nobody, so it was ignored" : ""}`);
  say(eligible.length ? `eligible, best first: ${some(eligible)}` : "nobody was eligible");
  const reasons = new Map();
  for (const { sfu, why } of rejected) reasons.set(why, [...(reasons.get(why) ?? []), sfu]);
  for (const [why, sfus] of reasons) say(`left out, ${words(why)}: ${some(sfus)}`);
  return list;
}

const some = (names) => names.slice(0, CANDIDATES).join(", ") + (names.length > CANDIDATES ? ` and ${names.length - CANDIDATES} more` : "");
const words = (kebab) => String(kebab || "").replaceAll("-", " ");
