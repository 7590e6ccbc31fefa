// What the page says about our own connection: web/ui/panel.js.

import assert from "node:assert/strict";
import { test } from "node:test";

import { decisionText } from "../../../web/ui/panel.js";

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
});
