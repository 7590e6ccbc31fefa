/** The fleet page: read-only, polls the routers' API. One router knows all SFUs; each knows the rooms it hosts. */

import { amount, badge, countdown, make } from "./ui/format.js";

/** Load figures change once a second [ms]. */
const POLL_MS = 1000;
const TONES = { ONLINE: "good", CORDONED: "warn", TERMINATING: "bad" };
const $ = (id) => document.getElementById(id);

async function get(base, path) {
  const response = await fetch(new URL(path, base), { signal: AbortSignal.timeout(3000) });
  if (!response.ok) throw new Error(`${path} answered ${response.status}`);
  return response.json();
}

/** The same question to every router; those that don't answer are left out. */
async function ask(routers, path) {
  const answers = await Promise.allSettled(routers.map((base) => get(base, path)));
  return answers.filter(({ status }) => status === "fulfilled").map(({ value }) => value);
}

async function refresh() {
  const here = document.baseURI;
  const [{ sfus, router, store_up }, { routers }] = await Promise.all([get(here, "api/sfus"), get(here, "api/routers")]);
  const bases = routers.map(({ http }) => http).filter(Boolean);
  const all = bases.length ? bases : [here];
  const draining = sfus.filter(({ status }) => status === "CORDONED");
  const [rooms, ...stayers] = await Promise.all([
    ask(all, "/api/rooms"),
    ...draining.map(({ sfu }) => ask(all, `/api/sfus/${encodeURIComponent(sfu)}/players`)),
  ]);
  const staying = new Map(draining.map(({ sfu }, i) => [sfu, stayers[i].flatMap(({ players }) => players)]));
  renderSfus(sfus, staying);
  renderRooms(mergeRooms(rooms));
  const text = `${sfus.length} SFUs, ${Math.max(1, routers.length)} routers, as seen by ${router}`;
  say(store_up ? text : `${text}; Redis is away`, store_up ? "good" : "warn");
}

function renderSfus(sfus, staying) {
  const cards = [...sfus].sort((a, b) => a.sfu.localeCompare(b.sfu, "en", { numeric: true }));
  $("sfus").replaceChildren(...cards.map((sfu) => renderSfu(sfu, staying.get(sfu.sfu) ?? [])));
  if (!cards.length) $("sfus").append(make("p", { className: "muted", textContent: "No SFU has reported yet." }));
}

function renderSfu(row, stayers) {
  const { sfu, status, version, load, load_parts: parts, players, producers, consumers, drain, refused } = row;
  const pill = make("span", { className: "pill", textContent: status });
  pill.dataset.tone = TONES[status] ?? "warn";
  const head = make("div", { className: "sfu-head" }, badge(sfu, { cordoned: status !== "ONLINE" }), pill);
  const fill = make("i");
  fill.style.width = `${Math.min(100, (load ?? 0) * 100)}%`;
  fill.dataset.full = String((load ?? 0) >= 0.85);
  const meter = make("div", { className: "meter", title: "Load: the fullest of its parts" }, fill);
  const figures = facts({
    Load: amount(load === null ? null : load * 100, " %"),
    CPU: amount(parts.cpu === null ? null : parts.cpu * 100, " %"),
    Egress: amount(parts.egress_bps === null ? null : parts.egress_bps / 1e6, " Mbit/s", 1),
    Streams: amount(parts.streams),
    Players: amount(players),
    "In / out": `${amount(producers)} / ${amount(consumers)}`,
    Version: version || "–",
  });
  const card = make("article", { className: "card" }, head, meter, figures);
  card.setAttribute("aria-label", `${sfu}, ${status}`);
  if (drain) card.append(make("p", { textContent: drainText(row) }));
  else if (refused) card.append(make("p", { className: "muted", textContent: `Takes no new work: ${refused}` }));
  if (stayers.length) card.append(renderStayers(stayers));
  return card;
}

function facts(pairs) {
  const list = make("dl", { className: "facts" });
  for (const [term, text] of Object.entries(pairs)) {
    list.append(make("dt", { textContent: term }), make("dd", { textContent: text }));
  }
  return list;
}

function drainText({ drain, age_s }) {
  const elapsed = drain.elapsed_s + age_s;
  const cause = drain.cause === "sigterm" ? "SIGTERM" : `by ${drain.by || "an operator"}`;
  const parts = [`Cordoned (${cause})${drain.reason ? `: ${drain.reason}` : ""}.`];
  const inMs = (at_s) => (at_s - elapsed) * 1000;
  if (drain.asking) parts.push("Asks the remaining players to move.");
  else if (drain.drain_max_s !== null) parts.push(`Asks players to move in ${countdown(inMs(drain.drain_max_s))}.`);
  if (drain.grace_s !== null) parts.push(`Killed from outside in ${countdown(inMs(drain.grace_s))}.`);
  return parts.join(" ");
}

function renderStayers(stayers) {
  const rows = stayers.slice(0, 20).map(({ name, identity, room, moving_to, decided, reason }) => {
    const why = moving_to ? `moving to ${moving_to}` : decided ? reason : "has not decided";
    return make("li", { textContent: `${name || identity} (${room}): ${why}` });
  });
  if (stayers.length > 20) rows.push(make("li", { textContent: `and ${stayers.length - 20} more` }));
  return make("details", { open: true }, make("summary", { textContent: `${stayers.length} still here` }), make("ul", { className: "muted" }, ...rows));
}

/** Routers host the same room for different players; a room is shown once. */
function mergeRooms(answers) {
  const rooms = new Map();
  for (const { router, rooms: rows } of answers) {
    for (const row of rows) {
      const known = rooms.get(row.room);
      rooms.set(row.room, {
        ...row,
        players: Math.max(row.players, known?.players ?? 0),
        publications: Math.max(row.publications, known?.publications ?? 0),
        sfus: [...new Set([...(known?.sfus ?? []), ...row.sfus])].sort(),
        routers: [...(known?.routers ?? []), router],
      });
    }
  }
  return [...rooms.values()].sort((a, b) => a.room.localeCompare(b.room, "en", { numeric: true }));
}

function renderRooms(rooms) {
  const lines = rooms.map(({ room, sfu, sfus, players, publications, routers }) => {
    const cell = (...children) => make("td", {}, ...children);
    const carriers = sfus.flatMap((each) => [badge(each), " "]);
    return make("tr", {}, cell(room), cell(sfu ? badge(sfu) : "–"), cell(...carriers), cell(String(players)),
      cell(String(publications)), cell(routers.join(", ")));
  });
  if (!lines.length) lines.push(make("tr", {}, make("td", { colSpan: 6, className: "muted", textContent: "Nobody is in a room." })));
  $("rooms").replaceChildren(...lines);
}

function say(text, tone) {
  if ($("seen").textContent !== text) $("seen").textContent = text;
  $("seen").dataset.tone = tone;
}

async function poll() {
  try {
    await refresh();
    $("trouble").hidden = true;
  } catch (error) {
    say("Not reachable", "bad");
    $("trouble").textContent = `This router does not answer (${error.message}). It may be restarting; trying again each second.`;
    $("trouble").hidden = false;
  }
  setTimeout(poll, document.hidden ? 5 * POLL_MS : POLL_MS);
}

poll();
