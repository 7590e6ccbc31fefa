/**
 * The websocket to a router: joins, keeps it alive, and resumes on any router when it is lost. Media is not concerned.
 *
 * Events:  "status"  {status: "connecting" | "open" | "waiting" | "over", url, retryInMs, detail}
 *          "open"    {url}                 the websocket is open, nothing said yet
 *          "welcome" the message           the session has begun or was resumed (`resumed`)
 *          "message" the message           every other message of a router
 *          "lost"    {}                    the session is without a router for now
 *          "over"    {code, advice}        it will not try again; join again if you like
 */

import { Emitter } from "./emitter.js";
import { Backoff, shuffled } from "./jitter.js";
import { CHECK_MS, Close, CLOSE_ADVICE, read, write } from "./protocol.js";

/** From the first try to connect to `welcome` [ms]. */
export const WELCOME_TIMEOUT_MS = 5000;
/** Pause before reconnecting when the router found us too fast [ms]. */
export const TOO_FAST_PAUSE_MS = 2000;

/** After these there is no point in trying again with what we have. */
const FINAL = new Set([Close.REPLACED, Close.BAD_TOKEN, Close.BAD_MESSAGE]);

export class RouterConnection extends Emitter {
  #socket = null;
  #timers = new Set();
  #resumeToken = null;
  #next = 0;
  #unanswered = 0;
  #welcomed = false;
  #over = false;
  #retryTimer = null;
  #lastError = null;

  /**
   * @param {object} options
   * @param {string[]} options.routers websocket URLs of routers, any order
   * @param {string | (() => Promise<string>)} options.token from the app; a function is asked for a fresh one at each join;
   *   it throws an error with `final: true` when there will be none, which ends the session with that error's message
   * @param {() => {presence: object, sfu: string, publications: object[], exclude: string[]}} options.facts what a
   *   `join` and a `resume` tell
   * @param {() => number} options.rng
   * @param {typeof WebSocket} [options.WebSocketClass]
   * @param {boolean} [options.shuffle] false: ask them in the order given
   */
  constructor({ routers, token, facts, rng, WebSocketClass = globalThis.WebSocket, shuffle = true, client = "sluice-web" }) {
    super();
    if (!routers?.length) throw new Error("a player needs the URL of at least one router");
    this.routers = shuffle ? shuffled(routers, rng) : [...routers];
    this.token = token;
    this.facts = facts;
    this.rng = rng;
    this.client = client;
    this.WebSocketClass = WebSocketClass;
    this.backoff = new Backoff({ rng });
    this.url = null;
  }

  /** Begin; the outcome comes as "welcome" or "over". */
  connect() {
    this.#attempt();
  }

