/** Who acts here: an operator's token, entered once and kept for this tab; commands, confirmed, followed until the SFU has. */

import { isolated, make } from "../format.js";
import { shell, text } from "./dom.js";

const KEY = "sluice-operator-token";
/** A command passes one sync interval and two messages; after ten times that something is wrong. */
const FOLLOWED_WITHIN_MS = 12_000;
export const VERBS = {
  cordon: { label: "Cordon", done: (row) => row.drained, says: (row) => `${row.sfu} takes no new work and is held; what it carries goes on. Its ${row.players ?? 0} players are told and may move; none has to.` },
  drain: { label: "Drain", done: (row) => row.drained && row.drain?.exit_when_empty, says: (row) => `${row.sfu} takes no new work and ends when its ${row.players ?? 0} players have left. Each moves when its own rule says so; no one is cut. You can take it back until it ends.` },
  uncordon: { label: "Uncordon", done: (row) => !row.drained, says: (row) => `${row.sfu} takes new work again.` },
};

/** Which commands make sense now. */
export function verbsFor({ state, drain }) {
  if (state === "ending" || state === "silent") return [];
  if (!drain) return ["cordon", "drain"];
  const back = drain.cause === "sigterm" ? [] : ["uncordon"];
  return drain.exit_when_empty ? back : ["drain", ...back];
}

/** Why there is nothing to command; empty when there is. */
export function whyNone({ state, drain }) {
  if (state === "ending") return "It runs its final sequence: nothing can be commanded.";
  if (state === "silent") return "It is not heard of: nothing can be commanded until it is.";
  return drain?.exit_when_empty && drain.cause === "sigterm" ? "Its process got SIGTERM, which nothing takes back." : "";
}

export class Operator {
  name = "";
  /** SFU -> what became of the last command there: `{verb, state: "ordered"|"done"|"failed", text, since}`. */
  orders = new Map();
  #changed;
  #dialog;
  #button;

  constructor(button, changed) {
    this.#button = button;
    this.#changed = changed;
    this.#dialog = document.body.appendChild(make("dialog", { className: "card" }));
    button.addEventListener("click", () => (this.name ? this.#signedIn() : this.#signIn()));
    this.#show();
    if (this.token) this.#check(this.token).catch(() => this.#forget());
  }

  /** Ask, confirm, send. */
  async command(verb, row) {
    if (!this.name && !(await this.#signIn())) return;
    const reason = await this.#confirm(verb, row);
    if (reason === null) return;
    this.#note(row.sfu, { verb, state: "ordered", text: `${VERBS[verb].label} is ordered; waiting for ${row.sfu} to follow.`, since: performance.now() });
    const { status, body } = await this.#post(`api/sfus/${encodeURIComponent(row.sfu)}/${verb}`, { reason });
    if (status === 202) return;
    if (status === 401 || status === 403) this.#forget();
    this.#note(row.sfu, { verb, state: "failed", text: `${VERBS[verb].label} was refused (${body.error}): ${body.fix}.` });
  }

  /** What each SFU says now: has it followed? */
  seen(rows) {
    for (const [sfu, order] of this.orders) {
      if (order.state !== "ordered") continue;
      const row = rows.get(sfu);
      if (row ? VERBS[order.verb].done(row) : order.verb === "drain") this.#note(sfu, { ...order, state: "done", text: "" });
      else if (performance.now() - order.since > FOLLOWED_WITHIN_MS) {
        this.#note(sfu, { ...order, state: "failed", text: `${sfu} has not followed within ${FOLLOWED_WITHIN_MS / 1000} s. Is a router up that it is linked to? Its log says what it heard.` });
      }
    }
  }

  /** Null when there is none. */
  get token() {
    return sessionStorage.getItem(KEY);
  }

  #note(sfu, order) {
    this.orders.set(sfu, order);
    this.#changed();
  }

  #forget() {
    sessionStorage.removeItem(KEY);
    this.name = "";
    this.#show();
  }

  #show() {
    text(this.#button, this.name ? `Operator ${isolated(this.name)}` : "Act as operator");
    this.#changed();
  }

  async #check(token) {
    const { status, body } = await send("api/operator", { headers: { Authorization: `Bearer ${token}` } });
    if (status !== 200) throw new Error(`${body.error}: ${body.fix}`);
    sessionStorage.setItem(KEY, token);
    this.name = body.operator;
    this.#show();
  }

  #post(path, body) {
    const headers = { Authorization: `Bearer ${this.token}`, "Content-Type": "application/json" };
    return send(path, { method: "POST", headers, body: JSON.stringify(body) });
  }

  /** True once there is a token that opens. */
  #signIn() {
    const field = make("textarea", { rows: 4, required: true, autocomplete: "off", spellcheck: false, id: "operator-token" });
    const trouble = make("p", { className: "error", role: "alert" });
    const label = make("label", { htmlFor: "operator-token", textContent: "Operator's token" });
    const hint = make("p", { className: "muted" }, "Make one with ", make("code", { textContent: "sluice token NAME --operator" }), ". It is kept for this tab only.");
    return this.#ask("Act as operator", [label, field, hint, trouble], "Use this token", async () => {
      try {
        await this.#check(field.value.trim());
        return true;
      } catch (error) {
        text(trouble, `Not accepted: ${error.message}.`);
        return undefined;
      }
    });
  }

  #signedIn() {
    const words = make("p", { textContent: `You act as ${isolated(this.name)}. Routers log each command with that name, and the SFU shows it.` });
    return this.#ask(`Operator ${isolated(this.name)}`, [words], "Forget the token", async () => {
      this.#forget();
      return true;
    });
  }

  /** The reason, or null when it is not to be done. */
  async #confirm(verb, row) {
    const reason = make("input", { maxLength: 200, id: "command-reason", placeholder: "new kernel" });
    const label = make("label", { htmlFor: "command-reason", textContent: "Reason (all who look at the fleet see it)" });
    const { label: name, says } = VERBS[verb];
    const asked = verb === "uncordon" ? [] : [label, reason];
    const sure = await this.#ask(`${name} ${row.sfu}?`, [make("p", { textContent: says(row) }), ...asked], name, async () => true);
    return sure ? reason.value.trim() : null;
  }

  /** A dialog; what `act` gives once it gives something, or null when it was closed. */
  #ask(title, children, action, act) {
    const dialog = this.#dialog;
    const yes = make("button", { className: "primary", textContent: action });
    const no = make("button", { type: "button", textContent: "Cancel" });
    const form = make("form", { method: "dialog" }, make("h2", { textContent: title }), ...children, shell("div", "notice-actions", yes, no));
    dialog.replaceChildren(form);
    dialog.showModal();
    return new Promise((resolve) => {
      const end = (value) => { dialog.close(); resolve(value); };
      form.addEventListener("submit", async (event) => {
        event.preventDefault();
        yes.disabled = true;
        const value = await act();
        yes.disabled = false;
        if (value !== undefined) end(value);
      });
      no.addEventListener("click", () => end(null));
      dialog.oncancel = () => resolve(null);
    });
  }
}

/** An answer, or what to do when there is none. */
async function send(path, options) {
  try {
    const response = await fetch(new URL(path, document.baseURI), { ...options, signal: AbortSignal.timeout(8000) });
    return { status: response.status, body: await response.json() };
  } catch (error) {
    return { status: 0, body: { error: error.message, fix: "the router does not answer; try again, or open the page of another router" } };
  }
}
