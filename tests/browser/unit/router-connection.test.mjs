// Staying with some router: web/lib/router-connection.js, over a websocket that the test plays.

import assert from "node:assert/strict";
import { mock, test } from "node:test";

import { RouterConnection, WELCOME_TIMEOUT_MS } from "../../../web/lib/router-connection.js";

const WELCOME = { type: "welcome", player: "p1", resume_token: "resume-me", room: "r", identity: "i", ping_every_s: 10 };

/** A connection on a clock of its own; `sockets` are what it has opened, newest last. */
function play(t, { routers = ["ws://one/player", "ws://two/player"], token = "app-token" } = {}) {
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
    }
    hear(message) {
      this.onmessage({ data: JSON.stringify(message) });
    }
    die(code = 1006) {
      this.readyState = 3;
      this.onclose({ code, reason: "" });
    }
  }
  const facts = () => ({ presence: { at_desk: true }, sfu: "sfu-a", publications: [] });
  const connection = new RouterConnection({ routers, token, facts, rng: () => 0.5, shuffle: false, WebSocketClass: Socket });
  const heard = [];
  for (const name of ["welcome", "message", "over"]) connection.on(name, (detail) => heard.push([name, detail]));
  const table = { connection, sockets, heard, get last() { return sockets.at(-1); } };
  table.tick = async (ms) => {
    mock.timers.tick(ms);
    await new Promise((resolve) => setImmediate(resolve));
  };
  table.joined = async () => {
    connection.connect();
    await table.tick(0);
    table.last.open();
    table.last.hear(WELCOME);
    return table;
  };
  return table;
}

test("it joins with the app's token", async (t) => {
  const { last, heard } = await play(t).joined();
  assert.equal(last.url, "ws://one/player");
  assert.deepEqual([last.sent[0].type, last.sent[0].token], ["join", "app-token"]);
  assert.equal(heard[0][0], "welcome");
});

test("a lost websocket is resumed on the next router, with jitter from the first try", async (t) => {
  const table = await play(t).joined();
  table.last.die();
  await table.tick(499);
  assert.equal(table.sockets.length, 1);
  await table.tick(1);
  assert.equal(table.last.url, "ws://two/player");
  table.last.open();
  const { type, resume_token, sfu } = table.last.sent[0];
  assert.deepEqual([type, resume_token, sfu], ["resume", "resume-me", "sfu-a"]);
});

test("a session that can't be resumed is joined again at once", async (t) => {
  const table = await play(t).joined();
  table.last.die();
  await table.tick(500);
  table.last.open();
  table.last.die(4009);
  await table.tick(0);
  table.last.open();
  assert.equal(table.last.sent[0].type, "join");
});

test("a token that is refused ends it, with what the router said", async (t) => {
  const table = play(t);
  table.connection.connect();
  await table.tick(0);
  table.last.open();
  table.last.hear({ type: "error", code: "bad-token", message: "token refused (expired)" });
  table.last.die(4003);
  await table.tick(60_000);
  const [name, { code, advice }] = table.heard.at(-1);
  assert.deepEqual([name, code], ["over", 4003]);
  assert.match(advice, /expired/);
  assert.equal(table.sockets.length, 1);
});

test("a session that was replaced does not come back to fight", async (t) => {
  const table = await play(t).joined();
  table.last.die(4001);
  await table.tick(60_000);
  assert.equal(table.sockets.length, 1);
  assert.equal(table.heard.at(-1)[0], "over");
});

test("a router that says nothing is given up", async (t) => {
  const table = play(t);
  table.connection.connect();
  await table.tick(0);
  table.last.open();
  await table.tick(WELCOME_TIMEOUT_MS);
  await table.tick(500);
  assert.equal(table.last.url, "ws://two/player");
});

test("two pings without any answer are a dead connection; any message is an answer", async (t) => {
  const table = await play(t).joined();
  await table.tick(10_000);
  await table.tick(10_000);
  table.last.hear({ type: "pong", n: 2 });
  await table.tick(10_000);
  await table.tick(10_000);
  assert.equal(table.sockets.length, 1);
  await table.tick(10_000);
  await table.tick(500);
  assert.equal(table.sockets.length, 2);
});

test("a router that closes is left when it says, and the next one is asked", async (t) => {
  const table = await play(t).joined();
  table.last.hear({ type: "router-closing", after_s: 2 });
  await table.tick(1999);
  assert.equal(table.sockets[0].readyState, 1);
  await table.tick(1);
  assert.equal(table.sockets[0].readyState, 3);
  await table.tick(500);
  assert.equal(table.last.url, "ws://two/player");
});

test("nothing is sent, and the caller knows, while there is no session", async (t) => {
  const table = play(t);
  assert.equal(table.connection.send("ping", { n: 1 }), false);
  await table.joined();
  assert.equal(table.connection.send("ping", { n: 1 }), true);
  table.last.die();
  assert.equal(table.connection.send("ping", { n: 2 }), false);
});

test("a token function is asked at each join", async (t) => {
  let asked = 0;
  const table = await play(t, { token: async () => `token-${++asked}` }).joined();
  assert.equal(table.last.sent[0].token, "token-1");
});

test("no network is waited out, or tried at once when it is back", async (t) => {
  const table = await play(t).joined();
  table.last.die();
  table.connection.retryNow();
  await table.tick(0);
  assert.equal(table.sockets.length, 2);
});

test("what is no message is dropped, and the connection goes on", async (t) => {
  const table = await play(t).joined();
  mock.method(console, "warn", () => {});
  table.last.onmessage({ data: "{" });
  table.last.hear({ type: "sfu-gone", sfu: "a" });
  assert.equal(table.heard.at(-1)[1].sfu, "a");
});

test("a leave is said before the end", async (t) => {
  const table = await play(t).joined();
  table.connection.close();
  assert.equal(table.last.sent.at(-1).type, "leave");
  await table.tick(60_000);
  assert.equal(table.sockets.length, 1);
});

test("an app that has no token and will have none ends the session with its own words", async (t) => {
  const token = async () => { throw Object.assign(new Error("sign in first"), { final: true }); };
  const table = play(t, { token });
  table.connection.connect();
  await table.tick(0);
  assert.deepEqual(table.heard, [["over", { code: 4003, advice: "sign in first" }]]);
  await table.tick(600_000);
  assert.equal(table.sockets.length, 0, "it must not try again");
});

test("an app whose token server is away is asked again", async (t) => {
  let asked = 0;
  const token = async () => { if (++asked < 3) throw new Error("502"); return "late"; };
  const table = play(t, { token });
  table.connection.connect();
  for (let n = 0; n < 4; n++) await table.tick(60_000);
  table.last.open();
  assert.deepEqual([asked, table.last.sent[0].token], [3, "late"]);
});
