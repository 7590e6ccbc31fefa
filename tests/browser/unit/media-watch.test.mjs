// Does media get through: web/lib/media-watch.js. The table that the Python twin passes too is tests/movers/media-watch.json.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { MAX_TRIED, MediaWatch, needsOf, placesOf } from "../../../web/lib/media-watch.js";
import { connectionText } from "../../../web/ui/panel.js";
import { noMediaText } from "../../../web/ui/words.js";

const stories = JSON.parse(readFileSync(new URL("../../movers/media-watch.json", import.meta.url), "utf8"));
for (const { name, looks } of stories) {
  test(name, () => {
    const watch = new MediaWatch();
    for (const { at, unmet = [], unsure = [], missing, told = false } of looks) {
      assert.equal(watch.look({ unmet: new Set(unmet), unsure: new Set(unsure) }, { now: at * 1000 }), told, `at ${at} s`);
      assert.deepEqual(watch.missing, missing, `at ${at} s`);
    }
  });
}

const link = (facts) => ({ sfu: "a", isInside: true, publishes: null, subscribes: null, ...facts });
const shown = (facts) => ({ shownFrom: null, lost: false, switchingTo: null, ...facts });

test("what is sent needs one publish connection, what is watched a connection to where it comes from", () => {
  const unmet = (facts) => [...needsOf({ sends: false, shown: [], links: [], ...facts }).unmet];
  assert.deepEqual(unmet({ sends: true }), ["send"]);
  assert.deepEqual(unmet({ sends: true, links: [link({ publishes: "connecting" })] }), ["send"]);
  assert.deepEqual(unmet({ sends: true, links: [link({ publishes: "failed" }), link({ sfu: "b", publishes: "connected" })] }), []);
  assert.deepEqual(unmet({ shown: [shown({ switchingTo: "a" })], links: [link({ subscribes: "connecting" })] }), ["receive a"]);
  assert.deepEqual(unmet({ shown: [shown({ shownFrom: "a" })], links: [link({ subscribes: "connected" })] }), []);
});

// https://github.com/livekit/livekit/issues/2046
test("one connection says nothing of the other: what is sent may arrive while nothing comes back", () => {
  const links = [link({ publishes: "connected", subscribes: "connecting" })];
  const { unmet } = needsOf({ sends: true, shown: [shown({ switchingTo: "a" })], links });
  assert.deepEqual([...unmet], ["receive a"]);
});

test("in a move the old copy is enough, and a lost one is not", () => {
  const links = [link({ subscribes: "connected" }), link({ sfu: "b", subscribes: "connecting" })];
  const unmet = (facts) => [...needsOf({ sends: false, shown: [shown(facts)], links }).unmet];
  assert.deepEqual(unmet({ shownFrom: "a", switchingTo: "b" }), []);
  assert.deepEqual(unmet({ shownFrom: "a", lost: true, switchingTo: "b" }), ["receive b"]);
});

test("an SFU that let us in and offers nothing may have nothing: its publisher may be the one without media", () => {
  const { unmet, unsure } = needsOf({ sends: false, shown: [shown({ switchingTo: "a" })], links: [link({})] });
  assert.deepEqual([[...unmet], [...unsure]], [[], ["receive a"]]);
});

test("what was tried is told with its place and reason, bounded, and forgotten when all is well", () => {
  const watch = new MediaWatch();
  watch.look({ unmet: new Set(["send"]), unsure: new Set() }, { now: 0 });
  for (let n = 0; n < 2 * MAX_TRIED; n++) watch.tried({ sfu: `s${n}`, where: `UDP 192.0.2.1:${n}` });
  watch.tried({ sfu: "s15", reason: "ice-timeout" });
  const { tried, forMs } = watch.state(5000);
  assert.equal(tried.length, MAX_TRIED);
  assert.deepEqual(tried.at(-1), { sfu: "s15", where: "UDP 192.0.2.1:15", reason: "ice-timeout" });
  assert.equal(forMs, 5000);
  watch.look({ unmet: new Set(), unsure: new Set() }, { now: 6000 });
  assert.deepEqual(watch.state(6000), { isConnecting: false, missing: [], forMs: 0, tried: [] });
});

test("where media goes is read from the SFU's description", () => {
  const sdp = "v=0\r\na=candidate:1 1 udp 2130706431 192.0.2.7 5000 typ host\r\na=candidate:2 1 udp 1 2001:db8::7 5000 typ host\r\n";
  assert.equal(placesOf(sdp), "UDP 192.0.2.7:5000, UDP [2001:db8::7]:5000");
  assert.equal(placesOf(undefined), "");
});

test("the page calls no one connected whose media does not get through", () => {
  const text = (status, media, room = "r") => connectionText({ connection: { status }, media: { missing: [], isConnecting: false, ...media }, room })[0];
  assert.equal(text("open", {}), "Connected");
  assert.equal(text("open", { isConnecting: true }), "Connecting media…");
  assert.equal(text("open", { isConnecting: true, missing: ["send"] }), "No media");
  assert.equal(text("waiting", {}), "Resuming… media goes on");
  assert.equal(text("waiting", { isConnecting: true }), "Reconnecting…");
  assert.equal(text("over", { missing: ["send"] }), "Session ended");
});

test("and says in words what does not work and what was tried", () => {
  const tried = [{ sfu: "sfu-1", where: "UDP 192.0.2.7:5000", reason: "ice-timeout" }, { sfu: "sfu-2", where: "", reason: "" }];
  const said = noMediaText({ missing: ["send", "receive"], tried });
  assert.match(said, /^Sound and picture do not get through/);
  assert.match(said, /sfu-1 at UDP 192\.0\.2\.7:5000 \(nothing answers there\); sfu-2\./);
  assert.match(noMediaText({ missing: ["send"], tried: [] }), /^The others can’t hear or see you/);
  assert.equal(noMediaText({ missing: [], tried }), "");
});
