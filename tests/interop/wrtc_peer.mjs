/**
 * libwebrtc (the npm package @roamhq/wrtc) as a player's media: one publish and one subscribe connection.
 *
 * JSON lines: commands on standard input, one answer each on standard output; who does the signalling is not our
 * business. SLUICE_PEERS names the folder whose node_modules has the package.
 *
 *   {"cmd": "offer"}            -> {"sdp", "tracks": [{"mid", "kind"}]}   of a generated picture and tone
 *   {"cmd": "answer", "sdp"}    -> {}        the SFU's answer to it
 *   {"cmd": "subscribe", "sdp"} -> {"sdp"}   our answer to the SFU's offer
 *   {"cmd": "stats"}            -> {"video", "audio", "profiles", "sent"}
 *   {"cmd": "close"}            -> ends
 */

import { createRequire } from "node:module";
import { createInterface } from "node:readline";

const require = createRequire(`${process.env.SLUICE_PEERS}/`);
const { RTCPeerConnection, nonstandard } = require("@roamhq/wrtc");
const { RTCAudioSink, RTCAudioSource, RTCVideoSink, RTCVideoSource } = nonstandard;

const WIDTH = 480;
const HEIGHT = 270;
const FPS = 15;
const RATE = 48_000;
const AUDIO_MS = 10; // the source takes pieces of exactly this length
const LEVEL = 8000;
const AUDIBLE = 500;

const publishing = new RTCPeerConnection({ bundlePolicy: "max-bundle" });
const subscribing = new RTCPeerConnection({ bundlePolicy: "max-bundle" });
const received = new Map(); // mid -> what came
const sinks = [];
let timers = [];

/** A picture whose brightness differs from frame to frame, so that a repeated one can be told. */
function startPicture(source) {
  const data = new Uint8ClampedArray((WIDTH * HEIGHT * 3) / 2).fill(128);
  let frame = 0;
  return setInterval(() => {
    data.fill(40 + ((frame++ * 16) % 160), 0, WIDTH * HEIGHT);
    source.onFrame({ width: WIDTH, height: HEIGHT, data });
  }, 1000 / FPS);
}

/** A tone of 440 Hz; the timer is late now and then, so what is due is counted from the beginning. */
function startTone(source) {
  const size = (RATE * AUDIO_MS) / 1000;
  const began = performance.now();
  let pieces = 0;
  return setInterval(() => {
    for (; pieces * AUDIO_MS < performance.now() - began; pieces++) {
      const at = pieces * size;
      const samples = Int16Array.from({ length: size }, (_, n) => LEVEL * Math.sin((2 * Math.PI * 440 * (at + n)) / RATE));
      source.onData({ samples, sampleRate: RATE, bitsPerSample: 16, channelCount: 1, numberOfFrames: size });
    }
  }, AUDIO_MS);
}

async function offer() {
  const [picture, tone] = [new RTCVideoSource(), new RTCAudioSource()];
  for (const track of [tone.createTrack(), picture.createTrack()]) {
    publishing.addTransceiver(track, { direction: "sendonly" });
  }
  timers = [startPicture(picture), startTone(tone)];
  await publishing.setLocalDescription(await publishing.createOffer());
  const tracks = publishing.getTransceivers().map(({ mid, sender }) => ({ mid, kind: sender.track.kind }));
  return { sdp: publishing.localDescription.sdp, tracks };
}

/** Of every 97th pixel and where it is: a repeated picture has the same one, a moved one has not. */
function checksum(data, size) {
  let sum = 0;
  for (let at = 0; at < size; at += 97) sum = (sum * 31 + data[at]) % 1_000_003;
  return sum;
}

function watch({ track, transceiver }) {
  const entry = { kind: track.kind, frames: 0, changed: 0, width: 0, height: 0, audible: 0 };
  received.set(transceiver.mid, entry);
  if (track.kind === "video") {
    const sink = new RTCVideoSink(track);
    let last = -1;
    sink.onframe = ({ frame }) => {
      const sum = checksum(frame.data, frame.width * frame.height);
      entry.frames++;
      entry.changed += sum !== last;
      last = sum;
      [entry.width, entry.height] = [frame.width, frame.height];
    };
    sinks.push(sink);
  } else {
    const sink = new RTCAudioSink(track);
    sink.ondata = ({ samples }) => {
      entry.frames++;
      entry.audible += samples.some((sample) => Math.abs(sample) > AUDIBLE);
    };
    sinks.push(sink);
  }
}

async function subscribe({ sdp }) {
  subscribing.ontrack = watch;
  await subscribing.setRemoteDescription({ type: "offer", sdp });
  await subscribing.setLocalDescription(await subscribing.createAnswer());
  return { sdp: subscribing.localDescription.sdp };
}

async function stats() {
  const reports = [];
  for (const connection of [publishing, subscribing]) reports.push(...(await connection.getStats()).values());
  const profiles = reports.filter(({ type, srtpCipher }) => type === "transport" && srtpCipher);
  const of = (kind) => [...received.values()].filter((each) => each.kind === kind);
  const sent = reports.filter(({ type, kind }) => type === "outbound-rtp" && kind === "video");
  return {
    video: of("video"),
    audio: of("audio"),
    profiles: profiles.map(({ srtpCipher }) => srtpCipher),
    sent: sent.reduce((sum, { framesEncoded }) => sum + (framesEncoded ?? 0), 0),
  };
}

function close() {
  timers.forEach(clearInterval);
  sinks.forEach((sink) => sink.stop());
  publishing.close();
  subscribing.close();
  process.exit(0);
}

const commands = {
  offer,
  subscribe,
  stats,
  close,
  answer: async ({ sdp }) => (await publishing.setRemoteDescription({ type: "answer", sdp }), {}),
};

const lines = createInterface({ input: process.stdin });
lines.on("close", close);
for await (const line of lines) {
  const { cmd, ...rest } = JSON.parse(line);
  const answer = await commands[cmd](rest).catch((error) => ({ error: String(error) }));
  process.stdout.write(`${JSON.stringify(answer)}\n`);
}
