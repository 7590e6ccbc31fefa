/**
 * Sees every encoded frame of every copy on its way to the decoder and reports when it came, off the page's main thread,
 * so that a busy page measures no gaps of its own making. Frames pass through untouched.
 */

/** Arrivals are reported in batches this long [ms]. */
const BATCH_MS = 50;
/** Opus packets are 20 ms; a jitter buffer starts to play after a few, so that is when an audio copy can be switched to. */
const AUDIO_PACKETS_TO_START = 3;

const labels = new Map(); // receiver key -> {copy, kind, frames, started}
let batch = [];

/** Milliseconds on the clock the page has too: `performance.timeOrigin + performance.now()`. */
const clock = () => performance.timeOrigin + performance.now();

self.onmessage = ({ data: { key, copy, kind } }) => {
  if (copy) labels.set(key, { copy, kind, frames: 0, started: false });
  else labels.delete(key);
};

self.onrtctransform = ({ transformer }) => {
  const { key } = transformer.options;
  const watch = new TransformStream({
    transform(frame, controller) {
      note(key, frame, clock());
      controller.enqueue(frame);
    },
  });
  // Ends with the connection; there is no one to tell.
  transformer.readable.pipeThrough(watch).pipeTo(transformer.writable).catch(() => {});
};

function note(key, frame, atMs) {
  const label = labels.get(key);
  if (!label) return;
  const isKey = label.kind === "audio" || frame.type === "key";
  if (!batch.length) setTimeout(flush, BATCH_MS);
  batch.push({ copy: label.copy, atMs, hash: fingerprint(frame.data), key: isKey });
  if (label.started) return;
  if (isKey) label.frames++;
  if (label.frames < (label.kind === "audio" ? AUDIO_PACKETS_TO_START : 1)) return;
  label.started = true;
  self.postMessage({ started: label.copy, atMs });
}

function flush() {
  self.postMessage({ frames: batch });
  batch = [];
}

/** FNV-1a, 32 bits: tells the frames of two seconds apart, no more is needed. */
function fingerprint(data) {
  const bytes = new Uint8Array(data);
  let hash = 0x811c9dc5;
  for (let i = 0; i < bytes.length; i++) hash = Math.imul(hash ^ bytes[i], 0x01000193);
  return (hash ^ bytes.length) >>> 0;
}
