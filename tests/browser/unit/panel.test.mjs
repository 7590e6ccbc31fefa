// What the page says about our own connection: web/ui/panel.js.

import assert from "node:assert/strict";
import { test } from "node:test";

import { decisionText } from "../../../web/ui/panel.js";

const move = { decision: null, phase: "backing-off", target: "", retryInMs: null };

test("the wait for the next try is told in seconds", () => {
  assert.match(decisionText({ ...move, retryInMs: 2771 }), /Next try in 2\.8 s\.$/);
  assert.match(decisionText({ ...move, retryInMs: 40 }), /Next try in 0\.0 s\.$/);
  assert.match(decisionText({ ...move, retryInMs: -5 }), /Next try in 0\.0 s\.$/);
});

test("without a further try none is announced", () => {
  assert.equal(decisionText(move), "Now the last try failed; trying again.");
});