  /** Send a message now; false (and nothing is kept) while there is no session: `resume` tells the router the rest. */
  send(type, fields) {
    if (!this.#welcomed || this.#socket?.readyState !== 1) return false;
    this.#socket.send(write(type, fields));
    return true;
  }

  /** The network is back, or the person is impatient: try at once. */
  retryNow() {
    if (this.#retryTimer === null) return;
    this.#cancel(this.#retryTimer);
    this.#retryTimer = null;
    this.#attempt();
  }

  /** Media fell silent or the network changed: without an answer to this the router is looked for elsewhere. */
  check() {
    const socket = this.#socket;
    if (!this.send("ping", { n: 0 })) {
      this.retryNow();
      return;
    }
    this.#unanswered++;
    this.#after(CHECK_MS, () => this.#unanswered > 0 && this.#lost(socket, 0, "no answer"));
  }

  /** End the session for good. */
  close() {
    this.send("leave");
    this.#over = true;
    this.#drop();
  }

  async #attempt() {
    const url = this.routers[this.#next++ % this.routers.length];
    this.url = url;
    this.#status("connecting");
    let token = null;
    try {
      if (!this.#resumeToken) token = typeof this.token === "function" ? await this.token() : this.token;
    } catch (error) {
      // The app knows whether asking again could help; by default it could.
      if (error.final) this.#finish(Close.BAD_TOKEN, error.message);
      else this.#retry(`no token: ${error.message}`);
      return;
    }
    if (this.#over) return;
    let socket;
    try {
      socket = new this.WebSocketClass(url);
    } catch (error) {
      this.#finish(0, `${url} is not the address of a router: ${error.message}`);
      return;
    }
    this.#socket = socket;
    const timeout = this.#after(WELCOME_TIMEOUT_MS, () => this.#lost(socket, 0, "no answer"));
    socket.onopen = () => {
      this.emit("open", { url });
      socket.send(this.#resumeToken ? this.#resume() : this.#join(token));
    };
    socket.onmessage = ({ data }) => {
      if (socket === this.#socket) this.#receive(data, timeout);
    };
    socket.onclose = ({ code, reason }) => this.#lost(socket, code, reason);
  }

  #join(token) {
    const { presence, exclude } = this.facts();
    return write("join", { token, presence, client: this.client, exclude });
  }

  #resume() {
    const { presence, sfu, publications } = this.facts();
    return write("resume", { resume_token: this.#resumeToken, presence, sfu, publications });
  }

  #receive(data, timeout) {
    let message;
    try {
      message = read(data);
    } catch (error) {
      console.warn("sluice: the router sent what is no message", error);
      return;
    }
    this.#unanswered = 0;
    if (message === null || message.type === "pong") return;
    if (message.type === "welcome") {
      this.#cancel(timeout);
      this.#resumeToken = message.resume_token;
      this.#welcomed = true;
      this.backoff.reset();
      this.#every(message.ping_every_s * 1000);
      this.#status("open");
      this.emit("welcome", message);
      return;
    }
    if (message.type === "error") this.#lastError = message;
    if (message.type === "router-closing") this.#moveOn(message.after_s * 1000);
    this.emit("message", message);
  }

  #moveOn(afterMs) {
    const socket = this.#socket;
    this.#after(afterMs, () => this.#lost(socket, 0, "the router is closing"));
  }

  #every(periodMs) {
    let n = 0;
    const ping = () => {
      if (this.#unanswered >= 2) {
        this.#lost(this.#socket, 0, "no answer to pings");
        return;
      }
      this.#unanswered++;
      this.send("ping", { n: ++n });
      this.#after(periodMs, ping);
    };
    this.#after(periodMs, ping);
  }

  #lost(socket, code, reason) {
    if (socket !== this.#socket || this.#over) return;
    const resuming = this.#resumeToken !== null;
    const wasWelcomed = this.#welcomed;
    this.#drop();
    if (wasWelcomed) this.emit("lost", {});
    if (code === Close.NOT_RESUMABLE || (code === Close.BAD_TOKEN && resuming)) {
      this.#resumeToken = null;
      this.#attempt();
    } else if (FINAL.has(code)) this.#finish(code, this.#advice(code));
    else this.#retry(reason || this.#lastError?.message || "connection lost", code === Close.TOO_FAST ? TOO_FAST_PAUSE_MS : 0);
  }

  #retry(detail, pauseMs = 0) {
    const retryInMs = pauseMs + this.backoff.next();
    this.#status("waiting", { retryInMs, detail });
    this.#retryTimer = this.#after(retryInMs, () => {
      this.#retryTimer = null;
      this.#attempt();
    });
  }

  #advice(code) {
    const said = this.#lastError?.message;
    return CLOSE_ADVICE[code] + (said ? ` (${said})` : "");
  }

  #finish(code, advice) {
    this.#over = true;
    this.#status("over", { detail: advice });
    this.emit("over", { code, advice });
  }

  #drop() {
    for (const timer of this.#timers) clearTimeout(timer);
    this.#timers.clear();
    this.#retryTimer = null;
    this.#welcomed = false;
    this.#unanswered = 0;
    const socket = this.#socket;
    this.#socket = null;
    socket?.close();
  }

  #status(status, { retryInMs = null, detail = "" } = {}) {
    this.emit("status", { status, url: this.url, retryInMs, detail });
  }

  #after(ms, action) {
    const timer = setTimeout(() => {
      this.#timers.delete(timer);
      action();
    }, ms);
    this.#timers.add(timer);
    return timer;
  }

  #cancel(timer) {
    clearTimeout(timer);
    this.#timers.delete(timer);
  }
}
