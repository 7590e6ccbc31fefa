// The media links of a page, and what becomes of them in a new session: web/lib/link-pool.js.

import assert from "node:assert/strict";
import { test } from "node:test";

import { Emitter } from "../../../web/lib/emitter.js";
import { LinkPool, sfuOf } from "../../../web/lib/link-pool.js";

/** A link that keeps what it was told to do. */
class FakeLink extends Emitter {
  said = [];

  constructor({ sfu }) {
    super();
    this.sfu = sfu;
    for (const name of ["enterAgain", "renew", "prepare", "publish", "stopPublishing", "leave", "close"]) {
      this[name] = (...args) => this.said.push([name, ...args]);
    }
    this.subscribe = (publications) => this.said.push(["subscribe", [...publications]]);
    this.replaceTrack = async (...args) => this.said.push(["replaceTrack", ...args]);
  }

  did(name) {
    return this.said.filter(([what]) => what === name).length;
  }
}

function pool() {
  const made = [];
  const makeLink = (options) => made[made.push(new FakeLink(options)) - 1];
  const requests = [];
  const it = new LinkPool({ requestAccess: (sfu) => requests.push(sfu) && `request-${sfu}`, rng: () => 0.5, makeLink });
  return { it, made, requests };
}

const home = (sfu, link = 1) => ({ link, sfu, address: `ws://${sfu}`, token: "t" });

test("events tell the SFU and the number that the mover gave the link", () => {
  const { it, made } = pool();
  it.openHome(home("a", 7), []);
  const seen = [];
  it.on("entered", (detail) => seen.push(detail));
  made[0].emit("entered", {});
  assert.deepEqual(seen, [{ sfu: "a", key: "a", link: 7 }]);
  it.close();
});

test("a released link stays while it is subscribed to, and then is left", () => {
  const { it, made } = pool();
  it.openHome(home("a"), []);
  it.release(1);
  it.reconcile(new Map([["a", new Set(["p"])]]), new Set());
  assert.deepEqual([made[0].did("stopPublishing"), made[0].did("leave")], [1, 0]);
  it.reconcile(new Map(), new Set());
  assert.equal(made[0].did("leave"), 1);
});

test("in a new session the old links carry on, and new ones are opened to the same SFUs", () => {
  const { it, made, requests } = pool();
  it.openHome(home("a"), []);
  const keys = it.newSession();
  const former = keys.get("a");
  assert.notEqual(former, "a");
  assert.equal(sfuOf(former), "a");

  it.openHome(home("a", 2), []);
  assert.equal(made.length, 2, "the former link is not entered again");
  // What the former link brings is wanted until it comes over the new one; nothing is asked for under its key.
  it.reconcile(new Map([[former, new Set(["p"])], ["a", new Set(["p"])]]), new Set([2]));
  assert.deepEqual([made[0].did("leave"), requests], [0, []]);
  assert.deepEqual(it.sfus(), ["a"]);
  it.reconcile(new Map([["a", new Set(["p"])]]), new Set([2]));
  assert.deepEqual([made[0].did("leave"), made[1].did("leave")], [1, 0]);
  it.close();
});

test("a former link that publishes stays until the mover lets it go", () => {
  const { it, made } = pool();
  it.openHome(home("a"), []);
  it.newSession();
  it.reconcile(new Map(), new Set([1]));
  assert.equal(made[0].did("leave"), 0);
  it.release(1);
  it.reconcile(new Map(), new Set());
  assert.deepEqual([made[0].did("stopPublishing"), made[0].did("leave")], [1, 1]);
});

test("an SFU that is gone takes its links of all sessions with it", () => {
  const { it } = pool();
  it.openHome(home("a"), []);
  it.newSession();
  it.openHome(home("a", 2), []);
  const lost = [];
  it.on("lost", ({ sfu, link }) => lost.push([sfu, link]));
  it.drop("a", "gone");
  assert.deepEqual(lost, [["a", 1], ["a", 2]]);
});

test("a link whose token has expired gets fresh access from the router", () => {
  const { it, made, requests } = pool();
  it.openHome(home("a"), []);
  made[0].needsAccess = true;
  made[0].emit("needs-access", {});
  it.reconcile(new Map(), new Set([1])); // wanted for publishing only
  assert.deepEqual(requests, ["a"]);
  it.granted({ sfu: "a", address: "ws://a", token: "t2", request: "request-a" });
  assert.equal(made.length, 1, "no second link");
  assert.deepEqual(made[0].said.filter(([name]) => name === "renew"), [["renew", { address: "ws://a", token: "t2" }]]);
  it.close();
});

test("a link that tries to enter again is left as it is when the router names its SFU", () => {
  const { it, made } = pool();
  it.openHome(home("a"), []);
  made[0].isAway = true;
  it.openHome(home("a", 2), []);
  it.release(2);
  assert.deepEqual([made.length, made[0].did("enterAgain"), made[0].did("stopPublishing")], [1, 0, 0]);
  it.close();
});
