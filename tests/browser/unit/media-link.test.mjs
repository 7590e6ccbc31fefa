// The websocket of one SFU: web/lib/media-link.js, with a websocket that the test plays and no media.

import assert from "node:assert/strict";
import { mock, test } from "node:test";

import { CHECK_MS } from "../../../web/lib/protocol.js";
import { AWAY_MS, MediaLink, PING_MS, REENTER_TIMEOUT_MS, SILENCE_MS } from "../../../web/lib/media-link.js";

function play(t) {
  mock.timers.enable({ apis: ["setTimeout"] });
  t.after(() => mock.timers.reset());
  const sockets = [];
  class Socket {
    constructor(url) {
      Object.assign(this, { url, readyState: 0, sent: [] });
      sockets.push(this);
    }
    send(frame) {
      this.sent.push(JSON.parse(frame));
    }
    close() {
      this.readyState = 3;
    }
    open() {
      this.readyState = 1;
      this.onopen();
      return this;
    }
    hear(message) {
      this.onmessage({ data: JSON.stringify(message) });
      return this;
    }
    die(code = 1006) {
      this.readyState = 3;
      this.onclose({ code, reason: "" });
    }
  }
  const link = new MediaLink({ sfu: "sfu-a", address: "ws://a/media", token: "t1", rng: () => 0.5, WebSocketClass: Socket });
  const heard = [];
  for (const name of ["entered", "lost", "refused", "unsubscribed", "away", "needs-access"]) {
    link.on(name, (detail) => heard.push([name, detail.reason ?? detail.code ?? null]));
  }
  return { link, sockets, heard, get last() { return sockets.at(-1); } };
}

const entered = (table) => table.last.open().hear({ type: "entered", sfu: "sfu-a" });
const types = (socket) => socket.sent.map(({ type }) => type);

test("what is asked for early goes out right behind enter", (t) => {
  const table = play(t);
  table.link.subscribe(new Set(["b", "a"]));
  table.last.open();
  assert.deepEqual(types(table.last), ["enter", "subscribe"]);
  assert.deepEqual(table.last.sent[1].publications, ["a", "b"]);
});

test("the same set is not subscribed to twice", (t) => {
  const table = play(t);
  entered(table);
  for (let i = 0; i < 3; i++) table.link.subscribe(["a"]);
  assert.deepEqual(types(table.last), ["enter", "subscribe"]);
});

test("a websocket that breaks is opened once more, with the same token and the same wishes", (t) => {
  const table = play(t);
  entered(table);
  table.link.subscribe(["a"]);
  table.last.die();
  table.last.open();
  assert.equal(table.sockets.length, 2);
  assert.deepEqual(table.last.sent, [{ type: "enter", token: "t1" }, { type: "subscribe", publications: ["a"] }]);
  table.last.hear({ type: "entered", sfu: "sfu-a" });
  assert.deepEqual(table.heard.map(([name]) => name), ["entered", "entered"]);
});

test("one that breaks again before the SFU has let us in is lost", (t) => {
  const table = play(t);
  entered(table);
  table.last.die();
  table.last.die();
  assert.equal(table.sockets.length, 2);
  assert.deepEqual(table.heard.at(-1), ["lost", "closed"]);
});

test("one that never opened is lost at once", (t) => {
  const table = play(t);
  table.last.die();
  assert.deepEqual(table.heard, [["lost", "closed"]]);
});

for (const [code, reason] of [[4012, "terminating"], [4001, "replaced"], [4003, "closed"]]) {
  test(`a close with ${code} is final`, (t) => {
    const table = play(t);
    entered(table);
    table.last.die(code);
    assert.deepEqual(table.heard.at(-1), ["lost", reason]);
    assert.equal(table.sockets.length, 1);
  });
}

test("a refusal at the door is the reason of the loss", (t) => {
  const table = play(t);
  table.last.open().hear({ type: "error", code: "sfu-cordoned" });
  table.last.die(4011);
  assert.deepEqual(table.heard, [["refused", "sfu-cordoned"], ["lost", "sfu-cordoned"]]);
});

test("a publication that cannot be decoded is named", (t) => {
  const table = play(t);
  const refused = [];
  table.link.on("refused", ({ code, publication }) => refused.push([code, publication]));
  entered(table);
  table.last.hear({ type: "error", code: "codec-refused", request: "subscribe-answer", publication: "cam" });
  table.last.hear({ type: "error", code: "too-many", request: "subscribe" });
  assert.deepEqual(refused, [["codec-refused", "cam"], ["too-many", ""]]);
});

