/** Placements as they happen, each with what decided it; opened, with who else there was and why not. */

import { badge, isolated, make } from "../format.js";
import { keyed, shell, text } from "./dom.js";
import { ago } from "./scaling.js";

const SHOWN = 30, CANDIDATES = 10;

export function placements(root) {
  const [list, none] = [make("ol", { className: "rows placed" }), make("p", { className: "muted" })];
  root.append(list, none);
  return (known, { nowAt }) => {
    const rows = (known ?? []).slice(0, SHOWN);
    keyed(list, rows, ({ id }) => id, create, (item, placed) => text(item.querySelector("time"), ago(nowAt - placed.at)));
    text(none, rows.length || known === null ? "" : "No one has been placed yet.");
  };
}

function create(placed) {
  const { room, sfu, reason, cause, identity } = placed;
  const head = shell("span", "row-head", sfu ? badge(sfu) : make("b", { className: "error", textContent: "nowhere" }), make("span", { className: "who", textContent: `${isolated(identity)} in ${isolated(room)}` }), make("time", { className: "when" }));
  const line = make("span", { className: "muted", textContent: `${words(reason)} · ${words(cause)}` });
  return make("li", {}, make("details", {}, make("summary", {}, head, line), explained(placed)));
}

function explained({ candidates = [], rejected = [], kind, sort_by, limit_ignored, room_had, leave, router }) {
  const list = make("ul", { className: "muted" });
  const say = (textContent) => list.append(make("li", { textContent }));
  say(`${isolated(router)} asked for ${kind} by ${sort_by}${limit_ignored ? "; the limit left none, so it was ignored" : ""}`);
  if (leave) say(`the player leaves ${isolated(leave)}`);
  if (room_had) say(`the room had ${isolated(room_had)}`);
  for (const candidate of candidates.slice(0, CANDIDATES)) say(scored(candidate, sort_by));
  if (!candidates.length) say("no SFU was eligible");
  const reasons = new Map();
  for (const { sfu, why } of rejected) reasons.set(why, [...(reasons.get(why) ?? []), sfu]);
  for (const [why, sfus] of reasons) say(`left out, ${words(why)}: ${some(sfus)}`);
  return list;
}

/** `sfu-2: load 0.41, with 3 in flight 0.44; passed over: cold`. */
function scored({ sfu, figure, in_flight, corrected, passed_over }, by) {
  const said = figure === null ? `${by} not known` : `${by} ${short(figure)}`;
  return `${isolated(sfu)}: ${said}${in_flight ? `, with ${in_flight} in flight ${short(corrected)}` : ""}${passed_over ? `; behind others: ${words(passed_over)}` : ""}`;
}

const short = (figure) => (Math.abs(figure) >= 100 ? figure.toFixed(0) : figure.toFixed(2));
const some = (names) => names.slice(0, CANDIDATES).map(isolated).join(", ") + (names.length > CANDIDATES ? ` and ${names.length - CANDIDATES} more` : "");
const words = (kebab) => String(kebab || "").replaceAll("-", " ");
