/**
 * Microphones and cameras that vanish. A track whose device is gone sends nothing for ever, so its publication gets a track
 * of another device, or ends, and comes back when there is a device again. What can be done about it only the app knows:
 * `renew` opens a track of the device that is the default by then.
 *
 * Events:  "lost" {publication, kind, source, label}                 the device is gone; the publication is silent
 *          "replace" {publication, track}                            publish this track in its place
 *          "end" {publication}                                       there is no other device
 *          "back" {item, track}                                      there is one again: publish it again
 *          "muted" {publication, kind, source, label, muted}         the device or the system has silenced it, or no longer
 *
 * @typedef {{publication: string, kind: string, source: string, track: MediaStreamTrack,
 *   renew?: () => Promise<MediaStreamTrack>}} Item
 */

import { Emitter } from "./emitter.js";

/** A device that has not opened by then is none; it may have asked the person a question that no one sees [ms]. */
export const RENEW_TIMEOUT_MS = 5000;

export class Devices extends Emitter {
  #items = new Map(); // publication -> Item, whose track is looked after
  #gone = new Map(); // publication that has ended -> Item, which waits for a device
  #opening = new WeakSet(); // items whose device is being replaced
  #isAsking = false;
  #changed = () => this.#retry();

  /** @param {EventTarget | undefined} devices tells `devicechange` */
  constructor(devices = globalThis.navigator?.mediaDevices) {
    super();
    this.devices = devices;
    this.devices?.addEventListener?.("devicechange", this.#changed);
  }

  /** Look after this publication's track, and no longer after the one that it had before. */
  watch(item) {
    const { publication, track } = item;
    this.#items.set(publication, item);
    const isIt = () => this.#items.get(publication)?.track === track;
    track.addEventListener("ended", () => isIt() && this.#ended(publication));
    for (const name of ["mute", "unmute"]) {
      track.addEventListener(name, () => isIt() && this.emit("muted", { ...about(item), muted: name === "mute" }));
    }
  }

  /** The publication is over, or the person does not want it any more. */
  forget(publication) {
    this.#items.delete(publication);
  }

  /** Nothing is waited for any longer. */
  close() {
    this.devices?.removeEventListener?.("devicechange", this.#changed);
    this.#items.clear();
    this.#gone.clear();
  }

  async #ended(publication) {
    const item = this.#items.get(publication);
    if (!item || this.#opening.has(item)) return; // told twice: by the track, and by the list of devices
    if (!item.renew) {
      this.emit("end", { publication });
      return;
    }
    this.emit("lost", about(item));
    this.#opening.add(item);
    const track = await open(item);
    if (this.#items.get(publication) !== item) track?.stop(); // it has ended, or has another track by now
    else if (track) this.emit("replace", { publication, track });
    else {
      this.#gone.set(publication, item);
      this.emit("end", { publication });
    }
  }

  /** Not every browser says of a track that its device is gone. */
  async #sweep() {
    const present = await this.devices.enumerateDevices?.().catch(() => null);
    if (!present) return;
    const ids = new Set(present.map(({ deviceId }) => deviceId));
    for (const [publication, { renew, track }] of [...this.#items]) {
      const { deviceId = "" } = track.getSettings?.() ?? {};
      if (renew && deviceId && track.readyState === "live" && !ids.has(deviceId)) await this.#ended(publication);
    }
  }

  async #retry() {
    if (this.#isAsking) return;
    this.#isAsking = true;
    await this.#sweep();
    for (const [publication, item] of [...this.#gone]) {
      const track = await open(item);
      if (!track) continue;
      if (this.#gone.delete(publication)) this.emit("back", { item, track });
      else track.stop();
    }
    this.#isAsking = false;
  }
}

const about = ({ publication, kind, source, track }) => ({ publication, kind, source, label: track.label ?? "" });

/** Another track of the same kind that lives, or null. One that comes too late is closed. */
async function open({ renew, kind }) {
  let isLate = false;
  const opening = Promise.resolve()
    .then(renew)
    .catch(() => null)
    .then((track) => {
      const isGood = track?.kind === kind && track.readyState !== "ended";
      if (track && (isLate || !isGood)) track.stop();
      return isGood ? track : null;
    });
  let timer;
  const late = new Promise((resolve) => (timer = setTimeout(() => resolve(null), RENEW_TIMEOUT_MS)));
  const track = await Promise.race([opening, late]);
  clearTimeout(timer);
  isLate = true;
  return track;
}
