// Runs a story of stories/ over the browser's mover. runner.py is the same for the Python one.

import assert from "node:assert/strict";

import { Mover } from "../../web/lib/mover.js";
import { deskRule } from "../../web/lib/rule.js";

export const SEEDS = [1, 2, 3, 4, 5];
const SLACK_S = 1e-6;

const RULES = {
  desk: deskRule,
  never: () => ({ move: false, reason: "never" }),
  throws: () => {
    throw new Error("no");
  },
  nonsense: () => "yes",
  no: () => false,
  wordy: () => ({ move: false, reason: "x".repeat(1000) }),
};
const KINDS = { mic: "audio", cam: "video" };

/** mulberry32: a small generator with a seed. */
function seeded(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** One story with one seed. `run` throws at the first step that does not hold. */
export class Run {
  constructor(story, seed) {
    const { publications = ["mic", "cam"], presence = {}, rule = "desk" } = story.start ?? {};
    let requests = 0;
    const newId = () => `request-${++requests}`;
    this.story = story;
    this.publications = publications;
    this.mover = new Mover({ rng: seeded(seed), newId, rule: RULES[rule], presence });
    this.now = 100_000; // ms
    this.request = "";
    this.names = new Map(); // link number -> name
    this.generations = new Map(); // generation -> name
    this.open = new Set();
    this.flows = new Set(); // "publication link"
    for (const publication of publications) {
      this.#handle({ type: "add-publication", publication, kind: KINDS[publication], source: publication });
    }
  }

  run() {
    if (this.story.start?.at) this.#settle(this.story.start.at);
    this.story.steps.forEach((step, index) => this.#step(step, `step ${index + 1}, ${step.event}`));
  }

  #settle(sfu) {
    this.#happens({ event: "joined", assigned: true });
    this.#happens({ event: "assigned", sfu, request: "" });
    this.#happens({ event: "entered", link: sfu });
    for (const publication of this.publications) this.#happens({ event: "flowing", link: sfu, publication });
    assert.equal(this.mover.state().phase, "settled");
  }

  #step(step, where) {
    if (step.at_due) {
      this.#dueIn(step.at_due, where);
      this.now = Math.max(this.now, this.mover.nextDeadline());
    }
    this.now += Math.round((step.after ?? 0) * 1e6) / 1000;
    const effects = this.#happens(step);
    const expected = step.effects ?? [];
    const matches = effects.length === expected.length && effects.every((word, index) => isAs(word, expected[index]));
    assert.ok(matches, `${where}: expected ${JSON.stringify(expected)}, the mover does ${JSON.stringify(effects)}`);
    const { phase, ruleFaults } = this.mover.state();
    if (step.phase !== undefined) assert.equal(phase, step.phase, where);
    if (step.rule_faults !== undefined) assert.equal(ruleFaults, step.rule_faults, where);
    if (step.due === null) assert.equal(this.mover.nextDeadline(), null, `${where}: there is a deadline`);
    else if (step.due) this.#dueIn(step.due, where);
  }

  #dueIn([least, most], where) {
    const deadline = this.mover.nextDeadline();
    assert.notEqual(deadline, null, `${where}: no deadline`);
    const ahead = (deadline - this.now) / 1000;
    const isWithin = least - SLACK_S <= ahead && ahead <= most + SLACK_S;
    assert.ok(isWithin, `${where}: the deadline is ${ahead} s ahead, not ${least} to ${most}`);
  }

  #handle(event) {
    return this.mover.handle(event, { now: this.now });
  }

  #happens(step) {
    return this.#handle(this.#event(step)).map((effect) => this.#word(effect)).filter(Boolean);
  }

  #event(step) {
    const { event, incarnation = 1, revision = 1, sfu, request = this.request } = step;
    const version = { sfu, incarnation, revision };
    const link = step.link === undefined ? null : this.#number(step.link);
    const events = {
      tick: () => ({}),
      joined: () => ({ assigned: step.assigned }),
      "router-back": () => ({}),
      "router-lost": () => ({}),
      assigned: () => ({ ...version, request, address: "ws://x", token: "t" }),
      refused: () => ({ request, code: step.code, retryAfterMs: step.retry_after_s ? step.retry_after_s * 1000 : null }),
      cordoned: () => version,
      uncordoned: () => version,
      gone: () => ({ type: "sfu-gone", sfu, reason: step.reason ?? "" }),
      asked: () => ({ ...version, type: "please-move", withinMs: step.within_s * 1000 }),
      presence: () => ({ presence: step.presence }),
      entered: () => ({ link }),
      connected: () => ({ link }),
      flowing: () => this.#flowing(step, link),
      watched: () => ({ type: "consumers", link, publication: step.publication, count: step.count }),
      "link-down": () => ({ type: "link-lost", link, reason: step.reason, cut: step.cut ?? true }),
    };
    assert.ok(Object.hasOwn(events, event), `no such event: ${event}`);
    return { type: event, ...events[event]() };
  }

  #flowing({ link: name, publication }, link) {
    this.flows.add(`${publication} ${name}`);
    const [generation] = [...this.generations].find(([, known]) => known === name);
    return { link, publication, generation };
  }

  #number(name) {
    return [...this.names].find(([, known]) => known === name)[0];
  }

  #word({ do: name, ...effect }) {
    const words = {
      "request-sfu": () => this.#ask(effect),
      "open-link": () => `open ${this.#opened(effect)}`,
      "publish-on": () => this.#publishOn(effect),
      announce: () => this.#announce(effect),
      release: () => this.#release(effect),
      decided: () => `decided ${effect.sfu}: ${effect.move ? "move" : "stay"}, ${effect.reason}`,
      "move-ended": () => `moved from ${effect.left} to ${effect.sfu} after ${+(effect.tookMs / 1000).toFixed(4)} s`,
      "move-failed": () => effect.sfu && `failed ${effect.sfu}: ${effect.reason}`,
      "move-cancelled": () => `cancelled: ${effect.reason}`,
      // For people to look at; the Python mover has more and other steps.
      "move-began": () => null,
      recovered: () => null,
    };
    return words[name]();
  }

  #ask({ request, reason, leave, incarnation, revision, exclude }) {
    this.request = request;
    const leaving = leave ? ` leaving ${leave}@${incarnation}.${revision}` : "";
    const excluding = exclude.length ? ` excluding ${exclude.join(" ")}` : "";
    return `ask ${reason}${leaving}${excluding}`;
  }

  #opened({ link, sfu }) {
    const before = [...this.names.values()].filter((name) => name.split("#")[0] === sfu).length;
    const name = before ? `${sfu}#${before + 1}` : sfu;
    this.names.set(link, name);
    this.open.add(name);
    return name;
  }

  #publishOn({ link, generation }) {
    const name = this.names.get(link);
    assert.ok(this.open.has(name), `${name} is not open`);
    if (!this.generations.has(generation)) {
      assert.ok(generation > Math.max(0, ...this.generations.keys()), "the generation must grow");
      this.generations.set(generation, name);
    }
    assert.equal(this.generations.get(generation), name);
    return null;
  }

  #announce({ publication, sfu, generation }) {
    const link = this.generations.get(generation);
    assert.equal(link.split("#")[0], sfu);
    assert.ok(this.flows.has(`${publication} ${link}`), `${publication} does not flow on ${link}`);
    return `announce ${publication} on ${link}`;
  }

  #release({ link }) {
    const name = this.names.get(link);
    assert.ok(this.open.delete(name), `${name} is not open`);
    return `release ${name}`;
  }
}

const isAs = (word, expected) => (expected.endsWith("*") ? word.startsWith(expected.slice(0, -1)) : word === expected);
