// The rules of moving: web/lib/mover.js. Plain and synchronous; `now` is an argument.

import assert from "node:assert/strict";
import { test } from "node:test";

import { RELEASE_TIMEOUT_MS } from "../../../web/lib/leaving.js";
import { EXCLUDE_MS, Mover } from "../../../web/lib/mover.js";
import { Phase, TIMEOUT_MS } from "../../../web/lib/phase.js";

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

  assign(sfu, request = "") {
    const numbers = { incarnation: 1, revision: 7 };
    return this.event("assigned", { sfu, request, address: `ws://${sfu}`, token: `t-${sfu}`, ...numbers });
  }

  /** At home on sfu-a with an audio and a video publication that everybody knows of. */
  atHome() {
    this.event("add-publication", { publication: "mic", kind: "audio", source: "microphone" });
    this.event("add-publication", { publication: "cam", kind: "video", source: "camera" });
    this.assign("sfu-a").event("entered", { sfu: "sfu-a" });
    for (const publication of ["mic", "cam"]) this.event("flowing", { sfu: "sfu-a", publication, generation: 1 });
    return this;
  }

  cordon(sfu = "sfu-a", revision = 8) {
    const bounds = { asksInMs: 1_800_000, endsInMs: 3_600_000 };
    return this.event("cordoned", { sfu, incarnation: 1, revision, reason: "roll", ...bounds });
  }

  /** Moving from sfu-a to sfu-b, both connected, nothing flows yet. */
  confirming() {
    this.atHome().cordon();
    this.assign("sfu-b", this.only("request-sfu").request);
    return this.event("entered", { sfu: "sfu-b" });
  }

  flow(...publications) {
    const generation = 2;
    for (const publication of publications) this.event("flowing", { sfu: "sfu-b", publication, generation });
    return this;
  }
}

test("a first assignment is opened, published on and announced only once it flows", () => {
  const table = new Table();
  table.event("add-publication", { publication: "mic", kind: "audio", source: "microphone" });
  assert.deepEqual(table.assign("sfu-a").only("open-link").token, "t-sfu-a");
  table.event("entered", { sfu: "sfu-a" });
  assert.deepEqual(table.only("publish-on"), { do: "publish-on", sfu: "sfu-a", generation: 1 });
  assert.equal(table.did("announce").length, 0);
  table.event("flowing", { sfu: "sfu-a", publication: "mic", generation: 1 });
  const announced = { publication: "mic", kind: "audio", source: "microphone", sfu: "sfu-a", generation: 1 };
  assert.deepEqual(table.only("announce"), { do: "announce", ...announced });
  assert.equal(table.state.phase, Phase.SETTLED);
});

test("a cordon at the desk starts a request that names the SFU to leave and the revision heard", () => {
  const table = new Table().atHome().cordon("sfu-a", 12);
  const { leave, incarnation, revision, reason } = table.only("request-sfu");
  assert.deepEqual([leave, incarnation, revision, reason], ["sfu-a", 1, 12, "cordoned"]);
  assert.equal(table.only("decided").move, true);
});

test("a player in an ambient meeting stays, is asked again when that changes, and then moves", () => {
  const table = new Table({ presence: { in_ambient_meeting: true } }).atHome().cordon();
  assert.deepEqual(table.only("decided").move, false);
  assert.equal(table.did("request-sfu").length, 0);
  assert.equal(table.event("presence", { presence: {} }).did("request-sfu").length, 1);
});

test("the rule is a plug-in, and one that throws moves rather than strands", () => {
  const never = new Table({
    rule: () => ({ move: false, reason: "never" }),
    presence: { in_conversation: true },
  })
    .atHome()
    .cordon();
  assert.equal(never.did("request-sfu").length, 0);
  const broken = new Table({
    rule: () => {
      throw new Error("oops");
    },
  });
  assert.equal(broken.atHome().cordon().did("request-sfu").length, 1);
});

test("a player that stays for a conversation moves when it ends, wherever it sits", () => {
  const table = new Table({ presence: { at_desk: false, in_conversation: true } }).atHome().cordon();
  assert.equal(table.did("request-sfu").length, 0);
  table.event("presence", { presence: { at_desk: false, in_conversation: false } });
  assert.equal(table.only("decided").reason, "the conversation is over");
  assert.equal(table.did("request-sfu").length, 1);
});

test("a decision is told once, not at every event", () => {
  const table = new Table({ presence: { at_desk: false, in_conversation: true } }).atHome().cordon();
  assert.equal(table.after(5000).did("decided").length, 0);
});

test("a cordon of an SFU that is not home changes nothing now, and counts once the player lands there", () => {
  const table = new Table().atHome().cordon("sfu-x");
  assert.deepEqual(table.effects, []);
});

