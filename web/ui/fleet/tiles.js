/** Many SFUs: a tile each, in groups; arrow keys walk, Enter opens. A tile is touched only when what it shows changes. */

import { make } from "../format.js";
import { data, keyed, shell, style, text } from "./dom.js";
import { percent } from "./meters.js";
import { PARTS, STATES, poolOf } from "./model.js";

const MARK = { egress: "e", streams: "s", cpu: "c" };

/** The view; `paint(groups, names)` into `root`. */
export function tiles(root, { open }) {
  const shown = new WeakMap();
  root.addEventListener("keydown", (event) => walk(event, root));
  root.addEventListener("click", ({ target }) => {
    const tile = target.closest(".tile-sfu");
    if (tile) open(tile.dataset.sfu, tile);
  });

  const createTile = ({ sfu }) => {
    const tile = make("button", { className: "tile-sfu", type: "button", tabIndex: -1 }, make("span"), make("b"), make("i"));
    tile.dataset.sfu = sfu;
    return tile;
  };
  const paintTile = (tile, row, name) => {
    const { label, glyph } = STATES[row.state];
    const load = row.heat === "unknown" ? "–" : Math.round(row.load * 100);
    const signature = `${name} ${row.state} ${load} ${row.binding} ${row.players}`;
    if (shown.get(tile) === signature) return;
    shown.set(tile, signature);
    const [id, figure, mark] = tile.children;
    text(id, name);
    text(figure, row.heat === "unknown" ? "–" : `${load}${MARK[row.binding] ?? ""}`);
    text(mark, glyph);
    data(tile, { state: row.state, heat: row.heat });
    style(tile, "--share", row.heat === "unknown" ? 0 : Math.min(1, row.load).toFixed(2));
    const binds = row.binding ? `, ${PARTS[row.binding]} binds` : "";
    const said = `${row.sfu}: ${label}, load ${row.heat === "unknown" ? "not known" : percent(row.load) + binds}, ${row.players ?? "unknown"} players`;
    tile.setAttribute("aria-label", said);
    tile.title = said;
  };

  const createGroup = ({ name }) => {
    const head = make("h3", { className: "group-head" }, make("span"), make("span", { className: "muted" }));
    const grid = make("div", { className: "tiles-sfu", role: "group" });
    grid.setAttribute("aria-label", name || "All SFUs");
    return shell("section", "group", head, grid);
  };
  const paintGroup = (section, { name, rows }, names) => {
    const [head, grid] = section.children;
    head.hidden = !name;
    text(head.children[0], name);
    text(head.children[1], groupWords(rows));
    keyed(grid, rows, ({ sfu }) => sfu, createTile, (tile, row) => paintTile(tile, row, names.get(row.sfu)));
  };

  return (groups, names) => {
    keyed(root, groups, ({ name }) => name, createGroup, (section, group) => paintGroup(section, group, names));
    if (!root.querySelector('.tile-sfu[tabindex="0"]')) root.querySelector(".tile-sfu")?.setAttribute("tabindex", "0");
  };
}

function groupWords(rows) {
  const pool = poolOf(rows);
  const parts = [`${rows.length} SFUs`];
  if (pool.load !== null) parts.push(`mean ${percent(pool.load)}, ${PARTS[pool.binding]} binds`);
  for (const [state, count] of Object.entries(pool.states)) {
    if (count && state !== "online") parts.push(`${count} ${STATES[state].label.toLowerCase()}`);
  }
  return parts.join(" · ");
}

/** One tile is in the tab order; arrows, Home and End move it. Up and down go by what is seen, not by index. */
function walk(event, root) {
  const here = event.target.closest?.(".tile-sfu");
  if (!here) return;
  const all = [...root.querySelectorAll(".tile-sfu")];
  const i = all.indexOf(here);
  const to = {
    ArrowRight: () => all[i + 1],
    ArrowLeft: () => all[i - 1],
    ArrowDown: () => nearest(here, all.slice(i + 1), 1),
    ArrowUp: () => nearest(here, all.slice(0, i).reverse(), -1),
    Home: () => all[0],
    End: () => all.at(-1),
  }[event.key]?.();
  if (!to) return;
  event.preventDefault();
  root.querySelector('.tile-sfu[tabindex="0"]')?.setAttribute("tabindex", "-1");
  to.tabIndex = 0;
  to.focus();
}

function nearest(here, others, way) {
  const { top, left } = here.getBoundingClientRect();
  let best = null, row = null;
  for (const other of others) {
    const box = other.getBoundingClientRect();
    if ((box.top - top) * way < 4) continue;
    row ??= box.top;
    if (Math.abs(box.top - row) > 4) break;
    if (!best || Math.abs(box.left - left) < Math.abs(best.left - left)) best = { other, left: box.left };
  }
  return best?.other;
}
