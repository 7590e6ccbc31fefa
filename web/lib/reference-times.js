/**
 * Reference times (RFC 3611 section 4.4) in an answer.
 *
 * A browser that only receives does not know its round trip, and waits 100 ms before it asks again for a packet whose
 * resend was lost as well: long enough for a freeze. With `rrtr` agreed it tells the SFU its clock and learns the round
 * trip from the reply. Browsers know how, but never offer or take it by themselves.
 */

const FEEDBACK = /^a=rtcp-fb:(\d+) (.*)$/;

/** The answer with `rrtr` for each payload type that the offer has it for and the answer takes NACKs for. */
export function withReferenceTimes(answer, offer) {
  const offered = new Set();
  for (const line of offer.split(/\r?\n/)) {
    const [, payloadType, feedback] = FEEDBACK.exec(line) ?? [];
    if (feedback === "rrtr") offered.add(payloadType);
  }
  for (const line of answer.split(/\r?\n/)) {
    const [, payloadType, feedback] = FEEDBACK.exec(line) ?? [];
    if (feedback === "rrtr") offered.delete(payloadType); // the browser took it unasked
  }
  const lines = [];
  for (const line of answer.split("\r\n")) {
    const [, payloadType, feedback] = FEEDBACK.exec(line) ?? [];
    lines.push(line);
    if (feedback === "nack" && offered.has(payloadType)) lines.push(`a=rtcp-fb:${payloadType} rrtr`);
  }
  return lines.join("\r\n");
}
