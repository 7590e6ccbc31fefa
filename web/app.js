/**
 * The room page. Query parameters: `room`, `name`, `identity`, `token`, `pattern=1` or `media=camera|pattern|none`,
 * `autojoin=1`, `router=ws://…` (asked first; may be given more than once), `relay=1` (media through the fleet's TURN
 * servers only). `window.sluice` is the Player.
 */

import { Player } from "./lib/index.js";
import { shuffled } from "./lib/jitter.js";
import { randomId } from "./lib/protocol.js";
import { renderPanel, renderSwitches, renderTrouble } from "./ui/panel.js";
import { openSending } from "./ui/sending.js";
import { Tiles } from "./ui/tiles.js";
import { deviceText } from "./ui/words.js";

/** Countdowns are brought up to date this often [ms]. */
const REFRESH_MS = 500;
/** Trouble that the player overcomes is shown this long [ms]. */
const TROUBLE_MS = 8000;

const query = new URLSearchParams(location.search);
const form = document.getElementById("join");
const $ = (id) => document.getElementById(id);
let call = null;

/** One visit to a room: the player, what it sends, and the tiles. */
class Call {
  #timer = null;
  #troubleTimer = null;

  constructor({ routers, token, media }) {
    this.media = media;
    this.player = new Player({ routers, token, shuffle: false, relayOnly: query.get("relay") === "1" });
    this.tiles = new Tiles($("grid"));
    this.player.on("state", (state) => this.render(state));
    this.player.on("copy", ({ player, element, kind }) => kind === "video" && this.tiles.mount(player, element));
    this.player.on("trouble", ({ code, message }) => this.trouble(message || code));
    for (const what of ["lost", "replaced", "missing", "back", "muted"]) {
      this.player.on(`device-${what}`, (detail) => this.device(what, detail));
    }
    this.player.on("over", ({ advice }) => end(advice));
    window.sluice = this.player;
  }

  async start() {
    for (const track of this.media.tracks) {
      const renew = this.media.canRenew ? () => this.media.renew(track.kind) : undefined;
      this.player.publish(track, { source: this.media.source[track.kind], renew });
    }
    const { player, canPublish } = await this.player.join();
    this.self = player;
    this.preview();
    renderSwitches(this.media);
    if (!canPublish && this.media.tracks.length) this.trouble("Your token lets you watch only; nothing of yours is sent.");
    this.#timer = setInterval(() => this.render(this.player.state), REFRESH_MS);
  }

  preview() {
    const video = this.media.tracks.filter(({ kind }) => kind === "video");
    this.tiles.preview(this.self, video.length ? new MediaStream(video) : null);
  }

  /** A device has vanished, was replaced, or came back. */
  device(what, detail) {
    if (what === "missing") this.media.lose(detail.kind);
    if (["missing", "replaced", "back"].includes(what)) this.preview();
    renderSwitches(this.media);
    const text = deviceText(what, detail);
    if (text) this.trouble(text);
  }

  toggle(kind) {
    this.media.toggle(kind);
    renderSwitches(this.media);
  }

  render(state) {
    $("room").textContent = state.room ?? "";
    this.tiles.render(state);
    renderPanel(state);
  }

