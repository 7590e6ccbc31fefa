/**
 * The media links that are open, one for each SFU: the home, the one being moved to, the ones being left, and visits to
 * SFUs that carry something the player wants to see. Links of a former session stay, under a key of their own, as long as
 * they are of use; without a former session the key is the SFU's id.
 *
 * Events:  "lost" {reason}, and every event of a link (see media-link.js), each with the link's `sfu`, `key`, and `link`:
 *          the number by which the mover knows it while it publishes, else null
 */

import { Emitter } from "./emitter.js";
import { Backoff } from "./jitter.js";
import { MediaLink } from "./media-link.js";

const PASSED_ON = [
  "entered",
  "connected",
  "media",
  "flowing",
  "consumers",
  "track",
  "track-gone",
  "ended",
  "please-move",
  "refused",
  "publish-lost",
  "away",
  "silent",
  "unsubscribed",
];

/** The SFU of a link's key. */
export const sfuOf = (key) => key.split("\n")[0];

const about = ({ key, number }) => ({ sfu: sfuOf(key), key, link: number });

export class LinkPool extends Emitter {
  #links = new Map(); // key -> {key, link: MediaLink, number}
  #visits = new Map(); // sfu -> {backoff, timer, request} while a visit is being arranged
  #wanted = new Map();
  #formers = 0;

  /**
   * @param {object} options
   * @param {(sfu: string) => string | null} options.requestAccess asks the router; the id of the request, or null when
   *   there is no router just now
   * @param {() => number} options.rng
   * @param {() => RTCConfiguration} [options.ice]
   */
  constructor({ requestAccess, rng, ice, makeLink = (options) => new MediaLink(options) }) {
    super();
    this.requestAccess = requestAccess;
    this.rng = rng;
    this.ice = ice;
    this.makeLink = makeLink;
  }

