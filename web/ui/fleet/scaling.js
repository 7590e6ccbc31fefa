/** The autoscaler: where it stands, and its decisions with their reasons, newest first. */

import { badge, countdown, isolated, make } from "../format.js";
import { data, keyed, shell, text } from "./dom.js";
import { percent } from "./meters.js";
import { PARTS } from "./model.js";

const SHOWN = 30;
const TONES = {
  "scale-out": "good", launched: "good", "launch-failed": "bad", "launch-given-up": "bad", "scale-in": "warn", terminated: "warn", held: "info",
};

export function scaling(root) {
  const [head, ticks, list, none] = [make("p", { className: "muted" }), make("div", { className: "ticks" }), make("ol", { className: "timeline" }), make("p", { className: "muted" })];
  root.append(head, ticks, list, none);
  return (answer, { nowAt }) => {
    const records = answer?.records ?? [];
    text(head, headWords(answer));
    paintTicks(ticks, answer?.state);
    keyed(list, records.slice(0, SHOWN), ({ id, at }) => `${id} ${at}`, create, (item, record) => text(item.querySelector("time"), ago(nowAt - record.at)));
    text(none, records.length || !answer || answer.trouble ? "" : "No decision has been recorded.");
  };
}

/** `3 min ago`. */
export function ago(seconds) {
  if (seconds < 1.5) return "now";
  if (seconds < 90) return `${Math.round(seconds)} s ago`;
  if (seconds < 5400) return `${Math.round(seconds / 60)} min ago`;
  return `${Math.round(seconds / 3600)} h ago`;
}

/** Who leads, and how many nodes there are of each sort; those that there are none of go without saying, but for capacity. */
export function headWords(answer) {
  if (answer === undefined) return "";
  if (answer.trouble) return answer.trouble;
  const { leader, state } = answer;
  const who = leader ? `${isolated(leader.controller)} leads` : "There is no leader: no controller runs, or Redis has lost its lease";
  if (!state) return leader ? `${who}; no tick yet` : who;
  const { capacity, warming = 0, draining_own = 0, draining_other = 0, unknown = 0, lost = 0, floor = 0, maximum = 0 } = { capacity: 0, ...state.figures };
  const counts = [`${capacity} capacity`, warming && `${warming} warming`, draining_own + draining_other && `${draining_own + draining_other} draining`, unknown && `${unknown} unknown`, lost && `${lost} lost`];
  return `${who} · ${counts.filter(Boolean).join(", ")} · ${floor} to ${maximum} nodes`;
}

function paintTicks(root, state) {
  root.hidden = !state;
  if (!state) return;
  const figures = state.figures ?? {};
  const dots = (state.hits ?? []).map((hit) => (hit ? "●" : "○")).join("");
  const lines = {
    "Out": `${dots || "○"} ${figures.out_hits ?? 0} of the last ${figures.out_window ?? 5} ticks`,
    "In": `${state.quiet_ticks ?? 0} of ${figures.quiet_needed ?? 20} quiet ticks`,
    "Cooldown": (state.cooldown_left_s ?? 0) > 0 ? `${countdown(state.cooldown_left_s * 1000)} left` : "over",
  };
  keyed(root, Object.entries(lines), ([name]) => name, ([name]) => shell("div", "", make("span", { className: "muted", textContent: name }), make("span")), (row, [, value]) => text(row.lastElementChild, value));
}

function create(record) {
  const { action, reason, node, dry_run, detail, controller } = record;
  const title = make("b", { textContent: `${words(action)}${dry_run ? " (dry run)" : ""}` });
  const head = shell("div", "row-head", title, node ? badge(node) : null, make("time", { className: "when", title: new Date(record.at * 1000).toLocaleString() }));
  const item = shell("li", "", head, make("div", { textContent: words(reason) }), make("div", { className: "muted", textContent: [figureWords(record.figures ?? {}), detail && isolated(detail)].filter(Boolean).join(" · ") }));
  item.title = `${controller}, token ${record.token ?? 0}`;
  data(item, { tone: TONES[action] ?? "info" });
  return item;
}

const words = (kebab) => String(kebab || "").replaceAll("-", " ");

/** The figures that decided: `mean 71 %, streams binds; 4 of 5; 3 capacity`. */
function figureWords(figures) {
  const { mean_load = null, binding, mean_after = null, out_hits = 0, out_window = 0, capacity = 0 } = figures;
  const parts = [];
  if (mean_load !== null) parts.push(`mean ${percent(mean_load)}${PARTS[binding] ? `, ${PARTS[binding]} binds` : ""}`);
  if (mean_after !== null) parts.push(`${percent(mean_after)} at most without it`);
  if (out_hits) parts.push(`hit ${out_hits} of ${out_window}`);
  if (capacity) parts.push(`${capacity} capacity`);
  return parts.join(" · ");
}
