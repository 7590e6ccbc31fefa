// Who is shown as lost: web/ui/tiles.js.

import assert from "node:assert/strict";
import { test } from "node:test";

import { isLost } from "../../../web/ui/tiles.js";

const ada = { player: "ada", lost: true };
const publication = (facts) => ({ player: "ada", isArriving: false, ...facts });

test("a person is lost when the router has lost touch and nothing of theirs arrives", () => {
  assert.equal(isLost(ada, [publication({})]), true);
  assert.equal(isLost(ada, []), true);
});

test("a broken websocket alone says nothing of media", () => {
  assert.equal(isLost(ada, [publication({}), publication({ isArriving: true })]), false);
  assert.equal(isLost(ada, [publication({ player: "bob", isArriving: true })]), true);
});

test("silence alone says nothing of the person", () => {
  assert.equal(isLost({ ...ada, lost: false }, [publication({})]), false);
});
