// Microphones and cameras that vanish: web/lib/devices.js and what web/lib/player.js makes of it.

import assert from "node:assert/strict";
import { test } from "node:test";

import { Devices, RENEW_TIMEOUT_MS } from "../../../web/lib/devices.js";
import { Player } from "../../../web/lib/player.js";

class Track extends EventTarget {
  readyState = "live";
  stopped = false;
  constructor(label = "Headset", kind = "audio") {
    super();
    Object.assign(this, { label, kind });
  }
  stop() {
    this.stopped = true;
    this.readyState = "ended";
  }
  vanish() {
    this.readyState = "ended";
    this.dispatchEvent(new Event("ended"));
  }
}

const soon = () => new Promise((resolve) => setTimeout(resolve));

/** A player that publishes one track, and what it tells of devices. */
function talking(t, renew) {
  const hardware = new EventTarget();
  const real = Object.getOwnPropertyDescriptor(globalThis, "navigator");
  Object.defineProperty(globalThis, "navigator", { value: { mediaDevices: hardware }, configurable: true });
  t.after(() => (real ? Object.defineProperty(globalThis, "navigator", real) : delete globalThis.navigator));
  const player = new Player({ routers: ["ws://router"], token: "t" });
  t.after(() => player.close());
  const told = [];
  for (const name of ["lost", "replaced", "missing", "back", "muted"]) {
    player.on(`device-${name}`, ({ label = "", muted }) => told.push([name, label, ...(muted === undefined ? [] : [muted])]));
  }
  const track = new Track();
  const publication = player.publish(track, { renew });
  const isPublished = (id = publication) => player.replaceTrack(id, new Track()).then(() => true, () => false);
  return { player, track, publication, told, hardware, isPublished };
}

test("a headset that vanishes is replaced by the default device, in the same publication", async (t) => {
  const other = new Track("Built-in microphone");
  const { track, told, isPublished } = talking(t, async () => other);
  track.vanish();
  await soon();
  assert.deepEqual(told, [["lost", "Headset"], ["replaced", "Built-in microphone"]]);
  assert.equal(other.stopped, false);
  assert.equal(await isPublished(), true);
});

test("the one that took its place may vanish, too", async (t) => {
  const others = [new Track("second"), new Track("third")];
  const { track, told } = talking(t, async () => others.shift());
  const [second] = others;
  track.vanish();
  await soon();
  second.vanish();
  await soon();
  assert.deepEqual(told.map(([name, label]) => `${name} ${label}`), ["lost Headset", "replaced second", "lost second", "replaced third"]);
});

for (const [what, renew] of [
  ["fails", async () => Promise.reject(new Error("NotFoundError"))],
  ["throws", () => { throw new Error("no"); }],
  ["gives nothing", async () => null],
  ["gives a dead one", async () => { const dead = new Track(); dead.stop(); return dead; }],
  ["gives one of another kind", async () => new Track("Camera", "video")],
]) {
  test(`without another device (opening one ${what}) nothing dead is pretended to be live`, async (t) => {
    const { track, told, isPublished } = talking(t, renew);
    track.vanish();
    await soon();
    assert.deepEqual(told, [["lost", "Headset"], ["missing", ""]]);
    assert.equal(await isPublished(), false);
  });
}

test("when a device is plugged in again, it is published again, once", async (t) => {
  let present = null;
  const { track, told, hardware, player } = talking(t, async () => present);
  const ids = [];
  player.on("device-back", ({ publication, was }) => ids.push([publication, was]));
  track.vanish();
  await soon();
  hardware.dispatchEvent(new Event("devicechange"));
  await soon();
  assert.equal(told.length, 2, "none was there yet");
  present = new Track("Headset again");
  hardware.dispatchEvent(new Event("devicechange"));
  hardware.dispatchEvent(new Event("devicechange"));
  await soon();
  assert.deepEqual(told.slice(2), [["back", "Headset again"]]);
  const [[publication, was]] = ids;
  assert.notEqual(publication, was);
  await player.replaceTrack(publication, new Track());
});

// Firefox: https://github.com/Hubs-Foundation/hubs/pull/3543
test("a browser that does not say so of the track says it by the list of devices", async (t) => {
  const other = new Track("Built-in microphone");
  const { track, told, hardware } = talking(t, async () => other);
  track.getSettings = () => ({ deviceId: "headset" });
  other.getSettings = () => ({ deviceId: "built-in" });
  const list = [{ deviceId: "headset" }, { deviceId: "built-in" }];
  hardware.enumerateDevices = async () => list;
  hardware.dispatchEvent(new Event("devicechange"));
  await soon();
  assert.deepEqual(told, [], "another device came or went");
  list.shift();
  hardware.dispatchEvent(new Event("devicechange"));
  track.vanish();
  await soon();
  assert.deepEqual(told, [["lost", "Headset"], ["replaced", "Built-in microphone"]], "once, by whichever it is told first");
});

test("what the app ended meanwhile stays ended, and the late device is closed", async (t) => {
  let give;
  const late = new Track("late");
  const { player, track, publication, told } = talking(t, () => new Promise((resolve) => (give = resolve)));
  track.vanish();
  await soon();
  player.unpublish(publication);
  give(late);
  await soon();
  assert.deepEqual(told, [["lost", "Headset"]]);
  assert.equal(late.stopped, true);
});

test("a question that no one answers does not keep a silent publication for ever", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const devices = new Devices(undefined);
  const told = [];
  devices.on("end", ({ publication }) => told.push(publication));
  const track = new Track();
  let give;
  devices.watch({ publication: "p", kind: "audio", source: "mic", track, renew: () => new Promise((resolve) => (give = resolve)) });
  track.vanish();
  await Promise.resolve();
  t.mock.timers.tick(RENEW_TIMEOUT_MS);
  for (let turn = 0; turn < 10; turn++) await Promise.resolve();
  assert.deepEqual(told, ["p"]);
  const late = new Track();
  give(late);
  for (let turn = 0; turn < 10; turn++) await Promise.resolve();
  assert.equal(late.stopped, true);
});

test("a device that the system silences is told, and that it speaks again", async (t) => {
  const { track, told, isPublished } = talking(t);
  track.dispatchEvent(new Event("mute"));
  track.dispatchEvent(new Event("unmute"));
  assert.deepEqual(told, [["muted", "Headset", true], ["muted", "Headset", false]]);
  assert.equal(await isPublished(), true);
});

test("after the end of the session no device is opened any more", async (t) => {
  let opened = 0;
  const { player, track, hardware } = talking(t, async () => (opened++, null));
  track.vanish();
  await soon();
  player.close();
  hardware.dispatchEvent(new Event("devicechange"));
  await soon();
  assert.equal(opened, 1);
});
