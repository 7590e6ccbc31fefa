/** Sentences for the words that clients and SFUs give as reasons; a word without one is shown as it is. */

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
  "no-sfu": "there is no SFU to move to",
  cordoned: "the SFU was cordoned meanwhile",
  uncordoned: "the cordon was taken back",
  kept: "the router keeps us where we are",
};

/** What a reason means, for people. */
export const reasonText = (word) => SENTENCES[word] ?? word;
