/**
 * "Is it safe to move now?" A rule is any function of these facts that returns `{move, reason}` or a boolean, at once;
 * it is asked again each time they change (requirement D5). Give the player your own with `new Player({rule})`. A reason
 * is a word that operators see, too; web/ui/words.js has the sentences for the words of this file.
 *
 * @typedef {{at_desk: boolean, in_ambient_meeting: boolean, in_conversation: boolean}} Presence
 * @typedef {{sfu: string, asksInS: number | null, endsInS: number | null, presence: Presence}} Facts
 * @typedef {{move: boolean, reason: string}} RuleAnswer
 */

/** Longest reason a rule may give [characters]; it travels to every operator. */
export const MAX_REASON = 64;

/**
 * The default rule: move when the player is at their desk and not in an ambient meeting.
 * @param {Facts} facts
 * @returns {RuleAnswer}
 */
export function deskRule({ presence }) {
  if (!presence.at_desk) return { move: false, reason: "away-from-desk" };
  if (presence.in_ambient_meeting) return { move: false, reason: "in-ambient-meeting" };
  return { move: true, reason: "at-desk" };
}

/** The rule with a guard around it: when it throws or answers nonsense that is counted, told the developer, and "stay". */
export class RuleBox {
  faults = 0;

  /** @param {(facts: Facts) => RuleAnswer | boolean} rule */
  constructor(rule) {
    this.rule = rule;
  }

  /** @returns {RuleAnswer} never throws */
  ask(facts) {
    try {
      const answer = this.rule(facts);
      if (typeof answer === "boolean") return { move: answer, reason: answer ? "rule-yes" : "rule-no" };
      if (typeof answer?.move === "boolean") {
        return { move: answer.move, reason: String(answer.reason ?? "").slice(0, MAX_REASON) };
      }
      const given = answer instanceof Promise ? "a Promise; it must answer at once" : JSON.stringify(answer);
      return this.#fault(new TypeError(`the rule must return {move, reason} or a boolean, not ${given}`));
    } catch (error) {
      return this.#fault(error);
    }
  }

  #fault(error) {
    this.faults++;
    console.error("sluice: the rule failed, so the player stays", error);
    return { move: false, reason: "rule-failed" };
  }
}

/**
 * The ladder around the rule; the first rung that applies decides.
 *
 * 1. the SFU asked (past `drain_max`): move, whatever else is said;
 * 2. the person chose: move or stay as they said;
 * 3. the rule says move;
 * 4. the conversation is over (in none, and in no ambient meeting): a move disturbs no one;
 * 5. stay, for the rule's reason.
 *
 * @param {{asked: boolean, choice: "move" | "stay" | null, box: RuleBox, facts: Facts}} input
 * @returns {RuleAnswer & {by: "asked" | "choice" | "rule" | "over"}}
 */
export function decide({ asked, choice, box, facts }) {
  if (asked) return { move: true, reason: "asked", by: "asked" };
  if (choice === "move") return { move: true, reason: "chose-to-move", by: "choice" };
  if (choice === "stay") return { move: false, reason: "chose-to-stay", by: "choice" };
  const answer = box.ask(facts);
  const { in_conversation, in_ambient_meeting } = facts.presence;
  if (!answer.move && !in_conversation && !in_ambient_meeting) return { move: true, reason: "conversation-over", by: "over" };
  return { ...answer, by: "rule" };
}
