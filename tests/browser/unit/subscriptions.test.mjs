// Which copy is displayed: web/lib/subscriptions.js.

import assert from "node:assert/strict";
import { test } from "node:test";

import { DOUBT_MS, Subscriptions } from "../../../web/lib/subscriptions.js";

const cam = (sfu, generation = 1, player = "bob") => ({
  publication: "cam", player, kind: "video", source: "camera", sfu, generation,
});

function shown(sfu = "a") {
  const subscriptions = new Subscriptions();
  subscriptions.snapshot([cam(sfu)], { now: 0 });
  subscriptions.trackArrived({ publication: "cam", sfu, copy: "c1" });
  subscriptions.firstMedia({ publication: "cam", copy: "c1" });
  return subscriptions;
}

const wanted = (subscriptions) =>
  Object.fromEntries([...subscriptions.desired()].map(([sfu, ids]) => [sfu, [...ids]]));
const names = (effects) => effects.map((effect) => `${effect.do} ${effect.copy ?? effect.publication}`);

test("a publication is wanted from the SFU that carries it, and shown at its first frame", () => {
  const subscriptions = new Subscriptions();
  subscriptions.snapshot([cam("a")], { now: 0 });
  assert.deepEqual(wanted(subscriptions), { a: ["cam"] });
  assert.deepEqual(subscriptions.trackArrived({ publication: "cam", sfu: "a", copy: "c1" }), []);
  const [effect] = subscriptions.firstMedia({ publication: "cam", copy: "c1" });
  assert.deepEqual(effect, { do: "show", publication: "cam", copy: "c1", instead: null, cut: false });
});

test("a move subscribes to both copies until the new one has shown a frame", () => {
  const subscriptions = shown();
  subscriptions.update({ publications: [cam("b", 2)] });
  assert.deepEqual(wanted(subscriptions), { a: ["cam"], b: ["cam"] });
  subscriptions.trackArrived({ publication: "cam", sfu: "b", copy: "c2" });
  assert.deepEqual(wanted(subscriptions), { a: ["cam"], b: ["cam"] });
  const effects = subscriptions.firstMedia({ publication: "cam", copy: "c2" });
  assert.deepEqual(names(effects), ["show c2", "retire c1"]);
  assert.equal(effects[0].cut, false);
  assert.deepEqual(wanted(subscriptions), { b: ["cam"] });
});

test("first media of a copy that is not awaited switches nothing", () => {
  const subscriptions = shown();
  subscriptions.update({ publications: [cam("b", 2)] });
  assert.deepEqual(subscriptions.firstMedia({ publication: "cam", copy: "c1" }), []);
  assert.deepEqual(subscriptions.firstMedia({ publication: "cam", copy: "c9" }), []);
});

test("an older generation is stale", () => {
  const subscriptions = shown("b");
  subscriptions.update({ publications: [cam("c", 3)] });
  subscriptions.update({ publications: [cam("a", 2)] });
  assert.deepEqual(Object.keys(wanted(subscriptions)).sort(), ["b", "c"]);
});

test("a second move before the first has shown drops the copy in between", () => {
  const subscriptions = shown();
  subscriptions.update({ publications: [cam("b", 2)] });
  subscriptions.trackArrived({ publication: "cam", sfu: "b", copy: "c2" });
  assert.deepEqual(names(subscriptions.update({ publications: [cam("c", 3)] })), ["retire c2"]);
  assert.deepEqual(Object.keys(wanted(subscriptions)).sort(), ["a", "c"]);
});

test("moving back to the SFU it is shown from needs no new copy", () => {
  const subscriptions = shown();
  subscriptions.update({ publications: [cam("b", 2)] });
  subscriptions.update({ publications: [cam("a", 3)] });
  assert.deepEqual(wanted(subscriptions), { a: ["cam"] });
});

test("a track offered again on the same SFU is switched to like any other copy", () => {
  const subscriptions = shown();
  subscriptions.trackArrived({ publication: "cam", sfu: "a", copy: "c2" });
  assert.deepEqual(names(subscriptions.firstMedia({ publication: "cam", copy: "c2" })), ["show c2", "retire c1"]);
});

