import assert from "node:assert/strict";
import { test } from "node:test";

import { withReferenceTimes } from "../../../web/lib/reference-times.js";

const sdp = (...lines) => lines.map((line) => `${line}\r\n`).join("");
const OFFER = sdp(
  "m=audio 9 UDP/TLS/RTP/SAVPF 111",
  "a=rtcp-fb:111 transport-cc",
  "m=video 9 UDP/TLS/RTP/SAVPF 96 97",
  "a=rtcp-fb:96 nack",
  "a=rtcp-fb:96 nack pli",
  "a=rtcp-fb:96 rrtr",
  "m=video 9 UDP/TLS/RTP/SAVPF 98",
  "a=rtcp-fb:98 nack",
);

test("reference times are taken where they are offered and NACKs are taken", () => {
  const answer = sdp("a=rtcp-fb:111 transport-cc", "a=rtcp-fb:96 nack", "a=rtcp-fb:96 nack pli", "a=rtcp-fb:98 nack");
  const expected = sdp(
    "a=rtcp-fb:111 transport-cc",
    "a=rtcp-fb:96 nack",
    "a=rtcp-fb:96 rrtr",
    "a=rtcp-fb:96 nack pli",
    "a=rtcp-fb:98 nack",
  );
  assert.equal(withReferenceTimes(answer, OFFER), expected);
  assert.equal(withReferenceTimes(expected, OFFER), expected, "a browser that takes them unasked");
});

test("an answer to an offer without them stays as it is", () => {
  const answer = sdp("m=video 9 UDP/TLS/RTP/SAVPF 96", "a=rtcp-fb:96 nack", "a=rtcp-fb:96 goog-remb");
  assert.equal(withReferenceTimes(answer, answer), answer);
  assert.equal(withReferenceTimes("", ""), "");
});
