/** The fleet page: polls the routers' API and paints what changed. One router knows all SFUs; each its own players. */

import { cards } from "./ui/fleet/cards.js";
import { data, keyed, text } from "./ui/fleet/dom.js";
import { drains } from "./ui/fleet/drains.js";
import { Drawer } from "./ui/fleet/drawer.js";
import { Feed } from "./ui/fleet/feed.js";
import { GROUPS, ORDERS, fits, grouped, poolOf, shortNames, understand } from "./ui/fleet/model.js";
import { Operator } from "./ui/fleet/operator.js";
import { overview } from "./ui/fleet/overview.js";
import { placements } from "./ui/fleet/placements.js";
import { rooms } from "./ui/fleet/rooms.js";
import { scaling } from "./ui/fleet/scaling.js";
import { tiles } from "./ui/fleet/tiles.js";
import { make } from "./ui/format.js";

/** Up to here each SFU is a card; beyond, a tile. */
const CARDS = 12;
/** Loads remembered an SFU, for its line. */
const HISTORY = 90;
const $ = (id) => document.getElementById(id);

const chosen = new Set();
const history = new Map();
let rows = [];
let painted = 0;

const feed = new Feed(learn, () => operator.token);
const drawer = new Drawer($("drawer"), { act: (verb, row) => operator.command(verb, row), changed: choose });
const operator = new Operator($("operator"), () => { feed.hurry("fleet"); later(); });
const open = (sfu, from) => drawer.open(sfu, from);
const view = {
  overview: overview($("overview"), { toggle }),
  cards: cards({ open }),
  tiles: tiles($("tiles"), { open }),
  drains: drains($("drains"), { open, changed: later }),
  scaling: scaling($("scaling")),
  placements: placements($("placements")),
  rooms: rooms({ body: $("rooms"), more: $("rooms-more") }),
};

/** News from the feed. */
function learn({ fleet }) {
  if (fleet) {
    if (!rows.length && fleet.sfus.length) $("rooms-section").open = fleet.sfus.length <= CARDS;
    rows = fleet.sfus.map(understand);
    remember();
    operator.seen(new Map(rows.map((row) => [row.sfu, row])));
  }
  later();
}

function remember() {
  const { at } = feed.known;
  if (remember.at === at) return; // the same answer as before
  remember.at = at;
  const here = new Set(rows.map(({ sfu }) => sfu));
  for (const sfu of history.keys()) if (!here.has(sfu)) history.delete(sfu);
  for (const row of rows) {
    const loads = history.get(row.sfu) ?? [];
    loads.push(row.heat === "unknown" ? null : row.load);
    if (loads.length > HISTORY) loads.shift();
    history.set(row.sfu, loads);
  }
}

/** Paint once before the next frame, however often asked. */
function later() {
  if (painted) return;
  painted = requestAnimationFrame(() => {
    painted = 0;
    paint();
  });
}

function paint() {
  const { fleet, trouble, stayers, placements: placed, scaling: scaled, drains: reports, open: opened } = feed.known;
  text($("trouble"), trouble);
  $("trouble").hidden = !trouble;
  if (!fleet) return trouble && say(feed.known.closed ? "For operators" : "Not reachable", "bad");
  const since = (performance.now() - feed.known.at) / 1000;
  const nowAt = fleet.now_at + since;
  sayWhoAnswers(fleet, trouble);
  view.overview(poolOf(rows), { chosen, routers: fleet.routers });
  paintSfus({ since, stayers });
  const shown = view.drains(rows, { since, stayers, reports });
  feed.wanted.stayers = shown;
  view.scaling(scaled, { nowAt });
  view.placements(placed, { nowAt });
  if (feed.known.rooms) view.rooms(feed.known.rooms, $("find-room").value.trim().toLowerCase());
  const row = rows.find(({ sfu }) => sfu === drawer.sfu);
  const loads = history.get(drawer.sfu) ?? [];
  drawer.paint(row, { since, history: loads, most: HISTORY, open: opened, order: operator.orders.get(drawer.sfu), nowAt });
  for (const tile of document.querySelectorAll(".tile-sfu[data-open]")) if (tile.dataset.sfu !== drawer.sfu) delete tile.dataset.open;
  document.querySelector(`.tile-sfu[data-sfu="${CSS.escape(drawer.sfu)}"]`)?.setAttribute("data-open", "true");
}

function paintSfus({ since, stayers }) {
  const few = rows.length <= CARDS;
  const query = $("find").value;
  const fitting = rows.filter((row) => (!chosen.size || chosen.has(row.state)) && fits(row, query));
  $("tools").hidden = few && !query && !chosen.size;
  $("sfus").hidden = !few;
  $("tiles").hidden = few;
  const groups = grouped(fitting, { group: few ? "none" : $("group").value, order: few ? "name" : steady() });
  if (few) {
    keyed($("sfus"), groups[0]?.rows ?? [], ({ sfu }) => sfu, view.cards.create, (card, row) =>
      view.cards.paint(card, row, { since, history: history.get(row.sfu) ?? [], most: HISTORY, players: stayers.get(row.sfu) }));
  } else view.tiles(groups, shortNames(rows.map(({ sfu }) => sfu)));
  const left = feed.known.fleet.left_out;
  const none = rows.length ? "No SFU fits what you look for." : "No SFU has reported yet.";
  text($("found"), fitting.length ? (fitting.length < rows.length ? `${fitting.length} of ${rows.length} shown` : "") + (left ? ` (${left} more are not listed)` : "") : none);
}

/** Orders by a moving figure would make tiles jump each second: they are sorted again when the person asks. */
let frozen = null;
function steady() {
  const order = $("order").value;
  if (order === "name" || order === "state") return order;
  const ids = frozen?.order === order ? frozen.ranks : new Map();
  const newcomers = rows.filter(({ sfu }) => !ids.has(sfu)).sort(ORDERS[order].compare);
  for (const { sfu } of newcomers) ids.set(sfu, ids.size);
  frozen = { order, ranks: ids };
  ORDERS.steady = { label: "", compare: (a, b) => ids.get(a.sfu) - ids.get(b.sfu) };
  return "steady";
}

function sayWhoAnswers({ router, store_up }, trouble) {
  if (trouble) say(feed.known.closed ? "For operators" : "Not reachable", "bad");
  else say(store_up ? `As seen by ${router}` : `As seen by ${router}; Redis is away`, store_up ? "good" : "warn");
}

function say(words, tone) {
  text($("seen"), words);
  data($("seen"), { tone });
}

function toggle(state) {
  if (!chosen.delete(state)) chosen.add(state);
  later();
}

function choose(sfu) {
  feed.wanted.open = sfu;
  feed.hurry("open");
  later();
}

function fill(select, options, start) {
  select.append(...Object.entries(options).map(([value, { label }]) => make("option", { value, textContent: label, selected: value === start })));
}

fill($("group"), GROUPS, "cell");
fill($("order"), ORDERS, "name");
for (const id of ["find", "find-room"]) $(id).addEventListener("input", later);
for (const id of ["group", "order"]) $(id).addEventListener("change", () => { frozen = null; later(); });
$("sort-now").addEventListener("click", () => { frozen = null; later(); });
$("clear").addEventListener("click", () => { chosen.clear(); $("find").value = ""; later(); });
const roomsOpened = () => { feed.wanted.rooms = $("rooms-section").open; feed.hurry("rooms"); };
$("rooms-section").addEventListener("toggle", roomsOpened);
roomsOpened();
setInterval(() => document.hidden || later(), 1000); // countdowns go on between two answers
feed.run();
