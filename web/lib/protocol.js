/**
 * What the browser and the programs of Sluice must agree on, protocol version 1. docs/protocol.md tells the story.
 *
 * Fields that have their default are left out on the wire, so every message read here gets its defaults back.
 */

/** When media falls silent, a websocket that does not answer a ping within this time is taken for dead as well [ms]. */
export const CHECK_MS = 1500;

/** Why a websocket was closed. */
export const Close = Object.freeze({
  REPLACED: 4001,
  BAD_TOKEN: 4003,
  BAD_MESSAGE: 4004,
  TOO_FAST: 4005,
  SLOW_READER: 4008,
  NOT_RESUMABLE: 4009,
  NO_JOIN: 4010,
  REFUSED: 4011,
  TERMINATING: 4012,
  IDLE: 4013,
});

/** Words in `error.code` that say no to a request. Every other word tells of something that broke. */
export const REFUSALS = new Set([
  "sfu-cordoned",
  "sfu-terminating",
  "no-sfu",
  "not-allowed",
  "not-in-room",
  "too-many",
  "bad-sdp",
  "stale",
  "codec-refused",
  "unknown-sfu",
]);

/** What a person can do about a close code; shown as it is. */
export const CLOSE_ADVICE = Object.freeze({
  [Close.REPLACED]: "You joined this room from another window or device. Use that one, or join again here.",
  [Close.BAD_TOKEN]: "The room did not accept your token; it may have expired. Join again to get a new one.",
  [Close.BAD_MESSAGE]: "This page speaks a protocol the server does not understand. Reload the page.",
  [Close.TOO_FAST]: "The page sent more than the server allows. It will try again in a moment.",
  [Close.NO_JOIN]: "The server did not get our first message in time. Check the network; the page tries again.",
});

const PRESENCE = { at_desk: true, in_ambient_meeting: false, in_conversation: false };
const PLAYER = { name: "", sfu: "", stay: null, router: "", epoch: 0, lost: false };
const PUBLICATION = { source: "", sfu: "", generation: 1 };
const NOTICE = { incarnation: 0, revision: 0, reason: "", asks_in_s: null, ends_in_s: null };
const ASSIGNMENT = { incarnation: 0, revision: 0, request: "" };

const withPresence = (presence) => ({ ...PRESENCE, ...presence });
const asPlayer = (player) => ({
  ...PLAYER,
  ...player,
  presence: withPresence(player.presence),
  stay: player.stay ? { move: false, reason: "", ...player.stay } : null,
});
const asPublication = (publication) => ({ ...PUBLICATION, ...publication });
const asNotice = (notice) => ({ ...NOTICE, ...notice });
const asAssignment = (assignment) => ({ ...ASSIGNMENT, ...assignment });
const asSnapshot = (snapshot) => ({
  players: (snapshot?.players ?? []).map(asPlayer),
  publications: (snapshot?.publications ?? []).map(asPublication),
});
const asTrack = (track) => ({ kind: "", generation: 1, ...track });

const READERS = {
  welcome: (m) => ({
    name: "",
    can_publish: true,
    can_subscribe: true,
    resume_window_s: 25,
    resumed: false,
    router: "",
    ping_every_s: 10,
    ...m,
    assignment: m.assignment ? asAssignment(m.assignment) : null,
    snapshot: asSnapshot(m.snapshot),
    cordoned: (m.cordoned ?? []).map(asNotice),
  }),
  "assigned-sfu": asAssignment,
  "sfu-access": (m) => ({ request: "", ...m }),
  "room-snapshot": (m) => ({ ...m, ...asSnapshot(m) }),
  "room-update": (m) => ({ left: [], ended: [], ...m, ...asSnapshot(m) }),
  "cordoned-sfu": asNotice,
  "uncordoned-sfu": (m) => ({ incarnation: 0, revision: 0, ...m }),
  "sfu-gone": (m) => ({ reason: "", ...m }),
  "router-closing": (m) => ({ after_s: 0, ...m }),
  error: (m) => ({ message: "", request: "", retry_after_s: null, publication: "", ...m }),
  pong: (m) => ({ n: 0, ...m }),
  entered: (m) => ({ incarnation: 0, revision: 0, status: "ONLINE", reentry: "", ...m }),
  "publish-answer": (m) => m,
  "subscribe-offer": (m) => ({ ...m, tracks: (m.tracks ?? []).map(asTrack) }),
  "publication-flowing": (m) => ({ generation: 1, ...m }),
  consumers: (m) => m,
  "publication-ended": (m) => m,
  "please-move": (m) => ({ incarnation: 0, revision: 0, within_s: 0, ...m }),
  closing: (m) => ({ reason: "terminating", ...m }),
};

/**
 * The message in a text frame with its defaults filled in, or null when this version does not know its tag (a newer
 * peer sent it: skip it).
 * @param {string} frame
 * @returns {{type: string} | null}
 * @throws {SyntaxError} when the frame is no message at all
 */
export function read(frame) {
  const message = JSON.parse(frame);
  if (typeof message !== "object" || message === null || typeof message.type !== "string") {
    throw new SyntaxError("a frame without a type");
  }
  const reader = Object.hasOwn(READERS, message.type) ? READERS[message.type] : null;
  return reader ? reader(message) : null;
}

/**
 * The text frame for a message.
 * @param {string} type kebab-case tag
 * @param {object} fields
 */
export function write(type, fields = {}) {
  return JSON.stringify({ type, ...fields });
}

/** A presence with every field. */
export const presenceOf = withPresence;

/**
 * A random id of `[0-9a-f]`, good for publications and requests. `crypto.randomUUID` is missing on plain-http pages
 * that are not on localhost; this is not.
 * @param {number} bytes
 */
export function randomId(bytes = 12) {
  const values = crypto.getRandomValues(new Uint8Array(bytes));
  return Array.from(values, (value) => value.toString(16).padStart(2, "0")).join("");
}
