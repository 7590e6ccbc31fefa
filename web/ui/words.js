/** Sentences for the words that clients and SFUs give as reasons; a word without one is shown as it is. */

import { isolated } from "./format.js";

const SENTENCES = {
  // the rule (web/lib/rule.js, player/core/rules.py)
  "at-desk": "at the desk, not in an ambient meeting",
  "away-from-desk": "away from the desk",
  "in-ambient-meeting": "in an ambient meeting",
  "conversation-over": "the conversation is over",
  asked: "the SFU asked the remaining players to move",
  "chose-to-move": "chose to move now",
  "chose-to-stay": "chose to stay",
  "rule-failed": "the rule failed",
  "rule-yes": "the rule says yes",
  "rule-no": "the rule says no",
  never: "never, unless the SFU asks",
  always: "always",
  // a move
  "router-silent": "the router did not answer",
  "no-answer": "the SFU did not answer",
  "no-media": "media did not get through",
  "ice-timeout": "nothing answers there",
  "ice-silent": "it has fallen silent",
  closed: "the connection broke",
  "no-sfu": "there is no SFU to move to",
  cordoned: "the SFU was cordoned meanwhile",
  uncordoned: "the cordon was taken back",
  kept: "the router keeps us where we are",
};

/** What a reason means, for people. */
export const reasonText = (word) => (Object.hasOwn(SENTENCES, word) ? SENTENCES[word] : isolated(word));

const NOT_THROUGH = {
  send: "The others can’t hear or see you: your sound and picture do not get through.",
  receive: "You can’t hear or see all the others: their sound and picture do not get through.",
  both: "Sound and picture do not get through: you and the others can’t hear or see each other.",
};

/** What a player without media is told: what does not work, what was tried, what may help. Empty while nothing is missing. */
export function noMediaText({ missing, tried }) {
  if (!missing.length) return "";
  const places = tried.map(({ sfu, where, reason }) => `${isolated(sfu)}${where ? ` at ${where}` : ""}${reason ? ` (${reasonText(reason)})` : ""}`);
  const said = [NOT_THROUGH[missing.length > 1 ? "both" : missing[0]]];
  if (places.length) said.push(`Tried: ${places.join("; ")}.`);
  said.push("A firewall or VPN may block it. This page goes on trying; another network may work.");
  return said.join(" ");
}

const DEVICES = { audio: "microphone", video: "camera" };
const UNSEEN = { audio: "hear", video: "see" };

/** What a person is told of a device that vanished, was replaced, came back or was silenced; empty for nothing. */
export function deviceText(what, { kind, label = "", muted = false }) {
  const [device, sense] = [DEVICES[kind], UNSEEN[kind]];
  const named = label ? `${device} “${isolated(label)}”` : device;
  const sentences = {
    lost: `Your ${named} is gone. Looking for another one.`,
    replaced: `Your ${device} is gone; the ${named} is used instead.`,
    missing: `Your ${device} is gone, and there is no other: the others can’t ${sense} you. Plug one in, and it is used.`,
    back: `The ${named} is used now: the others can ${sense} you again.`,
    muted: muted ? `Your ${named} is silenced by the device or the system: the others can’t ${sense} you.` : "",
  };
  return sentences[what] ?? "";
}
