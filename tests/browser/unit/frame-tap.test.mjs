// When the worker that sees frames does not come to life: web/lib/frame-tap.js.

import assert from "node:assert/strict";
import { test } from "node:test";

const workers = [];
globalThis.Worker = class {
  said = [];
  ended = false;
  constructor() {
    workers.push(this);
  }
  postMessage(message) {
    this.said.push(message);
  }
  terminate() {
    this.ended = true;
  }
};
globalThis.RTCRtpScriptTransform = class {};
const { FrameTap } = await import("../../../web/lib/frame-tap.js");

class Receiver {
  transform = null;
  heardAt = null;
  getSynchronizationSources() {
    return this.heardAt === null ? [] : [{ timestamp: this.heardAt }];
  }
}

/** A tap that watches one audio copy, with its worker. */
function watching(t) {
  t.mock.timers.enable({ apis: ["setInterval"] });
  t.mock.method(console, "warn", () => {});
  const [tap, receiver, heard] = [new FrameTap(), new Receiver(), []];
  t.after(() => tap.close());
  tap.on("started", ({ copy }) => heard.push(copy));
  tap.watch(receiver, { copy: "a#1", kind: "audio", element: {} });
  return { tap, receiver, heard, worker: workers.at(-1) };
}

test("frames are taken back from a worker that could not be loaded, and playback is watched", (t) => {
  const { tap, receiver, heard, worker } = watching(t);
  assert.notEqual(receiver.transform, null);
  assert.equal(tap.isExact, true);
  worker.onerror({});
  assert.equal(receiver.transform, null, "frames reach the decoder again");
  assert.equal(tap.isExact, false);
  assert.equal(worker.ended, true);
  receiver.heardAt = 123;
  t.mock.timers.tick(40);
  assert.deepEqual(heard, ["a#1"]);
  const later = new Receiver();
  tap.watch(later, { copy: "a#2", kind: "audio", element: {} });
  assert.equal(later.transform, null, "nor are later ones handed to it");
});

test("an error of a worker that runs changes nothing: it goes on with the frames that it has", (t) => {
  const { tap, receiver, worker } = watching(t);
  worker.onmessage({ data: { frames: [] } });
  worker.onerror({ message: "an error in it" });
  assert.notEqual(receiver.transform, null);
  assert.equal(tap.isExact, true);
});

test("a copy that is unwatched after the worker was given up is not said to it", (t) => {
  const { tap, worker } = watching(t);
  worker.onerror({});
  const said = worker.said.length;
  tap.unwatch("a#1");
  assert.equal(worker.said.length, said);
});