test("a lost link keeps the last picture and wants the publication again", () => {
  const subscriptions = shown();
  assert.deepEqual(subscriptions.linkLost({ sfu: "a" }), []);
  assert.deepEqual(wanted(subscriptions), { a: ["cam"] });
  assert.equal(subscriptions.list()[0].lost, true);
  subscriptions.update({ publications: [cam("b", 2)] });
  assert.deepEqual(wanted(subscriptions), { b: ["cam"] });
  subscriptions.trackArrived({ publication: "cam", sfu: "b", copy: "c2" });
  assert.deepEqual(names(subscriptions.firstMedia({ publication: "cam", copy: "c2" })), ["show c2", "retire c1"]);
});

test("an SFU that ends the old copy early leaves its last picture in place, and that is a cut", () => {
  const subscriptions = shown();
  subscriptions.update({ publications: [cam("b", 2)] });
  assert.deepEqual(subscriptions.copyEnded({ publication: "cam", sfu: "a" }), []);
  assert.deepEqual(wanted(subscriptions), { b: ["cam"] });
  subscriptions.trackArrived({ publication: "cam", sfu: "b", copy: "c2" });
  assert.equal(subscriptions.firstMedia({ publication: "cam", copy: "c2" })[0].cut, true);
});

test("a publication that ends takes all its copies with it", () => {
  const subscriptions = shown();
  subscriptions.update({ publications: [cam("b", 2)] });
  subscriptions.trackArrived({ publication: "cam", sfu: "b", copy: "c2" });
  assert.deepEqual(names(subscriptions.update({ ended: ["cam"] })), ["retire c1", "retire c2", "gone cam"]);
});

test("a player that leaves takes its publications with it", () => {
  assert.deepEqual(names(shown().update({ left: ["bob"] })), ["retire c1", "gone cam"]);
});

test("one's own publications are not subscribed, under old and new session ids", () => {
  const subscriptions = new Subscriptions();
  subscriptions.self.add("me");
  subscriptions.snapshot([cam("a", 1, "me")], { now: 0 });
  assert.deepEqual(wanted(subscriptions), {});
});

test("a snapshot that lacks a publication is doubted before it is believed", () => {
  const subscriptions = shown();
  subscriptions.snapshot([], { now: 100 });
  assert.deepEqual(wanted(subscriptions), { a: ["cam"] });
  assert.equal(subscriptions.nextDeadline(), 100 + DOUBT_MS);
  assert.deepEqual(subscriptions.tick({ now: 99 + DOUBT_MS }), []);
  assert.deepEqual(names(subscriptions.tick({ now: 100 + DOUBT_MS })), ["retire c1", "gone cam"]);
});

test("a publication that comes back in time was never gone", () => {
  const subscriptions = shown();
  subscriptions.snapshot([], { now: 100 });
  subscriptions.update({ publications: [cam("a")] });
  assert.deepEqual(subscriptions.tick({ now: 1e9 }), []);
});

test("a track that no subscriber wants is retired", () => {
  const subscriptions = shown();
  assert.deepEqual(names(subscriptions.trackArrived({ publication: "cam", sfu: "z", copy: "c7" })), ["retire c7"]);
  assert.deepEqual(names(subscriptions.trackArrived({ publication: "no", sfu: "a", copy: "c8" })), ["retire c8"]);
});

test("in a new session what is shown goes on until it comes over a link of the new one", () => {
  const subscriptions = new Subscriptions();
  const record = { publication: "p", player: "bob", kind: "video", source: "camera", sfu: "a", generation: 1 };
  subscriptions.snapshot([record], { now: 0 });
  subscriptions.trackArrived({ publication: "p", sfu: "a", copy: "old" });
  subscriptions.firstMedia({ publication: "p", copy: "old" });
  subscriptions.setAside(new Map([["a", "a former"]]));
  assert.deepEqual([...subscriptions.desired().keys()].sort(), ["a", "a former"]);
  subscriptions.snapshot([record], { now: 1 });
  assert.deepEqual([...subscriptions.desired().keys()].sort(), ["a", "a former"]);

  assert.deepEqual(subscriptions.trackArrived({ publication: "p", sfu: "a", copy: "new" }), []);
  assert.deepEqual(subscriptions.firstMedia({ publication: "p", copy: "new" }), [
    { do: "show", publication: "p", copy: "new", instead: "old", cut: false },
    { do: "retire", publication: "p", copy: "old" },
  ]);
  assert.deepEqual([...subscriptions.desired().keys()], ["a"]);
});