test("a refusal later on does not end the link", (t) => {
  const table = play(t);
  entered(table);
  table.last.hear({ type: "error", code: "too-many", request: "subscribe" });
  table.last.die();
  assert.equal(table.sockets.length, 2);
});

test("an SFU that says it closes is not tried again", (t) => {
  const table = play(t);
  entered(table);
  table.last.hear({ type: "closing", reason: "terminating" });
  table.last.die(1006);
  assert.deepEqual(table.heard.at(-1), ["lost", "terminating"]);
});

test("a broken subscribe connection is asked for again, and the link lives", (t) => {
  const table = play(t);
  entered(table);
  table.link.subscribe(["a"]);
  table.last.hear({ type: "error", code: "consent-lost", request: "subscribe" });
  assert.deepEqual(types(table.last), ["enter", "subscribe", "subscribe"]);
  assert.deepEqual(table.heard.at(-1), ["unsubscribed", null]);
});

/** As much of a peer connection as a link needs; `connections` are the ones made, newest last. */
function fakeConnections(t) {
  const connections = [];
  class Connection {
    localDescription = { sdp: "v=0" };
    remoteDescription = null;
    signalingState = "stable";
    connectionState = "new";
    constructor() {
      connections.push(this);
    }
    addTransceiver(track) {
      return { mid: "0", sender: { track }, stop() {} };
    }
    restarts = 0;
    restartIce() {
      this.restarts++;
    }
    getTransceivers() {
      return [];
    }
    async createAnswer() {
      return { type: "answer", sdp: "v=0" };
    }
    async setLocalDescription() {}
    async setRemoteDescription(description) {
      this.remoteDescription = description;
    }
    close() {
      this.signalingState = "closed";
    }
    become(state) {
      this.connectionState = state;
      this.onconnectionstatechange();
    }
  }
  globalThis.RTCPeerConnection = Connection;
  globalThis.RTCRtpReceiver = {};
  t.after(() => {
    delete globalThis.RTCPeerConnection;
    delete globalThis.RTCRtpReceiver;
  });
  return connections;
}

const settle = () => new Promise((resolve) => setImmediate(resolve));

async function publishing(t) {
  const connections = fakeConnections(t);
  const table = Object.assign(play(t), { connections });
  table.last.open().hear({ type: "entered", sfu: "sfu-a" });
  table.link.on("publish-lost", ({ reason }) => table.heard.push(["publish-lost", reason]));
  table.link.publish([{ publication: "cam", kind: "video", track: {} }], 3);
  await settle();
  return table;
}

test("a publish offer names its publications and their generation", async (t) => {
  const { last } = await publishing(t);
  const { type, tracks, negotiation } = last.sent.at(-1);
  assert.equal(type, "publish-offer");
  assert.deepEqual(tracks, [{ mid: "0", publication: "cam", kind: "video", generation: 3 }]);
  assert.equal(negotiation, 1);
});

/** Time passes in small steps, so that timers set meanwhile are due as well. */
function pass(ms) {
  for (let passed = 0; passed <= ms; passed += 50) mock.timers.tick(50);
}

async function answered(t) {
  const table = await publishing(t);
  table.last.hear({ type: "publish-answer", sdp: "v=0", negotiation: 1 });
  await settle();
  table.connections[0].become("connected");
  return table;
}

test("a connection that falls silent restarts ICE, and goes on when that finds a way", async (t) => {
  const table = await answered(t);
  table.connections[0].become("disconnected");
  await settle();
  assert.equal(table.connections[0].restarts, 1);
  const offer = table.last.sent.findLast(({ type }) => type === "publish-offer");
  assert.equal(offer.negotiation, 2);
  assert.equal(offer.tracks[0].generation, 3);
  table.last.hear({ type: "pong", n: 0 });
  table.connections[0].become("connected");
  mock.timers.tick(SILENCE_MS);
  assert.deepEqual(table.heard.map(([name]) => name), ["entered"]);
});

