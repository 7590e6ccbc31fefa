// Gaps are counted in whole frames over all copies: web/lib/gaps.js.

import assert from "node:assert/strict";
import { test } from "node:test";

import { GapLedger, TWIN_WINDOW_MS } from "../../../web/lib/gaps.js";

const audio = (atMs, extra = {}) => ({ publication: "mic", kind: "audio", copy: "old", atMs, ...extra });
const video = (atMs, extra = {}) => ({ publication: "cam", kind: "video", copy: "old", atMs, key: false, ...extra });

test("the longest silence between two arrivals is the gap", () => {
  const ledger = new GapLedger();
  for (const at of [0, 20, 40, 95, 115]) ledger.arrive(audio(at));
  assert.equal(ledger.overall().mic.longestMs, 55);
});

test("the new copy fills the gap that the old one leaves", () => {
  const ledger = new GapLedger();
  for (const at of [0, 20, 40]) ledger.arrive(audio(at));
  for (const at of [70, 90]) ledger.arrive(audio(at, { copy: "new" }));
  assert.equal(ledger.overall().mic.longestMs, 30);
});

test("the same frame on a second SFU ends no gap", () => {
  const ledger = new GapLedger();
  ledger.arrive(audio(0, { hash: 1 }));
  ledger.arrive(audio(50, { hash: 1, copy: "new" }));
  ledger.arrive(audio(60, { hash: 2, copy: "new" }));
  const { longestMs, frames, duplicates } = ledger.overall().mic;
  assert.deepEqual([longestMs, frames, duplicates], [60, 2, 1]);
});

test("equal frames of one copy (silence) are not duplicates", () => {
  const ledger = new GapLedger();
  for (const at of [0, 20, 40, 60]) ledger.arrive(audio(at, { hash: 7 }));
  assert.deepEqual([ledger.overall().mic.frames, ledger.overall().mic.longestMs], [4, 20]);
});

test("a twin is recognised for a while only", () => {
  const ledger = new GapLedger();
  ledger.arrive(audio(0, { hash: 1 }));
  ledger.arrive(audio(TWIN_WINDOW_MS + 1, { hash: 2 }));
  ledger.arrive(audio(TWIN_WINDOW_MS + 2, { hash: 1, copy: "new" }));
  assert.equal(ledger.overall().mic.duplicates, 0);
});

test("a video copy counts from its first key frame", () => {
  const ledger = new GapLedger();
  ledger.arrive(video(0, { key: true }));
  ledger.arrive(video(30, { copy: "new" }));
  ledger.arrive(video(80, { copy: "new", key: true }));
  ledger.arrive(video(110, { copy: "new" }));
  assert.deepEqual([ledger.overall().cam.longestMs, ledger.overall().cam.frames], [80, 3]);
});

test("a window keeps its own longest gaps, the one open at its beginning in full", () => {
  const ledger = new GapLedger();
  for (const at of [0, 500]) ledger.arrive(audio(at));
  ledger.open("move");
  for (const at of [530, 550]) ledger.arrive(audio(at));
  assert.deepEqual(ledger.close("move", { nowMs: 551 }), { audioMs: 30, videoMs: null });
  assert.equal(ledger.has("move"), false);
});

test("a silence that still goes on counts", () => {
  const ledger = new GapLedger();
  ledger.arrive(audio(0));
  ledger.open("move");
  assert.equal(ledger.read("move", { nowMs: 900 }).audioMs, 900);
});

test("a window can be of one publication", () => {
  const ledger = new GapLedger();
  ledger.arrive(audio(0));
  ledger.arrive(video(0, { key: true }));
  ledger.open("switch", { publication: "cam" });
  ledger.arrive(audio(700));
  ledger.arrive(video(33));
  assert.deepEqual(ledger.read("switch", { nowMs: 33 }), { audioMs: null, videoMs: 33 });
});

test("the silence after a publication has ended is no gap", () => {
  const ledger = new GapLedger();
  ledger.arrive(audio(0));
  ledger.open("move");
  ledger.end("mic");
  assert.deepEqual(ledger.read("move", { nowMs: 5000 }), { audioMs: null, videoMs: null });
});

test("what is remembered for twins is bounded", () => {
  const ledger = new GapLedger();
  for (let i = 0; i < 100_000; i++) ledger.arrive(audio(i * 20, { hash: i }));
  assert.equal(ledger.overall().mic.frames, 100_000);
});

test("two copies overlap from the new one's first frame to the old one's last", () => {
  const ledger = new GapLedger();
  for (const at of [0, 20, 40, 60]) ledger.arrive(audio(at));
  ledger.arrive(audio(35, { copy: "new" }));
  assert.equal(ledger.overlap("mic", { from: "old", to: "new" }), 25);
  ledger.arrive(audio(200, { copy: "late" }));
  assert.equal(ledger.overlap("mic", { from: "old", to: "late" }), -140);
  assert.equal(ledger.overlap("mic", { from: "old", to: "never" }), null);
});
