// The autoscaler's head line on the fleet page: web/ui/fleet/scaling.js.

import assert from "node:assert/strict";
import { test } from "node:test";

import { headWords } from "../../../web/ui/fleet/scaling.js";

const leader = { controller: "control-1" };

test("every sort of node is counted, lost ones too", () => {
  const figures = { capacity: 3, warming: 1, draining_own: 1, draining_other: 2, unknown: 4, lost: 5, floor: 2, maximum: 9 };
  assert.equal(
    headWords({ leader, state: { figures } }),
    "control-1 leads · 3 capacity, 1 warming, 3 draining, 4 unknown, 5 lost · 2 to 9 nodes",
  );
});

test("sorts without a node are left out, and no capacity is said", () => {
  assert.equal(headWords({ leader, state: { figures: { maximum: 4 } } }), "control-1 leads · 0 capacity · 0 to 4 nodes");
});

test("what there is not yet is said", () => {
  assert.equal(headWords(undefined), "");
  assert.equal(headWords({ trouble: "no token" }), "no token");
  assert.equal(headWords({ leader }), "control-1 leads; no tick yet");
  assert.match(headWords({ leader: null }), /^There is no leader/);
});
