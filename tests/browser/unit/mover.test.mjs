// What only the browser's mover has: publications that come and go, a person who chooses, and a state to look at. The rules
// of moving that both movers share are the stories in tests/movers. Plain and synchronous; `now` is an argument.

import assert from "node:assert/strict";
import { test } from "node:test";

import { Mover } from "../../../web/lib/mover.js";
import { Phase } from "../../../web/lib/phase.js";
import { decide, deskRule, RuleBox } from "../../../web/lib/rule.js";

const TALKING = { at_desk: false, in_conversation: true };

/** A mover on a clock of its own, and the effects of the last event by name. */
class Table {
  constructor(options = {}) {
    let id = 0;
    this.now = 1000;
    this.mover = new Mover({ rng: () => 0.5, newId: () => `r${++id}`, ...options });
    this.effects = [];
  }

  event(type, fields = {}) {
    this.effects = this.mover.handle({ type, ...fields }, { now: this.now });
    return this;
  }

  after(ms) {
    this.now += ms;
    return this.event("tick");
  }

  did(name) {
    return this.effects.filter((effect) => effect.do === name);
  }

  only(name) {
    const found = this.did(name);
    assert.equal(found.length, 1, `${name} in ${JSON.stringify(this.effects)}`);
    return found[0];
  }

  get state() {
    return this.mover.state();
  }

  publish(publication, kind = "audio") {
    return this.event("add-publication", { publication, kind, source: `source of ${publication}` });
  }

  assign(sfu, request = "") {
    const numbers = { incarnation: 1, revision: 7 };
    return this.event("assigned", { sfu, request, address: `ws://${sfu}`, token: `t-${sfu}`, ...numbers });
  }

  /** At home on sfu-a (link 1) with an audio and a video publication that the room knows of. */
  atHome() {
    this.publish("mic").publish("cam", "video").event("joined", { assigned: true });
    this.assign("sfu-a").event("entered", { link: 1 });
    for (const publication of ["mic", "cam"]) this.event("flowing", { link: 1, publication, generation: 1 });
    return this;
  }

  cordon(sfu = "sfu-a", revision = 8) {
    const bounds = { asksInMs: 1_800_000, endsInMs: 3_600_000 };
    return this.event("cordoned", { sfu, incarnation: 1, revision, reason: "roll", ...bounds });
  }

  /** Moving from sfu-a to sfu-b (link 2), both connected, nothing flows yet. */
  opening() {
    this.atHome().cordon();
    this.assign("sfu-b", this.only("request-sfu").request);
    return this.event("entered", { link: 2 });
  }

  flow(...publications) {
    for (const publication of publications) this.event("flowing", { link: 2, publication, generation: 2 });
    return this;
  }
}

// --- what a page must do and show ---

test("a link is opened with its token, published on once it is entered, and announced in full", () => {
  const table = new Table().publish("mic").event("joined", { assigned: true }).assign("sfu-a");
  const opened = { do: "open-link", link: 1, sfu: "sfu-a", address: "ws://sfu-a", token: "t-sfu-a" };
  assert.deepEqual(table.only("open-link"), opened);
  table.event("entered", { link: 1 });
  assert.deepEqual(table.only("publish-on"), { do: "publish-on", link: 1, generation: 1 });
  table.event("flowing", { link: 1, publication: "mic", generation: 1 });
  const announced = { publication: "mic", kind: "audio", source: "source of mic", sfu: "sfu-a", generation: 1 };
  assert.deepEqual(table.only("announce"), { do: "announce", ...announced });
});

test("an SFU that lets us in again on a new websocket is not published on twice", () => {
  assert.deepEqual(new Table().opening().event("entered", { link: 2 }).effects, []);
});

test("flowing of another generation or over another link confirms nothing", () => {
  const table = new Table().opening();
  for (const publication of ["mic", "cam"]) {
    table.event("flowing", { link: 2, publication, generation: 1 });
    table.event("flowing", { link: 1, publication, generation: 2 });
  }
  assert.equal(table.state.home, "sfu-a");
});

test("the state tells the wait for the next try, the failures and each step", () => {
  const table = new Table().opening().event("link-lost", { link: 2, reason: "closed" });
  assert.deepEqual([table.state.phase, table.state.retryAt, table.state.failures], [Phase.WAITING, table.now + 500, 1]);
  const steps = table.state.steps.map(({ step, reason }) => [step, reason]);
  assert.deepEqual(steps, [["asked the router", ""], ["assigned sfu-b", ""], ["connected", ""], ["failed", "closed"]]);
});

test("a wait for a moment of our own choice is no retry", () => {
  const table = new Table({ presence: TALKING }).atHome().event("please-move", { sfu: "sfu-a", withinMs: 10_000 });
  const { phase, asked, retryAt, failures } = table.state;
  assert.deepEqual([phase, asked, retryAt, failures], [Phase.WAITING, true, null, 0]);
});

test("being on an SFU again after a loss is told to the page, and is no move", () => {
  const table = new Table().atHome().event("sfu-gone", { sfu: "sfu-a" });
  table.assign("sfu-b", table.only("request-sfu").request).event("entered", { link: 2 }).flow("mic");
  table.now += 70;
  table.flow("cam");
  assert.deepEqual(table.only("recovered"), { do: "recovered", sfu: "sfu-b", left: "sfu-a", tookMs: 70 });
  assert.deepEqual(table.did("move-ended"), []);
});

test("a router that refuses or is silent is told to the page without an SFU", () => {
  const table = new Table().atHome().cordon().after(5000);
  assert.deepEqual(table.only("move-failed"), { do: "move-failed", sfu: null, reason: "router-silent" });
});