  trouble(text) {
    clearTimeout(this.#troubleTimer);
    renderTrouble(text);
    this.#troubleTimer = setTimeout(() => renderTrouble(null), TROUBLE_MS);
  }

  stop() {
    clearInterval(this.#timer);
    clearTimeout(this.#troubleTimer);
    this.player.close();
    this.media.stop();
  }
}

async function join() {
  const data = new FormData(form);
  const [room, name] = [data.get("room").trim(), data.get("name").trim()];
  $("join-button").disabled = true;
  showError(null);
  let media = null;
  try {
    media = await openSending(data.get("media"), name);
    const token = data.get("token").trim() || (() => fetchToken(room, name));
    call = new Call({ routers: await findRouters(), token, media });
    for (const id of ["call", "room", "connection", "leave", "switches"]) $(id).hidden = false;
    await call.start();
    form.hidden = true;
  } catch (error) {
    if (call) end(error.message);
    else {
      media?.stop();
      showError(error.message);
    }
  } finally {
    $("join-button").disabled = false;
  }
}

function again() {
  end(null);
  join();
}

function end(reason) {
  call?.stop();
  call = null;
  $("grid").replaceChildren();
  for (const id of ["call", "room", "connection", "leave", "notice", "no-media", "switches"]) $(id).hidden = true;
  form.hidden = false;
  showError(reason);
}

function showError(text) {
  $("join-error").hidden = !text;
  $("join-error").textContent = text ?? "";
}

/** Routers of the fleet; the ones in the query come first, the others stand by for when they fail. */
async function findRouters() {
  const preferred = query.getAll("router").map(playerUrl);
  try {
    const response = await fetch("api/routers");
    const { routers } = await response.json();
    const others = routers.map(({ ws }) => ws && playerUrl(ws)).filter((url) => url && !preferred.includes(url));
    const found = [...preferred, ...shuffled(others, Math.random)];
    if (found.length) return found;
  } catch (error) {
    if (preferred.length) return preferred;
    throw new Error("This server does not say which routers there are. Is the fleet up?", { cause: error });
  }
  throw new Error("No router is known yet. Wait a moment and try again.");
}

/** A router says where its websockets are; players have a path of their own there. */
function playerUrl(url) {
  const parsed = new URL(url);
  if (parsed.pathname === "/") parsed.pathname = "/player";
  return parsed.href;
}

async function fetchToken(room, name) {
  const response = await fetch("api/dev-token", {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ room, name, identity: identity() }),
  });
  if (response.ok) return (await response.json()).token;
  if (response.status >= 500) throw new Error(`the router answered ${response.status}`);
  form.querySelector("details").open = true; // the field for a token is in there
  throw Object.assign(
    new Error("This room needs a token: get one from your app or from `sluice token`, and paste it into the field Token."),
    { final: true },
  );
}

/** A window keeps its identity through reloads, and two windows are two people. */
function identity() {
  const known = query.get("identity") ?? sessionStorage.getItem("sluice-identity");
  const value = known ?? `web-${randomId(6)}`;
  sessionStorage.setItem("sluice-identity", value);
  return value;
}

function fillForm() {
  for (const field of ["room", "name", "token"]) if (query.has(field)) form.elements[field].value = query.get(field);
  const media = query.get("media") ?? (query.get("pattern") === "1" ? "pattern" : null);
  if (media) form.elements.media.value = media;
  form.elements.name.value ||= localStorage.getItem("sluice-name") ?? "";
}

form.addEventListener("submit", (event) => {
  event.preventDefault();
  localStorage.setItem("sluice-name", form.elements.name.value);
  join();
});
$("leave").addEventListener("click", () => end(null));
$("move-now").addEventListener("click", () => call?.player.moveNow());
$("stay").addEventListener("click", () => call?.player.stay());
$("let-rule").addEventListener("click", () => call?.player.letRuleDecide());
$("sound").addEventListener("click", () => call?.player.resumeSound());
for (const input of document.querySelectorAll("[data-presence]")) {
  input.addEventListener("change", () => call?.player.setPresence({ [input.dataset.presence]: input.checked }));
}
addEventListener("online", () => call?.player.networkChanged());
for (const kind of ["audio", "video"]) $(`toggle-${kind}`).addEventListener("click", () => call?.toggle(kind));
// A page may be kept for the back button: it leaves the room, for no one could say when it comes back, and joins again.
addEventListener("pagehide", () => call?.player.close());
addEventListener("pageshow", ({ persisted }) => persisted && call && again());
// A page may be frozen in the background; what it was told meanwhile comes late, and its connections may be dead.
document.addEventListener("resume", () => call?.player.networkChanged());

fillForm();
if (query.get("autojoin") === "1" && form.reportValidity()) join();
