/** One SFU in detail, at the side: load, drain, who is on it and why, rooms, commands. */

import { amount, badge, isolated, make, paintBadge } from "../format.js";
import { reasonText } from "../words.js";
import { drainBlock, noteOf, statePill } from "./cards.js";
import { data, facts, keyed, shell, text } from "./dom.js";
import { partLines, percent, sparkline } from "./meters.js";
import { ago } from "./scaling.js";
import { VERBS, verbsFor, whyNone } from "./operator.js";

const PEOPLE = 60, ROOMS = 60;

export class Drawer {
  sfu = "";
  #root;
  #back = null;
  #parts;

  /** `act(verb, row)` for a command; `changed(sfu)` when it opens on an SFU or closes (""). */
  constructor(root, { act, changed }) {
    this.#root = root;
    this.#parts = build(root, act, () => this.close());
    this.changed = changed;
    document.addEventListener("keydown", ({ key }) => {
      if (key === "Escape" && this.sfu && !document.querySelector("dialog[open]")) this.close();
    });
  }

  open(sfu, from) {
    this.sfu = sfu;
    this.#back = from;
    this.#root.hidden = false;
    this.changed(sfu);
    this.#parts.close.focus({ preventScroll: true });
  }

  close() {
    this.sfu = "";
    this.#root.hidden = true;
    this.changed("");
    if (this.#back?.isConnected) this.#back.focus({ preventScroll: true });
  }

  /** `row` is undefined once the SFU has gone. */
  paint(row, { since, history, most, open, order, nowAt }) {
    if (!this.sfu) return;
    const p = this.#parts;
    const mine = open?.sfu === this.sfu ? open : null;
    paintBadge(p.name, this.sfu, { cordoned: row?.drained });
    p.gone.hidden = Boolean(row);
    p.body.hidden = !row;
    const wasTold = document.activeElement === p.order;
    text(p.order, order?.text ?? "");
    data(p.order, { state: order?.state ?? null });
    if (!row) return;
    p.pill.paint(row.state);
    text(p.load, row.heat === "unknown" ? "load not known" : `${percent(row.load)} load`);
    p.spark.paint(history, most);
    p.lines.paint(row);
    p.drain.paint(row, { since, players: mine?.players });
    text(p.note, noteOf(row));
    const hadFocus = p.verbs.contains(document.activeElement);
    keyed(p.verbs, verbsFor(row), (verb) => verb, (verb) => verbButton(verb, p.act, () => p.row), (button) => { button.disabled = order?.state === "ordered"; });
    const held = document.activeElement;
    // A command that was given is no button any more: the keyboard goes on from what became of it.
    if (hadFocus && (!p.verbs.contains(held) || held.disabled)) p.order.focus({ preventScroll: true });
    if (wasTold && !order?.text) (p.verbs.querySelector("button:enabled") ?? p.close).focus({ preventScroll: true });
    p.row = row;
    text(p.none, whyNone(row));
    p.facts.paint({
      "Players": amount(row.players), "Rooms": amount(row.rooms), "Tracks in, out": `${amount(row.producers)}, ${amount(row.consumers)}`,
      "Cell": row.cell, "Version": row.version || "–", "Address": row.address,
      "First seen": row.started_at === null ? "–" : ago(nowAt - row.started_at),
      "Last heard of": row.age_s < 2 ? "now" : `${row.age_s.toFixed(0)} s ago`,
      "First packet": row.milestones.first_packet_s === undefined || row.milestones.first_packet_s === null ? "–" : `${row.milestones.first_packet_s.toFixed(1)} s after its start`,
    });
    paintPeople(p, mine);
  }
}

function build(root, act, closed) {
  const close = make("button", { type: "button", className: "small", textContent: "Close" });
  close.addEventListener("click", closed);
  const p = {
    act, close, row: null, name: badge(""), pill: statePill(), load: make("b", { className: "load" }), spark: sparkline(), lines: partLines(), drain: drainBlock({ people: 8 }),
    note: make("p", { className: "muted" }), facts: facts(), verbs: make("div", { className: "verbs" }), none: make("p", { className: "muted" }), order: make("p", { className: "order", role: "status", tabIndex: -1 }),
    gone: make("p", { className: "muted", textContent: "It has gone: ended, or not heard of for long." }),
    people: make("ul", { className: "people" }), peopleHead: make("h3"), rooms: make("ul", { className: "people" }), roomsHead: make("h3"),
  };
  p.body = shell("div", "drawer-body", shell("div", "load-line", p.load, p.spark.svg), p.lines.list, p.note, p.drain.block, p.verbs, p.none, p.facts.list, p.peopleHead, p.people, p.roomsHead, p.rooms);
  root.replaceChildren(shell("div", "sfu-head", p.name, p.pill.pill, make("span", { className: "spacer" }), close), p.gone, p.order, p.body);
  return p;
}

function verbButton(verb, act, rowNow) {
  const button = make("button", { type: "button", textContent: VERBS[verb].label });
  button.addEventListener("click", () => act(verb, rowNow()));
  return button;
}

function paintPeople(p, mine) {
  const players = mine?.players ?? [], rooms = mine?.rooms ?? [];
  text(p.peopleHead, mine ? `Players at home here, as routers hold them: ${players.length}` : "Asking who is here");
  keyed(p.people, players.slice(0, PEOPLE), ({ player }) => player, () => make("li", {}, make("span"), make("span", { className: "muted" })), (item, player) => {
    text(item.firstChild, `${isolated(player.name || player.identity)}, in ${isolated(player.room)}`);
    text(item.lastChild, player.moving_to ? `moving to ${isolated(player.moving_to)}` : player.decided ? reasonText(player.reason) : p.row?.drained ? "has not decided" : "");
  });
  text(p.roomsHead, mine ? `Rooms: ${rooms.length}` : "");
  keyed(p.rooms, rooms.slice(0, ROOMS), ({ room }) => room, () => make("li", {}, make("span"), make("span", { className: "muted" })), (item, room) => {
    text(item.firstChild, room.room);
    text(item.lastChild, `${room.players} players${room.sfu && room.sfu !== mine.sfu ? `; new work goes to ${isolated(room.sfu)}` : ""}`);
  });
}