test("SFUs that failed, and those whose links still carry media, are told to the next join", () => {
  const table = new Table().opening().event("link-lost", { link: 2, reason: "closed" });
  assert.deepEqual(table.mover.skipped({ now: table.now }), ["sfu-b", "sfu-a"]);
  for (let count = 0; count < 40; count++) table.event("sfu-gone", { sfu: `x${count}` });
  assert.equal(table.mover.skipped({ now: table.now }).length, 16);
});

test("an unfamiliar event is a broken promise", () => {
  assert.throws(() => new Table().event("toString"), /knows no event/);
});

// --- publications that come and go ---

test("a new publication is published at home and announced once it flows there", () => {
  const table = new Table().atHome().publish("screen", "video");
  assert.deepEqual(table.only("publish-on"), { do: "publish-on", link: 1, generation: 1 });
  table.event("flowing", { link: 1, publication: "screen", generation: 1 });
  assert.equal(table.only("announce").publication, "screen");
});

test("a publication that is added during a move goes to both links", () => {
  const table = new Table().opening().publish("screen", "video");
  assert.deepEqual(table.did("publish-on").map(({ link }) => link), [1, 2]);
});

test("a link of a former session takes no new publication", () => {
  const table = new Table().atHome().event("router-lost").event("joined", { assigned: true }).publish("screen", "video");
  assert.deepEqual(table.effects, []);
});

test("a publication that never flowed at home does not hold a move up", () => {
  const table = new Table().atHome().publish("idle", "video").cordon();
  table.assign("sfu-b", table.only("request-sfu").request).event("entered", { link: 2 });
  assert.equal(table.flow("mic", "cam").state.home, "sfu-b");
});

test("a move does not wait for a publication that ends meanwhile", () => {
  const table = new Table().opening().flow("mic");
  assert.equal(table.event("remove-publication", { publication: "cam" }).state.home, "sfu-b");
});

test("a subscriber of a publication that is over does not hold the old link", () => {
  const table = new Table().opening().event("consumers", { link: 1, publication: "cam", count: 1 }).flow("mic", "cam");
  assert.deepEqual(table.state.leaving, ["sfu-a"]);
  assert.equal(table.event("remove-publication", { publication: "cam" }).only("release").sfu, "sfu-a");
});

// --- the person ---

test("a person who stays overrides the rule until the SFU asks", () => {
  const table = new Table({ presence: TALKING }).atHome().cordon().event("choose", { pick: "stay" });
  table.event("presence", { presence: {} });
  assert.equal(table.state.phase, Phase.SETTLED);
  table.event("please-move", { sfu: "sfu-a", withinMs: 10_000 });
  assert.equal(table.did("request-sfu").length, 0);
  assert.equal(table.mover.nextDeadline(), table.now + 5000);
  assert.equal(table.after(5000).only("request-sfu").reason, "asked");
});

test("a person who moves now overrides the rule, and does not wait for the moment that was chosen", () => {
  const table = new Table({ presence: TALKING }).atHome().cordon().event("choose", { pick: "move" });
  assert.equal(table.did("request-sfu").length, 1);
  const asked = new Table({ presence: TALKING }).atHome().event("please-move", { sfu: "sfu-a", withinMs: 10_000 });
  assert.equal(asked.event("choose", { pick: "move" }).did("request-sfu").length, 1);
});

test("staying while a move is under way takes the move back and keeps the old link", () => {
  const table = new Table().opening().event("choose", { pick: "stay" });
  assert.equal(table.only("release").sfu, "sfu-b");
  assert.deepEqual([table.state.home, table.state.phase], ["sfu-a", Phase.SETTLED]);
});

test("a choice is about one SFU and one cordon", () => {
  const table = new Table({ presence: TALKING }).atHome().cordon().event("choose", { pick: "stay" });
  table.event("uncordoned", { sfu: "sfu-a", incarnation: 1, revision: 9 }).event("presence", { presence: {} });
  assert.equal(table.cordon("sfu-a", 10).did("request-sfu").length, 1);
});

// --- the rule ---

const facts = (presence) => ({ sfu: "a", asksInS: null, endsInS: null, presence: { ...TALKING, ...presence } });

/** What the box makes of the rule, and what it tells the developer. */
function answer(rule) {
  const box = new RuleBox(rule);
  const told = [];
  const original = console.error;
  console.error = (...words) => told.push(words.join(" "));
  try {
    return { ...decide({ asked: false, choice: null, box, facts: facts({}) }), faults: box.faults, told };
  } finally {
    console.error = original;
  }
}

test("a rule that throws, or does not answer at once, is told to the developer and counted", () => {
  const broken = () => {
    throw new Error("oops");
  };
  for (const rule of [broken, async () => ({ move: true }), () => undefined, () => 1, () => ({ move: "yes" })]) {
    const { move, reason, faults, told } = answer(rule);
    assert.deepEqual([move, reason, faults, told.length], [false, "rule-failed", 1, 1], String(rule));
  }
  assert.match(answer(broken).told[0], /oops/);
  assert.match(answer(async () => true).told[0], /at once/);
});

test("the default rule says what the Python one says", () => {
  const says = (presence) => deskRule(facts({ at_desk: true, in_conversation: false, ...presence })).reason;
  assert.equal(says({}), "at-desk");
  assert.equal(says({ in_ambient_meeting: true }), "in-ambient-meeting");
  assert.equal(says({ in_ambient_meeting: true, at_desk: false }), "away-from-desk");
});
