/**
 * "Is it safe to move now?" A rule is any function of these facts that returns `{move, reason}`; it is asked again each
 * time they change (requirement D5). Give the player your own with `new Player({rule})`.
 *
 * @typedef {{at_desk: boolean, in_ambient_meeting: boolean, in_conversation: boolean}} Presence
 * @typedef {{sfu: string, asksInS: number | null, endsInS: number | null, presence: Presence}} Facts
 * @typedef {{move: boolean, reason: string}} Decision
 */

/**
 * The default rule: move when the player is at their desk and not in an ambient meeting.
 * @param {Facts} facts
 * @returns {Decision}
 */
export function deskRule({ presence }) {
  if (presence.in_ambient_meeting) return { move: false, reason: "in an ambient meeting" };
  if (!presence.at_desk) return { move: false, reason: "away from the desk" };
  return { move: true, reason: "at the desk, not in an ambient meeting" };
}

/**
 * The ladder around the rule; the first rung that applies decides.
 *
 * 1. the SFU asked (past `drain_max`): move, whatever anybody says;
 * 2. the person chose: move or stay as they said;
 * 3. the rule says move;
 * 4. the conversation is over (in none, and in no ambient meeting): nobody is disturbed, move;
 * 5. stay, for the rule's reason.
 *
 * @param {{asked: boolean, choice: "move" | "stay" | null, rule: (facts: Facts) => Decision, facts: Facts}} input
 * @returns {Decision & {by: "asked" | "choice" | "rule" | "over"}}
 */
export function decide({ asked, choice, rule, facts }) {
  if (asked) return { move: true, reason: "the SFU asked the remaining players to move", by: "asked" };
  if (choice === "move") return { move: true, reason: "you chose to move now", by: "choice" };
  if (choice === "stay") return { move: false, reason: "you chose to stay", by: "choice" };
  try {
    const { move, reason } = rule(facts);
    const { in_conversation, in_ambient_meeting } = facts.presence;
    if (!move && !in_conversation && !in_ambient_meeting) {
      return { move: true, reason: "the conversation is over", by: "over" };
    }
    return { move: Boolean(move), reason: String(reason ?? ""), by: "rule" };
  } catch (error) {
    // A broken rule must not strand the player on an SFU that ends: moving is seamless, staying is not.
    return { move: true, reason: `the rule failed: ${error}`, by: "rule" };
  }
}