test("a websocket that does not answer when media falls silent is opened again, and tells the SFU of the restart", async (t) => {
  const table = await answered(t);
  table.connections[0].become("disconnected");
  await settle();
  mock.timers.tick(CHECK_MS);
  mock.timers.tick(1000);
  entered(table);
  assert.equal(table.sockets.length, 2);
  assert.deepEqual(types(table.last), ["enter", "subscribe", "publish-offer"]);
  assert.equal(table.last.sent.at(-1).negotiation, 2);
});

test("... and is given up when it does not, though ICE was restarted again", async (t) => {
  const table = await answered(t);
  table.connections[0].become("disconnected");
  table.last.hear({ type: "pong", n: 0 });
  pass(SILENCE_MS);
  assert.equal(table.connections[0].restarts, 3);
  assert.deepEqual(table.heard.at(-1), ["publish-lost", "ice-silent"]);
});

test("what is published goes on while it gets through, though nothing comes back on the other connection", async (t) => {
  const table = await answered(t);
  table.last.hear({ type: "subscribe-offer", sdp: "v=0", negotiation: 1, tracks: [] });
  await settle();
  table.connections[1].become("failed");
  assert.equal(types(table.last).at(-1), "restart-ice");
  assert.deepEqual(table.heard.map(([name]) => name), ["entered"], "nothing is lost");
  table.connections[0].become("disconnected");
  table.connections[1].become("failed");
  assert.deepEqual(table.heard.at(-1), ["lost", "ice-timeout"]);
});

test("while the websocket is away the SFU can't hear of the restart, and its time does not run", async (t) => {
  const table = await answered(t);
  table.connections[0].become("disconnected");
  table.last.die();
  pass(SILENCE_MS);
  entered(table);
  await settle();
  assert.deepEqual(types(table.last), ["enter", "subscribe", "publish-offer"]);
  assert.equal(table.last.sent.at(-1).negotiation, 2);
  pass(SILENCE_MS);
  assert.deepEqual(table.heard.at(-1), ["publish-lost", "ice-silent"]);
});

test("on another network the websocket is opened again, and ICE restarted, without waiting", async (t) => {
  const table = await answered(t);
  table.link.networkChanged();
  await settle();
  mock.timers.tick(1000);
  entered(table);
  assert.equal(table.sockets.length, 2);
  assert.equal(table.connections[0].restarts, 1);
  assert.deepEqual(types(table.last), ["enter", "subscribe", "publish-offer"]);
  assert.deepEqual(table.heard.map(([name]) => name), ["entered", "entered"]);
});

test("an offer that was not answered is said again on a new websocket", async (t) => {
  const { sockets } = await publishing(t);
  sockets[0].die();
  sockets[1].open();
  assert.deepEqual(types(sockets[1]), ["enter", "subscribe", "publish-offer"]);
});

test("a publish connection that fails ends the publishing and nothing else", async (t) => {
  const table = await publishing(t);
  table.last.hear({ type: "publish-answer", sdp: "v=0", negotiation: 1 });
  await settle();
  table.connections[0].become("failed");
  assert.deepEqual(table.last.sent.at(-1), { type: "stop-publishing", publications: ["cam"] });
  assert.deepEqual(table.heard.at(-1), ["publish-lost", "ice-timeout"]);
  assert.equal(table.last.readyState, 1);
});

test("the SFU's word that a publish connection is gone counts once it has answered ours", async (t) => {
  const table = await publishing(t);
  const gone = { type: "error", code: "closed-by-peer", request: "publish-offer" };
  table.last.hear(gone); // about the one before
  assert.equal(table.heard.some(([name]) => name === "publish-lost"), false);
  table.last.hear({ type: "publish-answer", sdp: "v=0", negotiation: 1 });
  await settle();
  table.last.hear(gone);
  assert.deepEqual(table.heard.at(-1), ["publish-lost", "closed-by-peer"]);
  assert.deepEqual(table.heard.map(([name]) => name), ["entered", "publish-lost"]);
});

/** A link whose publish connection is answered and connected. */
async function flowing(t) {
  const table = await publishing(t);
  table.last.hear({ type: "publish-answer", sdp: "v=0", negotiation: 1 });
  await settle();
  table.connections[0].become("connected");
  table.isClosed = () => table.connections.some(({ signalingState }) => signalingState === "closed");
  return table;
}

