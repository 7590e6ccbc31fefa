// Sound with two channels is offered where it was asked for: web/lib/stereo.js.

import assert from "node:assert/strict";
import { test } from "node:test";

import { withStereo } from "../../../web/lib/stereo.js";

const section = (mid, ...lines) => ["m=audio 9 UDP/TLS/RTP/SAVPF 111 0", `a=mid:${mid}`, ...lines, ""].join("\r\n");
const OPUS = ["a=rtpmap:111 opus/48000/2", "a=fmtp:111 minptime=10;useinbandfec=1", "a=rtpmap:0 PCMU/8000"];
const HEAD = "v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\n";

test("on the m-lines that are named, for Opus alone", () => {
  const plain = HEAD + section("0", ...OPUS) + section("1", ...OPUS);
  const [, first, second] = withStereo(plain, new Set(["1"])).split(/(?=m=audio)/);
  assert.equal(first, section("0", ...OPUS));
  assert.match(second, /a=fmtp:111 minptime=10;useinbandfec=1;stereo=1;sprop-stereo=1\r\n/);
  assert.doesNotMatch(second, /fmtp:0/);
});

test("on an m-line that has only a track yet", () => {
  const plain = HEAD + section("0", "a=msid:- track-1", ...OPUS) + section("1", "a=msid:stream track-2", ...OPUS);
  const [, first, second] = withStereo(plain, new Set(["track-2"])).split(/(?=m=audio)/);
  assert.doesNotMatch(first, /stereo/);
  assert.match(second, /stereo=1;sprop-stereo=1/);
});

test("once only, and in place of another word on it", () => {
  const plain = HEAD + section("0", "a=rtpmap:111 opus/48000/2", "a=fmtp:111 stereo=0;minptime=10");
  const once = withStereo(plain, new Set(["0"]));
  assert.match(once, /a=fmtp:111 minptime=10;stereo=1;sprop-stereo=1\r\n/);
  assert.equal(withStereo(once, new Set(["0"])), once);
});

test("also where Opus has no parameters yet, and nothing where there is no Opus", () => {
  const bare = HEAD + section("0", "a=rtpmap:111 opus/48000/2", "a=rtpmap:0 PCMU/8000");
  assert.match(withStereo(bare, new Set(["0"])), /opus\/48000\/2\r\na=fmtp:111 stereo=1;sprop-stereo=1\r\na=rtpmap:0/);
  const other = HEAD + section("0", "a=rtpmap:0 PCMU/8000");
  assert.equal(withStereo(other, new Set(["0"])), other);
});
