// Reading and writing messages: web/lib/protocol.js.

import assert from "node:assert/strict";
import { test } from "node:test";

import { randomId, read, write } from "../../../web/lib/protocol.js";

test("fields left out on the wire come back with their defaults", () => {
  const frame = '{"type":"welcome","player":"p","resume_token":"t","room":"r","identity":"i","snapshot":{"players":[{"player":"q","identity":"j"}]}}';
  const { assignment, resumed, ping_every_s, snapshot } = read(frame);
  assert.deepEqual([assignment, resumed, ping_every_s], [null, false, 10]);
  assert.deepEqual(snapshot.players[0].presence, { at_desk: true, in_ambient_meeting: false, in_conversation: false });
  assert.equal(read('{"type":"publication-flowing","publication":"x"}').generation, 1);
});

test("a message of a newer version is skipped, and unknown fields are kept out of the way", () => {
  assert.equal(read('{"type":"brand-new"}'), null);
  assert.equal(read('{"type":"constructor"}'), null);
  assert.equal(read('{"type":"sfu-gone","sfu":"a","new_field":1}').sfu, "a");
});

test("what is no message is an error", () => {
  for (const frame of ["", "[]", "null", "{}", '{"type":3}', "{"]) assert.throws(() => read(frame), SyntaxError);
});

test("a frame carries its type", () => {
  assert.equal(write("ping", { n: 3 }), '{"type":"ping","n":3}');
});

test("an id fits a publication id", () => {
  assert.match(randomId(), /^[a-f0-9]{24}$/);
});