test("the room hears of nothing until every live publication flows on the new SFU", () => {
  const table = new Table().confirming();
  assert.deepEqual(table.only("publish-on"), { do: "publish-on", sfu: "sfu-b", generation: 2 });
  assert.equal(table.flow("mic").did("announce").length, 0);
  assert.equal(table.state.home, "sfu-a");
  assert.deepEqual(table.flow("cam").did("announce").map(({ sfu, generation }) => [sfu, generation]), [
    ["sfu-b", 2],
    ["sfu-b", 2],
  ]);
  assert.equal(table.state.home, "sfu-b");
});

test("a publication that never flowed at home does not hold a move up", () => {
  const table = new Table().atHome();
  table.event("add-publication", { publication: "idle", kind: "video", source: "screen" }).cordon();
  table.assign("sfu-b", table.only("request-sfu").request).event("entered", { sfu: "sfu-b" });
  assert.equal(table.flow("mic", "cam").state.home, "sfu-b");
});

test("flowing of another generation or another SFU confirms nothing", () => {
  const table = new Table().confirming();
  for (const publication of ["mic", "cam"]) {
    table.event("flowing", { sfu: "sfu-b", publication, generation: 1 });
    table.event("flowing", { sfu: "sfu-a", publication, generation: 2 });
  }
  assert.equal(table.state.home, "sfu-a");
});

test("the old link is let go when its last consumer has gone, and the move ends then", () => {
  const table = new Table().confirming();
  table.event("consumers", { sfu: "sfu-a", publication: "mic", count: 2 });
  table.event("consumers", { sfu: "sfu-a", publication: "cam", count: 1 });
  table.flow("mic", "cam");
  assert.deepEqual(table.state.leaving, ["sfu-a"]);
  table.event("consumers", { sfu: "sfu-a", publication: "cam", count: 0 });
  assert.equal(table.did("release").length, 0);
  table.now += 40;
  table.event("consumers", { sfu: "sfu-a", publication: "mic", count: 0 });
  assert.equal(table.only("release").sfu, "sfu-a");
  assert.deepEqual(table.only("move-ended"), { do: "move-ended", sfu: "sfu-b", left: "sfu-a", tookMs: 40 });
});

test("a consumer that never goes holds the old link for thirty seconds and no longer", () => {
  const table = new Table().confirming().event("consumers", { sfu: "sfu-a", publication: "mic", count: 1 });
  table.flow("mic", "cam");
  assert.equal(table.after(RELEASE_TIMEOUT_MS - 1).did("release").length, 0);
  assert.equal(table.after(1).only("release").sfu, "sfu-a");
});

test("an attempt that fails leaves the old link alone, excludes that SFU and tries again with jitter", () => {
  const table = new Table().confirming().after(TIMEOUT_MS[Phase.CONFIRMING]);
  assert.deepEqual(table.did("release").map(({ sfu }) => sfu), ["sfu-b"]);
  assert.equal(table.state.home, "sfu-a");
  assert.equal(table.state.retryAt, table.now + 500); // half of the first second: rng is 0.5
  const again = table.after(500).only("request-sfu");
  assert.deepEqual([again.exclude, again.leave, again.reason], [["sfu-b"], "sfu-a", "cordoned"], "sfu-a still carries it");
});

test("a player that found no SFU says so when it asks again, and one that could not reach its SFU says that", () => {
  const table = new Table().event("refused", { code: "no-sfu", retryAfterMs: 2000 });
  const first = table.after(3000).only("request-sfu");
  assert.deepEqual([first.reason, first.exclude], ["join", []]);
  table.assign("sfu-a", first.request).event("link-lost", { sfu: "sfu-a", reason: "refused" });
  const second = table.after(1000).only("request-sfu");
  assert.deepEqual([second.reason, second.exclude], ["failed", ["sfu-a"]]);
});

test("the next attempt publishes with a higher generation than the one that failed", () => {
  const table = new Table().confirming().event("link-lost", { sfu: "sfu-b", reason: "closed" }).after(500);
  table.assign("sfu-c", table.only("request-sfu").request).event("entered", { sfu: "sfu-c" });
  assert.equal(table.only("publish-on").generation, 3);
});

test("an exclusion ends after a minute", () => {
  const table = new Table().confirming().event("link-lost", { sfu: "sfu-b", reason: "closed" });
  table.after(EXCLUDE_MS);
  assert.deepEqual(table.only("request-sfu").exclude, []);
});

test("a refusal with retry_after is waited out, spread around it", () => {
  const table = new Table().atHome().cordon();
  const { request } = table.only("request-sfu");
  table.event("refused", { request, code: "no-sfu", retryAfterMs: 4000 });
  assert.equal(table.state.retryAt, table.now + 4000);
  assert.deepEqual(table.state.excluded, []);
});