  /** The SFUs with a link, each once. */
  sfus() {
    return [...new Set([...this.#links.keys()].map(sfuOf))];
  }

  /** The media connections of each link: {sfu, publishes, subscribes, where}; see media-link.js. */
  media() {
    return [...this.#links.values()].map(({ key, link }) => ({ sfu: sfuOf(key), ...link.media }));
  }

  /** Open a link to publish over, or make a visit that is open already one. */
  openHome({ link: number, sfu, address, token }, sources) {
    const visit = this.#links.get(sfu);
    // One that is trying to enter again keeps its media as it is; the mover will be told of another SFU.
    if (visit?.link.isAway) return;
    if (visit) {
      visit.number = number;
      visit.link.enterAgain(token);
    } else this.#open({ sfu, address, token, number }).prepare(sources);
  }

  publish(number, sources, generation) {
    this.#numbered(number)?.link.publish(sources, generation);
  }

  /** Publish over this link no longer; `reconcile` closes it unless it is subscribed to. */
  release(number) {
    const entry = this.#numbered(number);
    if (!entry) return;
    entry.number = null;
    entry.link.stopPublishing();
  }

  async replaceTrack(publication, track) {
    await Promise.all([...this.#links.values()].map(({ link }) => link.replaceTrack(publication, track)));
  }

  /**
   * The session is a new one: the links of the old one carry on as they are, but can be used for nothing new.
   * @returns {Map<string, string>} the key of each, by the SFU's id that it had for a key
   */
  newSession() {
    const keys = new Map();
    for (const [key, entry] of [...this.#links]) {
      if (key !== sfuOf(key)) continue; // set aside already
      const aside = `${key}\n${++this.#formers}`;
      this.#links.delete(key);
      this.#links.set(aside, entry);
      entry.key = aside;
      keys.set(key, aside);
    }
    for (const { timer } of this.#visits.values()) clearTimeout(timer);
    this.#visits.clear();
    return keys;
  }

  /**
   * Subscribe to what is wanted, open visits for it, and leave every SFU that is needed for nothing.
   * @param {Map<string, Set<string>>} wanted key -> publications
   * @param {Set<number>} publishing numbers of links that stay in any case
   */
  reconcile(wanted, publishing) {
    this.#wanted = wanted;
    for (const [key, { link, number }] of this.#links) {
      if (wanted.has(key) || publishing.has(number)) link.subscribe(wanted.get(key) ?? []);
      else {
        this.#links.delete(key);
        link.leave();
      }
    }
    for (const key of wanted.keys()) {
      if (!this.#links.has(key) && !this.#visits.has(key) && key === sfuOf(key)) this.#arrange(key);
    }
    for (const [sfu, { timer }] of this.#visits) {
      if (this.#links.has(sfu) ? this.#links.get(sfu).link.needsAccess : wanted.has(sfu)) continue;
      clearTimeout(timer);
      this.#visits.delete(sfu);
    }
  }

  /** The router granted a visit, or fresh access for a link that is to enter again. */
  granted({ sfu, address, token, request }) {
    const visit = this.#visits.get(sfu);
    const present = this.#links.get(sfu);
    if (!visit || visit.request !== request || (present && !present.link.needsAccess)) return;
    clearTimeout(visit.timer);
    visit.request = null;
    if (present) present.link.renew({ address, token });
    else this.#open({ sfu, address, token, number: null });
  }

  /** The router refused the request of this id; true when it was one of ours. */
  refused(request) {
    const found = [...this.#visits].find(([, visit]) => visit.request === request);
    if (found) this.#retry(found[0]);
    return Boolean(found);
  }

  /** The SFU is known to be gone: do not wait for its connections to say so. */
  drop(sfu, reason) {
    for (const entry of [...this.#links.values()]) {
      if (sfuOf(entry.key) !== sfu) continue;
      entry.link.close();
      this.#over(entry, reason);
    }
  }

  networkChanged() {
    for (const { link } of this.#links.values()) link.networkChanged();
  }

  close() {
    for (const { timer } of this.#visits.values()) clearTimeout(timer);
    this.#visits.clear();
    for (const { link } of this.#links.values()) link.leave();
    this.#links.clear();
  }

  #open({ sfu, address, token, number }) {
    const link = this.makeLink({ sfu, address, token, ice: this.ice, rng: this.rng });
    const entry = { key: sfu, link, number };
    this.#links.set(sfu, entry);
    for (const name of PASSED_ON) link.on(name, (detail) => this.emit(name, { ...about(entry), ...detail }));
    link.on("entered", () => this.#visits.delete(entry.key));
    // A link of a former session gets no access any more; its media goes on until it ends.
    link.on("needs-access", () => entry.key === sfu && !this.#visits.has(sfu) && this.#arrange(sfu));
    link.on("lost", ({ reason }) => this.#over(entry, reason));
    if (this.#wanted.has(sfu)) link.subscribe(this.#wanted.get(sfu));
    return link;
  }

  #numbered(number) {
    return [...this.#links.values()].find((entry) => entry.number === number) ?? null;
  }

  #over(entry, reason) {
    if (this.#links.get(entry.key) !== entry) return;
    this.#links.delete(entry.key);
    this.emit("lost", { ...about(entry), reason });
    if (this.#visits.has(entry.key)) this.#retry(entry.key);
  }

  #arrange(sfu) {
    this.#visits.set(sfu, { backoff: new Backoff({ rng: this.rng }), timer: null, request: null });
    this.#ask(sfu);
  }

  #ask(sfu) {
    const visit = this.#visits.get(sfu);
    visit.request = this.requestAccess(sfu);
    // No answer, or no router to ask: try again until nothing is wanted from there.
    visit.timer = setTimeout(() => this.#retry(sfu), visit.request ? 5000 : 500);
  }

  #retry(sfu) {
    const visit = this.#visits.get(sfu);
    clearTimeout(visit.timer);
    visit.request = null;
    visit.timer = setTimeout(() => this.#ask(sfu), visit.backoff.next());
  }
}
