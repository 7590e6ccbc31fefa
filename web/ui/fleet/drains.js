/** Drains that go on, the next deadline first, and the last that have ended. */

import { badge, countdown, isolated, make, paintBadge } from "../format.js";
import { data, keyed, shell, style, text } from "./dom.js";
import { drainOf, reasonsOf } from "./model.js";

const SHOWN = 6, ENDED = 4;

/** `open(sfu)` when a drain is chosen. Returns what paints it and tells which SFUs are shown. */
export function drains(root, { open, changed }) {
  let whole = false;
  const [list, none, ended, endedHead] = [make("ul", { className: "rows" }), make("p", { className: "muted", textContent: "No SFU is cordoned or draining." }), make("ul", { className: "rows" }), make("h3", { textContent: "Ended lately" })];
  const more = make("button", { type: "button", className: "small" });
  more.addEventListener("click", () => { whole = !whole; changed(); });
  root.append(list, none, more, endedHead, ended);
  const create = ({ sfu }) => {
    const row = make("button", { type: "button", className: "row-button" },
      shell("span", "row-head", badge(sfu), make("b"), make("span", { className: "when" })),
      shell("span", "drain-bar", make("i"), make("b")), make("span", { className: "muted" }));
    row.addEventListener("click", () => open(sfu, row));
    return make("li", {}, row);
  };
  const paint = (item, { row, drain, players }) => {
    const [head, bar, why] = item.firstChild.children;
    paintBadge(head.children[0], row.sfu, { cordoned: true });
    text(head.children[1], row.players === null ? "? left" : `${row.players} left`);
    text(head.children[2], nextWords(row, drain));
    data(head.children[2], { tone: drain.asking ? "warn" : null });
    bar.hidden = drain.share === null;
    style(bar, "--share", (drain.share ?? 0).toFixed(3));
    style(bar, "--ask", (drain.askShare ?? 0).toFixed(3));
    text(why, [`By ${isolated(drain.cause)}${row.drain.reason ? `: ${isolated(row.drain.reason)}` : ""}`, whyWords(players)].filter(Boolean).join(" · "));
  };
  return (rows, { since, stayers, reports }) => {
    const going = rows.filter(({ drain }) => drain).map((row) => ({ sfu: row.sfu, row, drain: drainOf(row, since), players: stayers.get(row.sfu) }))
      .sort((a, b) => (a.drain.next ?? Infinity) - (b.drain.next ?? Infinity) || a.sfu.localeCompare(b.sfu));
    const shown = whole ? going : going.slice(0, SHOWN);
    keyed(list, shown, ({ sfu }) => sfu, create, paint);
    none.hidden = going.length > 0;
    more.hidden = going.length <= SHOWN;
    text(more, whole ? `Only the next ${SHOWN}` : `${going.length - SHOWN} more, with more time left`);
    endedHead.hidden = !reports.length;
    keyed(ended, reports.slice(0, ENDED), (r) => `${r.sfu} ${r.to_exit_s}`, ({ sfu }) => shell("li", "ended", badge(sfu), make("span")), (item, report) => text(item.lastElementChild, endedWords(report)));
    return shown.map(({ sfu }) => sfu);
  };
}

function nextWords(row, { asks, ends, asking }) {
  if (row.state === "ending") return "final sequence";
  if (row.state === "held") return "held";
  if (asks !== null) return `asks in ${countdown(asks * 1000)}`;
  if (ends !== null) return `${asking ? "asking, " : ""}killed in ${countdown(ends * 1000)}`;
  return asking ? "asking" : "no bound";
}

function whyWords(players) {
  if (!players?.length) return "";
  return reasonsOf(players).slice(0, 3).map(([why, count]) => `${count} ${why}`).join(", ");
}

function endedWords({ version, outcome, to_exit_s, evicted }) {
  const how = outcome === "empty" ? "empty" : outcome || "ended";
  return `${version ? `${isolated(version)}, ` : ""}${how} after ${countdown(to_exit_s * 1000)}, ${evicted ? `${evicted} cut off` : "no one cut off"}`;
}
