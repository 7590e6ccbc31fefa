// What the page says about our own connection: web/ui/panel.js.

import assert from "node:assert/strict";
import { test } from "node:test";

import { isolated } from "../../../web/ui/format.js";
import { cordonText, decisionText } from "../../../web/ui/panel.js";

const move = { decision: null, phase: "waiting", target: "", failures: 1, retryInMs: null };

test("the wait for the next try is told in seconds", () => {
  assert.match(decisionText({ ...move, retryInMs: 2771 }), /Next try in 2\.8 s\.$/);
  assert.match(decisionText({ ...move, retryInMs: 40 }), /Next try in 0\.0 s\.$/);
  assert.match(decisionText({ ...move, retryInMs: -5 }), /Next try in 0\.0 s\.$/);
});

test("without a further try none is announced", () => {
  assert.equal(decisionText(move), "Now the last try failed; trying again.");
});

test("a reason is told as a sentence, and an app's own as it is", () => {
  const stay = (reason) => decisionText({ ...move, failures: 0, decision: { move: false, by: "rule", reason } });
  assert.equal(stay("away-from-desk"), "The rule: stay – away from the desk.");
  assert.equal(stay("on stage"), "The rule: stay – on stage.");
  assert.equal(stay("constructor"), "The rule: stay – constructor.");
});

test("words of others within a sentence turn nothing around but themselves", () => {
  assert.equal(isolated("\u202eevil\u2069\u202a"), "\u2068evil\u2069");
  assert.equal(isolated("Ada Łukasz-1"), "Ada Łukasz-1");
  assert.equal(isolated("דנה"), "\u2068דנה\u2069");
  const said = decisionText({ ...move, failures: 0, phase: "opening", target: "\u202esfu", entered: true, decision: null });
  assert.equal(said, "Now publishing on both, waiting for media on \u2068sfu\u2069.");
});

test("an SFU that is held is not called retired", () => {
  assert.match(cordonText({ sfu: "a", asksInMs: null, endsInMs: null }), /takes no new players for now$/);
  assert.match(cordonText({ sfu: "a", asksInMs: 1000, endsInMs: null }), /is being retired$/);
  assert.match(cordonText({ sfu: "a", asksInMs: null, endsInMs: 1000 }), /is being retired$/);
});