test("while its media lives a link enters again with back-off, and closes no connection", async (t) => {
  const table = await flowing(t);
  table.last.die();
  for (const wait of [500, 1000, 2000, 3500]) {
    const before = table.sockets.length;
    mock.timers.tick(wait - 1);
    assert.equal(table.sockets.length, before);
    mock.timers.tick(1);
    assert.equal(table.sockets.length, before + 1);
    if (wait < 3500) table.last.die();
  }
  table.last.open().hear({ type: "entered", sfu: "sfu-a" });
  mock.timers.tick(AWAY_MS); // said of no websocket that is back
  assert.equal(table.isClosed(), false);
  assert.deepEqual(table.heard.map(([name]) => name), ["entered", "entered"]);
});

test("an attempt to enter again that is not answered is followed by another", async (t) => {
  const table = await flowing(t);
  table.last.die();
  mock.timers.tick(500);
  table.last.open();
  mock.timers.tick(REENTER_TIMEOUT_MS);
  mock.timers.tick(1000);
  assert.equal(table.sockets.length, 3);
  assert.equal(table.isClosed(), false);
});

test("a websocket that is away for long is told, while the media goes on", async (t) => {
  const table = await flowing(t);
  table.last.die();
  for (let waited = 0; waited < AWAY_MS; waited += 500) {
    mock.timers.tick(500);
    if (table.last.readyState === 0) table.last.die();
  }
  assert.deepEqual(table.heard.slice(1), [["away", "closed"]]);
  assert.equal(table.isClosed(), false);
});

test("when its media has ended, too, the link is lost", async (t) => {
  const table = await flowing(t);
  table.last.die();
  table.connections[0].become("failed");
  mock.timers.tick(500);
  table.last.die();
  assert.deepEqual(table.heard.at(-1), ["lost", "closed"]);
});

test("what is asked for while the websocket is away is said when it is back", async (t) => {
  const table = await flowing(t);
  table.last.die();
  table.link.subscribe(["b"]);
  table.link.stopPublishing();
  table.link.publish([{ publication: "cam", kind: "video", track: {} }], 4);
  await settle();
  mock.timers.tick(500); // without a connection that lives it is tried once more
  table.last.open();
  assert.deepEqual(types(table.last), ["enter", "subscribe", "stop-publishing", "publish-offer"]);
  assert.deepEqual(table.last.sent[1].publications, ["b"]);
});

test("the credential that the SFU gave goes with the next enter", async (t) => {
  const table = await flowing(t);
  table.last.hear({ type: "entered", sfu: "sfu-a", reentry: "back" });
  table.last.die();
  mock.timers.tick(500);
  table.last.open();
  assert.deepEqual(table.last.sent[0], { type: "enter", token: "t1", reentry: "back" });
});

test("a token that has expired is replaced by fresh access, and the media goes on", async (t) => {
  const table = await flowing(t);
  table.last.die();
  mock.timers.tick(500);
  table.last.open().die(4003);
  assert.deepEqual(table.heard.at(-1), ["needs-access", null]);
  table.link.renew({ address: "ws://a/media", token: "t2" });
  table.last.open();
  assert.deepEqual(table.last.sent[0], { type: "enter", token: "t2" });
  assert.equal(table.isClosed(), false);
});

test("publishing again after a stop makes a new connection", async (t) => {
  const table = await publishing(t);
  table.link.stopPublishing();
  table.link.publish([{ publication: "cam", kind: "video", track: {} }], 4);
  await settle();
  assert.equal(table.connections.length, 2);
  assert.equal(table.last.sent.at(-1).tracks[0].generation, 4);
});

test("a second enter on the same websocket replaces the grants, also for the next websocket", (t) => {
  const table = play(t);
  entered(table);
  table.link.enterAgain("t2");
  assert.equal(table.last.sent.at(-1).token, "t2");
  table.last.die();
  table.last.open();
  assert.equal(table.last.sent[0].token, "t2");
});

test("a websocket that answers no ping is opened again", (t) => {
  const table = play(t);
  entered(table);
  mock.timers.tick(PING_MS);
  mock.timers.tick(PING_MS);
  assert.equal(table.sockets.length, 1);
  mock.timers.tick(PING_MS);
  assert.equal(table.sockets.length, 2);
});

test("leaving is said, and nothing is told afterwards", (t) => {
  const table = play(t);
  entered(table);
  table.link.leave();
  assert.equal(table.last.sent.at(-1).type, "leave-sfu");
  table.last.die();
  assert.deepEqual(table.heard.map(([name]) => name), ["entered"]);
});
