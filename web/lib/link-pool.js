/**
 * The media links that are open, one for each SFU: the home, the one being moved to, the ones being left, and visits to
 * SFUs that carry something the player wants to see.
 *
 * Events:  "lost" {sfu, reason}, and every event of a link with its `sfu` added (see media-link.js)
 */

import { Emitter } from "./emitter.js";
import { Backoff } from "./jitter.js";
import { MediaLink } from "./media-link.js";

const PASSED_ON = [
  "entered",
  "flowing",
  "consumers",
  "track",
  "track-gone",
  "ended",
  "please-move",
  "refused",
  "publish-lost",
  "unsubscribed",
];

export class LinkPool extends Emitter {
  #links = new Map(); // sfu -> MediaLink
  #visits = new Map(); // sfu -> {backoff, timer, request} while a visit is being arranged
  #wanted = new Map();

  /**
   * @param {object} options
   * @param {(sfu: string) => string | null} options.requestAccess asks the router; the id of the request, or null when
   *   there is no router just now
   * @param {() => number} options.rng
   */
  constructor({ requestAccess, rng, makeLink = (options) => new MediaLink(options) }) {
    super();
    this.requestAccess = requestAccess;
    this.rng = rng;
    this.makeLink = makeLink;
  }

  get(sfu) {
    return this.#links.get(sfu) ?? null;
  }

  sfus() {
    return [...this.#links.keys()];
  }

  /** Open the player's home at an SFU, or make a visit that is open already its home. */
  openHome({ sfu, address, token }) {
    const visit = this.#links.get(sfu);
    if (visit) visit.enterAgain(token);
    else this.#open({ sfu, address, token });
    return this.#links.get(sfu);
  }

  /**
   * Subscribe to what is wanted, open visits for it, and leave every SFU that is needed for nothing.
   * @param {Map<string, Set<string>>} wanted SFU -> publications
   * @param {Set<string>} publishing SFUs whose link stays in any case
   */
  reconcile(wanted, publishing) {
    this.#wanted = wanted;
    for (const [sfu, link] of this.#links) {
      if (wanted.has(sfu) || publishing.has(sfu)) link.subscribe(wanted.get(sfu) ?? []);
      else {
        this.#links.delete(sfu);
        link.leave();
      }
    }
    for (const sfu of wanted.keys()) {
      // A link that is about to be opened for publishing serves for subscribing too.
      if (!this.#links.has(sfu) && !this.#visits.has(sfu) && !publishing.has(sfu)) this.#arrange(sfu);
    }
    for (const [sfu, { timer }] of this.#visits) {
      if (wanted.has(sfu) && !this.#links.has(sfu)) continue;
      clearTimeout(timer);
      this.#visits.delete(sfu);
    }
  }

  /** The router granted a visit. */
  granted({ sfu, address, token, request }) {
    const visit = this.#visits.get(sfu);
    if (visit?.request !== request || this.#links.has(sfu)) return;
    clearTimeout(visit.timer);
    visit.request = null;
    this.#open({ sfu, address, token });
  }

  /** The router refused the request of this id; true when it was one of ours. */
  refused(request) {
    const found = [...this.#visits].find(([, visit]) => visit.request === request);
    if (found) this.#retry(found[0]);
    return Boolean(found);
  }

  /** The SFU is known to be gone: do not wait for its connections to say so. */
  drop(sfu, reason) {
    const link = this.#links.get(sfu);
    if (!link) return;
    link.close();
    this.#over(sfu, link, reason);
  }

  close() {
    for (const { timer } of this.#visits.values()) clearTimeout(timer);
    this.#visits.clear();
    for (const link of this.#links.values()) link.leave();
    this.#links.clear();
  }

  #open({ sfu, address, token }) {
    const link = this.makeLink({ sfu, address, token });
    this.#links.set(sfu, link);
    for (const name of PASSED_ON) link.on(name, (detail) => this.emit(name, { sfu, ...detail }));
    link.on("entered", () => this.#visits.delete(sfu));
    link.on("lost", ({ reason }) => this.#over(sfu, link, reason));
    if (this.#wanted.has(sfu)) link.subscribe(this.#wanted.get(sfu));
  }

  #over(sfu, link, reason) {
    if (this.#links.get(sfu) !== link) return;
    this.#links.delete(sfu);
    this.emit("lost", { sfu, reason });
    if (this.#visits.has(sfu)) this.#retry(sfu);
  }

  #arrange(sfu) {
    this.#visits.set(sfu, { backoff: new Backoff({ rng: this.rng }), timer: null, request: null });
    this.#ask(sfu);
  }

  #ask(sfu) {
    const visit = this.#visits.get(sfu);
    visit.request = this.requestAccess(sfu);
    // No answer, or no router to ask: try again until nobody wants anything from there.
    visit.timer = setTimeout(() => this.#retry(sfu), visit.request ? 5000 : 500);
  }

  #retry(sfu) {
    const visit = this.#visits.get(sfu);
    clearTimeout(visit.timer);
    visit.request = null;
    visit.timer = setTimeout(() => this.#ask(sfu), visit.backoff.next());
  }
}
