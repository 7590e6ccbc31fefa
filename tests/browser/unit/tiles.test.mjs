// What a tile says of its player: web/ui/tiles.js.

import assert from "node:assert/strict";
import { test } from "node:test";

import { captionOf } from "../../../web/ui/tiles.js";

test("a tile names its player, and tells when it seems to be gone", () => {
  assert.equal(captionOf({ name: "Ann", identity: "ann", lost: false }, { isSelf: false }), "Ann");
  assert.equal(captionOf({ name: "", identity: "ann", lost: false }, { isSelf: true }), "ann (you)");
  assert.equal(captionOf({ name: "Ann", identity: "ann", lost: true }, { isSelf: false }), "Ann – connection lost");
});
