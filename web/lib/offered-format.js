/**
 * What the offer says of a stream, said again in the answer where only the answer counts.
 *
 * A browser decodes Opus to one channel unless its own description has `stereo=1` (RFC 7587 section 6.1: the receiver's
 * word), and looks for H.264 parameter sets in what was agreed. It says neither unasked.
 */

const FORMAT = /^a=fmtp:(\d+) (.*)$/;
const REPEATED = /^(stereo=1|sprop-parameter-sets=.+)$/;

/** The answer with `stereo=1` and `sprop-parameter-sets` for each payload type for which the offer has them. */
export function withOfferedFormat(answer, offer) {
  const offered = new Map();
  for (const line of offer.split(/\r?\n/)) {
    const [, payloadType, format = ""] = FORMAT.exec(line) ?? [];
    const repeated = format.split(";").filter((parameter) => REPEATED.test(parameter));
    if (repeated.length) offered.set(payloadType, repeated);
  }
  const lines = answer.split("\r\n").map((line) => {
    const [, payloadType, format = ""] = FORMAT.exec(line) ?? [];
    const said = new Set(format.split(";").map((parameter) => parameter.split("=")[0]));
    const missing = (offered.get(payloadType) ?? []).filter((parameter) => !said.has(parameter.split("=")[0]));
    return [line, ...missing].join(";");
  });
  return lines.join("\r\n");
}
