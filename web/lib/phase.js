/** The phases of a player's way from SFU to SFU, and its time-outs; the twin of player/core/phases.py. */

/** Where the player is on its way. */
export const Phase = Object.freeze({
  /** No session at a router yet. */
  OUTSIDE: "outside",
  /** Publishing at home; nothing to do. */
  SETTLED: "settled",
  /** Wants another SFU and will ask at a moment drawn with jitter, or when a router is there. */
  WAITING: "waiting",
  /** The router was asked. */
  ASKING: "asking",
  /** A link to the new SFU is being opened, and published on. */
  OPENING: "opening",
});

/** A router answers from memory or from one Redis transaction; one that has not by then is asked again [ms]. */
export const REQUEST_TIMEOUT_MS = 5000;
/** From opening a link until the SFU lets us in: TCP and TLS fit, on a poor line too [ms]. */
export const ENTER_TIMEOUT_MS = 5000;
/** From there until something flows: ICE, a DTLS handshake and a key frame on a poor line fit [ms]. */
export const FLOW_TIMEOUT_MS = 8000;
/** From the first publication that flows until a move no longer waits for the rest: what sends, flows by then [ms]. */
export const REST_TIMEOUT_MS = 3000;
/** No router makes us wait longer than about this; it may have meant milliseconds, or be about to end [ms]. */
export const MAX_RETRY_AFTER_MS = 60_000;

/** Causes that vanish when the cordon is taken back, and before which the rule is asked again. */
export const UNFORCED = Object.freeze(["cordoned", "asked"]);

/** Words for the end of a link whose media died, while its websocket may be well. */
export const NO_MEDIA = Object.freeze(["ice-timeout", "dtls-timeout", "ice-silent"]);
/** A home that ended so is not asked for again for a while: its media is gone, or it ends and the router may not know. */
export const EXCLUDING = Object.freeze(["terminating", ...NO_MEDIA]);