test("an answer to an older request is ignored", () => {
  const table = new Table().atHome().cordon().assign("sfu-b", "r0");
  assert.equal(table.did("open-link").length, 0);
});

test("a person who stays overrides the rule until the SFU asks", () => {
  const table = new Table({ presence: { at_desk: false, in_conversation: true } }).atHome().cordon().event("choose", { pick: "stay" });
  table.event("presence", { presence: {} });
  assert.equal(table.state.phase, Phase.SETTLED);
  table.event("please-move", { sfu: "sfu-a", withinMs: 10_000 });
  assert.equal(table.did("request-sfu").length, 0);
  assert.equal(table.mover.nextDeadline(), table.now + 5000);
  assert.equal(table.after(5000).only("request-sfu").reason, "asked");
});

test("a person who moves now overrides the rule", () => {
  const table = new Table({ presence: { at_desk: false, in_conversation: true } }).atHome().cordon().event("choose", { pick: "move" });
  assert.equal(table.did("request-sfu").length, 1);
});

test("staying while a move is under way takes the move back and keeps the old link", () => {
  const table = new Table().confirming().event("choose", { pick: "stay" });
  assert.equal(table.only("release").sfu, "sfu-b");
  assert.equal(table.state.home, "sfu-a");
  assert.equal(table.state.phase, Phase.SETTLED);
});

test("an uncordon takes the move back; an older one is not believed", () => {
  const table = new Table().confirming();
  table.event("uncordoned", { sfu: "sfu-a", incarnation: 1, revision: 7 });
  assert.equal(table.state.phase, Phase.CONFIRMING);
  table.event("uncordoned", { sfu: "sfu-a", incarnation: 1, revision: 9 });
  assert.equal(table.state.phase, Phase.SETTLED);
  assert.equal(table.state.cordon, null);
});

test("a broken home link is tried once more at once, then another SFU is asked for", () => {
  const table = new Table().atHome().event("link-lost", { sfu: "sfu-a", reason: "closed" });
  const first = table.only("request-sfu");
  assert.deepEqual([first.leave, first.reason, first.exclude], ["", "lost", []]);
  table.assign("sfu-a", first.request);
  assert.equal(table.only("open-link").sfu, "sfu-a");
  table.event("link-lost", { sfu: "sfu-a", reason: "refused" });
  const second = table.only("request-sfu");
  assert.deepEqual([second.leave, second.reason, second.exclude], ["sfu-a", "lost", ["sfu-a"]]);
});

test("an SFU that is gone is left at once, and what was published is announced anew as it flows", () => {
  const table = new Table().atHome().event("sfu-gone", { sfu: "sfu-a" });
  assert.equal(table.only("request-sfu").leave, "sfu-a");
  table.assign("sfu-b", table.only("request-sfu").request).event("entered", { sfu: "sfu-b" });
  assert.equal(table.only("move-ended").left, "sfu-a");
  assert.equal(table.flow("mic").only("announce").generation, 2);
});

test("losing the old SFU in the middle of a move does not stop the move", () => {
  const table = new Table().confirming().flow("mic").event("sfu-gone", { sfu: "sfu-a" });
  assert.equal(table.state.home, "sfu-b");
  assert.equal(table.only("announce").publication, "mic");
  assert.equal(table.flow("cam").only("announce").publication, "cam");
});

test("losing the new SFU before the switch keeps the old one", () => {
  const table = new Table().confirming().event("sfu-gone", { sfu: "sfu-b" });
  assert.equal(table.state.home, "sfu-a");
  assert.deepEqual(table.only("request-sfu").exclude, ["sfu-b"]);
});

test("a new session opens everything anew", () => {
  const table = new Table().atHome().event("rejoined");
  assert.equal(table.only("release").sfu, "sfu-a");
  table.assign("sfu-a").event("entered", { sfu: "sfu-a" });
  assert.equal(table.only("publish-on").generation, 2);
});

test("no SFU at the join is asked for again, after the time the router gave", () => {
  const table = new Table().event("refused", { request: "", code: "no-sfu", retryAfterMs: 2000 });
  assert.equal(table.after(2000).only("request-sfu").leave, "");
});

test("a home SFU that is cordoned while the link to it opens is left again", () => {
  const table = new Table();
  table.assign("sfu-a").cordon("sfu-a").event("entered", { sfu: "sfu-a" });
  assert.equal(table.only("request-sfu").leave, "sfu-a");
});

test("an old SFU that somebody still consumes from is not asked for", () => {
  const table = new Table().confirming().event("consumers", { sfu: "sfu-a", publication: "mic", count: 1 });
  table.flow("mic", "cam").cordon("sfu-b");
  assert.deepEqual(table.only("request-sfu").exclude, ["sfu-a"]);
});

test("an event that nobody knows is a broken promise", () => {
  assert.throws(() => new Table().event("toString"), /knows no event/);
});
