/** The phases of a move, and how long each may take. */

/** Where an attempt is. */
export const Phase = Object.freeze({
  /** No SFU yet, and none asked for. */
  IDLE: "idle",
  /** Publishing at home; nothing to do. */
  SETTLED: "settled",
  /** Waiting for the router to name an SFU. */
  REQUESTING: "requesting",
  /** Opening the link to the new SFU. */
  CONNECTING: "connecting",
  /** Publishing on both; waiting until everything flows on the new one. */
  CONFIRMING: "confirming",
  /** The last attempt failed; waiting to try again. */
  BACKING_OFF: "backing-off",
});

/** How long each phase may take: a router answers from memory or one Redis transaction; the rest allows for TCP, TLS,
 *  ICE, DTLS and a first key frame over a bad mobile network [ms]. */
export const TIMEOUT_MS = Object.freeze({
  [Phase.REQUESTING]: 5000,
  [Phase.CONNECTING]: 5000,
  [Phase.CONFIRMING]: 8000,
});
/** What has happened when a phase took too long. */
export const TIMED_OUT = Object.freeze({
  [Phase.REQUESTING]: "the router did not answer",
  [Phase.CONNECTING]: "the SFU did not answer",
  [Phase.CONFIRMING]: "media did not get through",
});
