// Full jitter: web/lib/jitter.js.

import assert from "node:assert/strict";
import { test } from "node:test";

import { Backoff, CAP_MS, FIRST_MS, fullJitter, shuffled } from "../../../web/lib/jitter.js";

test("the bound doubles from one second to seven", () => {
  const bounds = [0, 1, 2, 3, 50].map((attempt) => fullJitter(attempt, { rng: () => 1 }));
  assert.deepEqual(bounds, [FIRST_MS, 2 * FIRST_MS, 4 * FIRST_MS, CAP_MS, CAP_MS]);
});

test("the wait is drawn from zero", () => {
  assert.equal(fullJitter(5, { rng: () => 0 }), 0);
});

test("success starts from the bottom again", () => {
  const backoff = new Backoff({ rng: () => 1 });
  backoff.next();
  assert.equal(backoff.next(), 2000);
  backoff.reset();
  assert.equal(backoff.next(), 1000);
});

test("a shuffle keeps every item and the caller's order", () => {
  const items = [1, 2, 3, 4];
  assert.deepEqual(shuffled(items, () => 0.3).sort(), items);
  assert.deepEqual(items, [1, 2, 3, 4]);
});
