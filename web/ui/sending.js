/** What the person sends: opened from devices or drawn, muted and shown again, and opened again when a device vanishes. */

import { makePattern } from "./pattern.js";

const VIDEO = { width: { ideal: 640 }, height: { ideal: 360 }, frameRate: { ideal: 30 } };
const WANTED = { audio: true, video: VIDEO };
const ADVICE = {
  NotAllowedError: "The camera is blocked. Allow it next to the address of this page, or choose the test pattern.",
  NotFoundError: "There is no camera or microphone here. Choose the test pattern.",
  NotReadableError: "Another program uses the camera. Close it, or choose the test pattern.",
};

export class Sending {
  #tracks = new Map(); // kind -> MediaStreamTrack
  #off = new Set(); // kinds that the person has switched off
  #stop;

  constructor({ tracks, source, canRenew = false, stop = () => {} }) {
    for (const track of tracks) this.#tracks.set(track.kind, track);
    this.source = source;
    this.canRenew = canRenew;
    this.#stop = stop;
  }

  get tracks() {
    return [...this.#tracks.values()];
  }

  has(kind) {
    return this.#tracks.has(kind);
  }

  isOn(kind) {
    return this.has(kind) && !this.#off.has(kind);
  }

  /** Send silence or black instead; what is published stays so, and comes back at once. */
  toggle(kind) {
    if (!this.#off.delete(kind)) this.#off.add(kind);
    this.#apply(kind);
  }

  /** A track of the device that is the default by now. */
  async renew(kind) {
    const stream = await navigator.mediaDevices.getUserMedia({ [kind]: WANTED[kind] });
    const [track] = stream.getTracks();
    this.#tracks.set(kind, track);
    this.#apply(kind);
    return track;
  }

  /** There is no device of this kind any more. */
  lose(kind) {
    this.#tracks.delete(kind);
  }

  stop() {
    for (const track of this.tracks) track.stop();
    this.#stop();
  }

  #apply(kind) {
    const track = this.#tracks.get(kind);
    if (track) track.enabled = !this.#off.has(kind);
  }
}

/** @param {"none" | "pattern" | "camera"} kind. Rejects with a sentence that says what to do. */
export async function openSending(kind, name) {
  if (kind === "none") return new Sending({ tracks: [], source: {} });
  if (kind === "pattern") return new Sending({ ...makePattern(name), source: { audio: "beep", video: "pattern" } });
  if (!navigator.mediaDevices) {
    throw new Error("Browsers open the camera on https pages and on localhost only. Use one of these, or the test pattern.");
  }
  try {
    const stream = await navigator.mediaDevices.getUserMedia(WANTED);
    return new Sending({ tracks: stream.getTracks(), source: { audio: "microphone", video: "camera" }, canRenew: true });
  } catch (error) {
    throw new Error(ADVICE[error.name] ?? `The camera could not be opened (${error.message}).`, { cause: error });
  }
}
