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
