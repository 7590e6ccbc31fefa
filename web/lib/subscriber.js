/**
 * The subscribe connection to one SFU: the SFU offers, one m-line a publication; ended m-lines are used again.
 *
 * Events:  "track" {publication, kind, mid, receiver}   an m-line has begun to carry this publication
 *          "track-gone" {publication, mid}              it carries it no longer
 */

import { Emitter } from "./emitter.js";
import { withOfferedFormat } from "./offered-format.js";
import { withReferenceTimes } from "./reference-times.js";

export class Subscriber extends Emitter {
  #carried = new Map(); // mid -> {publication, generation}; a new generation on the same m-line is another stream
  #chain = Promise.resolve();

  /** @param {{send: (type: string, fields: object) => void, connection: () => RTCPeerConnection}} options */
  constructor({ send, connection }) {
    super();
    this.send = send;
    this.pc = connection();
  }

  /** Answer an offer; offers are answered in the order they came. Rejects when the browser refuses the SDP. */
  offer(message) {
    this.#chain = this.#chain.catch(() => {}).then(() => this.#answer(message));
    return this.#chain;
  }

  async #answer({ sdp, negotiation, tracks }) {
    if (this.pc.signalingState === "closed") return;
    await this.pc.setRemoteDescription({ type: "offer", sdp });
    this.#tellChanges(tracks);
    await this.#setAnswer(sdp);
    this.send("subscribe-answer", { sdp: this.pc.localDescription.sdp, negotiation });
  }

  async #setAnswer(offer) {
    const answer = await this.pc.createAnswer();
    try {
      const sdp = withOfferedFormat(withReferenceTimes(answer.sdp, offer), offer);
      await this.pc.setLocalDescription({ type: "answer", sdp });
    } catch {
      await this.pc.setLocalDescription(answer); // a browser whose answers must not be changed
    }
  }

  /** Told before the answer goes out, so that the frame tap sees the very first one. */
  #tellChanges(tracks) {
    const carried = new Map(tracks.map((track) => [track.mid, track]));
    for (const [mid, { publication, generation }] of this.#carried) {
      const now = carried.get(mid);
      if (now?.publication === publication && now.generation === generation) continue;
      this.#carried.delete(mid);
      this.emit("track-gone", { publication, mid });
    }
    const receivers = new Map(this.pc.getTransceivers().map(({ mid, receiver }) => [mid, receiver]));
    for (const [mid, { publication, generation }] of carried) {
      const receiver = receivers.get(mid);
      if (!receiver || this.#carried.has(mid)) continue;
      this.#carried.set(mid, { publication, generation });
      this.emit("track", { publication, kind: receiver.track.kind, mid, receiver });
    }
  }

  close() {
    this.pc.close();
  }
}
