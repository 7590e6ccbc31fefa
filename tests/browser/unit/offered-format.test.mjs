import assert from "node:assert/strict";
import { test } from "node:test";

import { withOfferedFormat } from "../../../web/lib/offered-format.js";

const sdp = (...lines) => lines.map((line) => `${line}\r\n`).join("");
const OFFER = sdp(
  "m=audio 9 UDP/TLS/RTP/SAVPF 111",
  "a=fmtp:111 minptime=10;useinbandfec=1;stereo=1;sprop-stereo=1",
  "m=audio 9 UDP/TLS/RTP/SAVPF 110",
  "a=fmtp:110 minptime=10;useinbandfec=1",
  "m=video 9 UDP/TLS/RTP/SAVPF 36",
  "a=fmtp:36 packetization-mode=1;profile-level-id=42e01f;sprop-parameter-sets=Z0LAHw==,aM48gA==",
);

test("stereo and parameter sets are answered where they are offered, once", () => {
  const answer = sdp(
    "a=fmtp:111 minptime=10;useinbandfec=1",
    "a=fmtp:110 minptime=10;useinbandfec=1",
    "a=fmtp:36 packetization-mode=1;profile-level-id=42e01f",
  );
  const expected = sdp(
    "a=fmtp:111 minptime=10;useinbandfec=1;stereo=1",
    "a=fmtp:110 minptime=10;useinbandfec=1",
    "a=fmtp:36 packetization-mode=1;profile-level-id=42e01f;sprop-parameter-sets=Z0LAHw==,aM48gA==",
  );
  assert.equal(withOfferedFormat(answer, OFFER), expected);
  assert.equal(withOfferedFormat(expected, OFFER), expected, "a browser that says it unasked");
});

test("what the browser says itself stays as it is", () => {
  const mono = sdp("a=fmtp:111 minptime=10;stereo=0");
  assert.equal(withOfferedFormat(mono, OFFER), mono);
  assert.equal(withOfferedFormat(mono, mono), mono);
  assert.equal(withOfferedFormat("", ""), "");
});
