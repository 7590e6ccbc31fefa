/** A generated picture and tone, for people without a camera and for tests: a frame counter, a clock, a soft beep. */

import { hueOf } from "./format.js";

const WIDTH = 640;
const HEIGHT = 360;
const FPS = 25;

/**
 * @param {string} name drawn into the picture and chosen from for its colour
 * @returns {{tracks: MediaStreamTrack[], stop: () => void}}
 */
export function makePattern(name) {
  const picture = makePicture(name);
  const tone = makeTone(hueOf(name));
  return {
    tracks: [tone.track, picture.track],
    stop() {
      picture.stop();
      tone.stop();
    },
  };
}

function makePicture(name) {
  const canvas = Object.assign(document.createElement("canvas"), { width: WIDTH, height: HEIGHT });
  const context = canvas.getContext("2d", { alpha: false });
  const hue = hueOf(name);
  let frame = 0;
  const draw = () => {
    frame++;
    context.fillStyle = `hsl(${hue} 38% 22%)`;
    context.fillRect(0, 0, WIDTH, HEIGHT);
    context.fillStyle = `hsl(${hue} 55% 45%)`;
    context.beginPath();
    context.arc(WIDTH / 2, HEIGHT / 2, 120, -Math.PI / 2, -Math.PI / 2 + ((frame % FPS) / FPS) * 2 * Math.PI);
    context.lineTo(WIDTH / 2, HEIGHT / 2);
    context.fill();
    context.fillStyle = "#fff";
    context.textAlign = "center";
    context.font = "700 84px ui-monospace, monospace";
    context.fillText(String(frame % 100_000).padStart(5, "0"), WIDTH / 2, HEIGHT / 2 + 20);
    context.font = "600 26px system-ui, sans-serif";
    context.fillText(name.slice(0, 24), WIDTH / 2, HEIGHT / 2 + 72);
  };
  draw();
  const timer = setInterval(draw, 1000 / FPS);
  const [track] = canvas.captureStream(FPS).getVideoTracks();
  track.contentHint = "motion";
  return {
    track,
    stop() {
      clearInterval(timer);
      track.stop();
    },
  };
}

/** A beep of 120 ms each second, at a pitch of one's own, softly faded in and out. */
function makeTone(hue) {
  const context = new AudioContext();
  const oscillator = new OscillatorNode(context, { frequency: 330 + hue });
  const gain = new GainNode(context, { gain: 0 });
  const sink = new MediaStreamAudioDestinationNode(context, { channelCount: 1 });
  oscillator.connect(gain).connect(sink);
  oscillator.start();
  const beep = () => {
    const at = context.currentTime + 0.02;
    gain.gain.setValueAtTime(0, at);
    gain.gain.linearRampToValueAtTime(0.08, at + 0.02);
    gain.gain.setValueAtTime(0.08, at + 0.1);
    gain.gain.linearRampToValueAtTime(0, at + 0.12);
  };
  const timer = setInterval(beep, 1000);
  context.resume().catch(() => {}); // without a click it stays silent until there is one
  const [track] = sink.stream.getAudioTracks();
  return {
    track,
    stop() {
      clearInterval(timer);
      track.stop();
      context.close();
    },
  };
}
