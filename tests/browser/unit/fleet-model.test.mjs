// What the fleet page says of SFUs and of the pool: web/ui/fleet/model.js.

import assert from "node:assert/strict";
import { test } from "node:test";

import { withoutMedia, withoutMediaWords } from "../../../web/ui/fleet/overview.js";
import { drainOf, fits, grouped, poolOf, reasonsOf, shortNames, stateOf, understand } from "../../../web/ui/fleet/model.js";

const DRAIN = { cause: "sigterm", by: "signal", reason: "", exit_when_empty: true, elapsed_s: 100, drain_max_s: 1800, grace_s: 3600, asking: false };
const row = (extra = {}) => understand({
  sfu: "sfu-1", status: "ONLINE", refused: null, warmed_up: true, load: 0.5, binding: "egress", parts: { egress: 0.5, streams: 0.2, cpu: 0.1 },
  players: 10, streams: 100, rooms: 2, egress_bps: 1e6, cell: "eu", version: "v1", drain: null, age_s: 0, ...extra,
});

test("an SFU stands in one state, the one that needs a look first", () => {
  assert.equal(stateOf(row()), "online");
  assert.equal(stateOf(row({ warmed_up: false })), "warming");
  assert.equal(stateOf(row({ status: "CORDONED", refused: "cordoned", drain: DRAIN })), "draining");
  assert.equal(stateOf(row({ status: "CORDONED", refused: "cordoned", drain: { ...DRAIN, asking: true } })), "asking");
  assert.equal(stateOf(row({ status: "CORDONED", refused: "cordoned", drain: { ...DRAIN, exit_when_empty: false } })), "held");
  assert.equal(stateOf(row({ status: "CORDONED", refused: "cordoned", drain: { ...DRAIN, exit_when_empty: false, lease_left_s: 3000 } })), "draining");
  assert.equal(stateOf(row({ status: "CORDONED", refused: "cordoned", drain: null })), "held");
  assert.equal(stateOf(row({ status: "TERMINATING", refused: "terminating" })), "ending");
  assert.equal(stateOf(row({ refused: "stale" })), "silent");
  assert.equal(stateOf(row({ refused: "treated-as-cordoned" })), "odd");
  assert.equal(stateOf(row({ status: "UNKNOWN", refused: "unknown-status" })), "odd");
});

test("unknown is not zero, and a silent SFU's last load counts as unknown", () => {
  assert.equal(row({ load: null }).heat, "unknown");
  assert.equal(row({ load: 0.2, refused: "stale" }).heat, "unknown");
  assert.deepEqual([0, 0.65, 0.85].map((load) => row({ load }).heat), ["idle", "high", "full"]);
  const pool = poolOf([row({ load: 0.8 }), row({ load: null }), row({ load: 0, refused: "stale" }), row({ load: 0, warmed_up: false })]);
  assert.deepEqual([pool.load, pool.capacity, pool.count], [0.8, 1, 4]);
  assert.deepEqual([poolOf([]).load, poolOf([]).binding], [null, null]);
});

test("the pool's binding part is the one with the greatest mean", () => {
  const pool = poolOf([row({ parts: { egress: 0.9, streams: 0.2, cpu: 0.1 } }), row({ parts: { egress: 0.1, streams: 0.9, cpu: 0.1 } })]);
  assert.equal(pool.binding, "streams");
});

test("sums leave out what is not known", () => {
  assert.equal(poolOf([row(), row({ players: null })]).players, 10);
});

test("words and comparisons find SFUs", () => {
  const one = row({ sfu: "sfu-017", load: 0.81, version: "v1.9.0" });
  for (const query of ["", "017", "EU v1.9", "load>80", "load<82 players>9", "online", "egress"]) assert.ok(fits(one, query), query);
  for (const query of ["018", "load>81.5", "players<10", "draining"]) assert.ok(!fits(one, query), query);
  assert.ok(!fits(row({ load: null }), "load<50"), "unknown is not small");
});

test("short names keep what tells ids apart", () => {
  assert.deepEqual([...shortNames(["sfu-001", "sfu-012"]).values()], ["001", "012"]);
  assert.deepEqual([...shortNames(["eu-a7", "eu-b1"]).values()], ["a7", "b1"]);
  assert.deepEqual([...shortNames(["a", "b"]).values()], ["a", "b"]);
  assert.deepEqual([...shortNames(["same"]).values()], ["same"]);
  assert.deepEqual([...shortNames(["sfu-1", "sfu-10"]).values()], ["1", "10"]);
});

test("groups come in order, rows in the order asked for", () => {
  const rows = [row({ sfu: "b", cell: "us" }), row({ sfu: "a2", load: 0.9 }), row({ sfu: "a10" })];
  assert.deepEqual(grouped(rows, { group: "cell", order: "name" }).map(({ name, rows: r }) => [name, r.map(({ sfu }) => sfu)]), [["eu", ["a2", "a10"]], ["us", ["b"]]]);
  assert.equal(grouped(rows, { group: "none", order: "load" })[0].rows[0].sfu, "a2");
});

test("a drain counts on between two reports", () => {
  const drain = drainOf({ drain: DRAIN, age_s: 2 }, 3);
  assert.deepEqual([drain.elapsed, drain.asks, drain.ends, drain.next], [105, 1695, 3495, 1695]);
  assert.deepEqual([drain.share.toFixed(3), drain.askShare], ["0.029", 0.5]);
  assert.equal(drainOf({ drain: { ...DRAIN, asking: true }, age_s: 0 }).asks, null);
  const held = drainOf({ drain: { ...DRAIN, drain_max_s: null, grace_s: null }, age_s: 0 });
  assert.deepEqual([held.next, held.share], [null, null]);
  assert.equal(drainOf({ drain: null, age_s: 0 }), null);
});

test("reasons to stay are counted, the commonest first", () => {
  const player = (extra) => ({ moving_to: null, decided: true, reason: "in a conversation", ...extra });
  const reasons = reasonsOf([player(), player(), player({ decided: false }), player({ moving_to: "sfu-2" }), player({ reason: "" })]);
  assert.deepEqual(reasons[0], ["in a conversation", 2]);
  assert.deepEqual(new Set(reasons.slice(1).map(([why]) => why)), new Set(["has not decided", "moving now", "gave no reason"]));
});

test("players without media are counted and named, and what a router does not say is not zero", () => {
  const one = { without_media: 1, who_without_media: [{ who: "Ann", room: "kitchen", missing: ["send", "receive"] }] };
  assert.equal(withoutMedia([one, { without_media: 0, who_without_media: [] }]), 1);
  assert.equal(withoutMedia([one, {}]), null);
  assert.equal(withoutMediaWords([one, {}]), "No media gets through: Ann in kitchen can’t send or receive.");
  assert.equal(withoutMediaWords([{}]), "");
});
