// The life of a publication's track: web/lib/player.js. No router is asked.

import assert from "node:assert/strict";
import { test } from "node:test";

import { Player } from "../../../web/lib/player.js";

class Track extends EventTarget {
  kind = "video";
}

const ends = (track) => track.dispatchEvent(new Event("ended"));

/** A player with one publication whose track was replaced, and whether it is still there. */
async function replaced() {
  const player = new Player({ routers: ["ws://router"], token: "t" });
  const [first, second] = [new Track(), new Track()];
  const publication = player.publish(first);
  await player.replaceTrack(publication, second);
  const isPublished = () => player.replaceTrack(publication, new Track()).then(() => true, () => false);
  return { first, second, isPublished };
}

test("the end of a track that was replaced ends nothing", async () => {
  const { first, isPublished } = await replaced();
  ends(first);
  assert.equal(await isPublished(), true);
});

test("the end of the track that replaced it ends the publication", async () => {
  const { second, isPublished } = await replaced();
  ends(second);
  assert.equal(await isPublished(), false);
});

test("a track cannot be replaced in a publication that there is not", async () => {
  const player = new Player({ routers: ["ws://router"], token: "t" });
  await assert.rejects(player.replaceTrack("x", new Track()), /no publication x/);
});

/** A player in a room whose home is the SFU a, over sockets of the test's own. */
async function inARoom(t) {
  const sockets = [];
  class Socket {
    readyState = 1;
    isClosed = false;
    constructor(url) {
      this.url = url;
      sockets.push(this);
    }
    send() {}
    close() {
      this.isClosed = true;
    }
    hear(message) {
      this.onmessage({ data: JSON.stringify(message) });
    }
  }
  const real = globalThis.WebSocket;
  globalThis.WebSocket = Socket;
  t.after(() => (globalThis.WebSocket = real));
  const player = new Player({ routers: ["ws://router"], token: "t", rng: () => 0 });
  t.after(() => player.close());
  const joined = player.join();
  while (!sockets.length) await new Promise((resolve) => setTimeout(resolve));
  const [router] = sockets;
  router.onopen();
  const assignment = { sfu: "a", address: "ws://a/media", token: "t" };
  router.hear({ type: "welcome", player: "me", resume_token: "r", room: "r", identity: "i", assignment });
  await joined;
  const sfu = sockets.find(({ url }) => url.startsWith("ws://a"));
  sfu.onopen();
  return { player, router, sfu };
}

test("a publication that it cannot decode is told, and does not spoil the SFU that it comes from", async (t) => {
  const { player, sfu } = await inARoom(t);
  const told = [];
  player.on("trouble", ({ code, publication }) => told.push([code, publication]));
  player.on("move-failed", ({ reason }) => told.push(["move-failed", reason]));
  const lacking = { type: "error", code: "codec-refused", request: "subscribe-answer", publication: "cam" };
  sfu.hear(lacking);
  assert.deepEqual(told, [["codec-refused", "cam"]]);
  sfu.hear({ type: "error", code: "not-allowed" });
  assert.deepEqual(told.slice(1), [["not-allowed", ""], ["move-failed", "not-allowed"]]);
});

for (const [reason, isClosed] of [
  ["lost", false],
  ["ended", true],
]) {
  test(`the link to an SFU that the router calls ${reason} is ${isClosed ? "closed" : "kept: its media may flow"}`, async (t) => {
    const { router, sfu } = await inARoom(t);
    sfu.hear({ type: "entered", sfu: "a" });
    router.hear({ type: "sfu-gone", sfu: "a", reason });
    assert.equal(sfu.isClosed, isClosed);
  });
}
