/**
 * The publish connection to one SFU: the player offers. VP8 and Opus are preferred; candidates are not exchanged,
 * because the SFU is ICE-lite and finds us by our first check.
 *
 * @typedef {{publication: string, kind: string, track: MediaStreamTrack, encodings?: RTCRtpEncodingParameters[],
 *   stereo?: boolean}} Source
 */

import { withStereo } from "./stereo.js";

/** Enough for 640x360 at 30 frames a second [bit/s]. */
export const VIDEO_MAX_BPS = 800_000;
const PREFERRED = { audio: "audio/opus", video: "video/vp8" };

export class Publisher {
  #transceivers = new Map(); // publication -> RTCRtpTransceiver
  #negotiation = 0;
  #inFlight = null; // {offer, resolve} until the offer is answered
  #running = null;
  #wanted = null;
  #last = null; // {sources, generation} of the newest offer

  /**
   * @param {{send: (type: string, fields: object) => void, connection: () => RTCPeerConnection}} options
   */
  constructor({ send, connection }) {
    this.send = send;
    this.pc = connection();
  }

  /**
   * Publish exactly these, each with this generation. Calls are done one after another; the last one counts.
   * @param {Source[]} sources
   * @param {number} generation
   */
  async set(sources, generation) {
    this.#wanted = { sources, generation };
    this.#running ??= this.#negotiate().finally(() => (this.#running = null));
    await this.#running;
  }

  /** Look for ways to the SFU again: our network has changed. The connection goes on, and what it sends with it. */
  async restart() {
    if (!this.#last) return; // the first offer is still to come
    this.pc.restartIce();
    const { sources, generation } = this.#wanted ?? this.#last;
    await this.set(sources, generation);
  }

  /** Encoders and an offer take a while to make: do it while the websocket is still opening. */
  async prepare(sources) {
    this.#apply(sources);
    await this.#describe(sources);
  }

  /** A browser offers one channel of sound unless its description says otherwise. */
  async #describe(sources) {
    const ones = sources.filter(({ stereo }) => stereo).map(({ publication }) => this.#transceivers.get(publication));
    if (!ones.length) {
      await this.pc.setLocalDescription();
      return;
    }
    const { sdp } = await this.pc.createOffer();
    try {
      const names = new Set(ones.map(({ mid, sender }) => mid ?? sender.track.id));
      await this.pc.setLocalDescription({ type: "offer", sdp: withStereo(sdp, names) });
    } catch (error) {
      console.warn("sluice: this browser offers no stereo", error);
      await this.pc.setLocalDescription();
    }
  }

  async #negotiate() {
    while (this.#wanted) {
      const { sources, generation } = (this.#last = this.#wanted);
      this.#wanted = null;
      this.#apply(sources);
      await this.#describe(sources);
      const tracks = sources.map(({ publication, kind }) => {
        return { mid: this.#transceivers.get(publication).mid, publication, kind, generation };
      });
      const negotiation = ++this.#negotiation;
      const offer = { sdp: this.pc.localDescription.sdp, negotiation, tracks };
      const answer = new Promise((resolve) => (this.#inFlight = { offer, resolve }));
      this.sayAgain();
      const sdp = await answer;
      this.#inFlight = null;
      if (sdp === null) return;
      await this.pc.setRemoteDescription({ type: "answer", sdp });
    }
  }

  #apply(sources) {
    const wanted = new Set(sources.map(({ publication }) => publication));
    for (const [publication, transceiver] of this.#transceivers) {
      if (wanted.has(publication)) continue;
      transceiver.stop();
      this.#transceivers.delete(publication);
    }
    for (const { publication, kind, track, encodings } of sources) {
      if (this.#transceivers.has(publication)) continue;
      const sendEncodings = encodings ?? (kind === "video" ? [{ maxBitrate: VIDEO_MAX_BPS }] : undefined);
      const transceiver = this.pc.addTransceiver(track, { direction: "sendonly", sendEncodings });
      prefer(transceiver, kind);
      this.#transceivers.set(publication, transceiver);
    }
  }

  /** The SFU answered; an answer to an older offer is ignored. */
  answer({ sdp, negotiation }) {
    if (this.#inFlight?.offer.negotiation === negotiation) this.#inFlight.resolve(sdp);
  }

  /** Send the offer in flight, if there is one: on a new websocket the SFU may not have heard it. */
  sayAgain() {
    if (this.#inFlight) this.send("publish-offer", this.#inFlight.offer);
  }

  /** Has the SFU answered an offer yet? Until then no word of it about a publish connection can be about this one. */
  get isAnswered() {
    return this.pc.remoteDescription !== null;
  }

  /** Send another track for the same publication (a changed camera). */
  async replaceTrack(publication, track) {
    await this.#transceivers.get(publication)?.sender.replaceTrack(track);
  }

  close() {
    this.#wanted = null;
    this.pc.close();
    this.#inFlight?.resolve(null);
  }
}

function prefer(transceiver, kind) {
  const codecs = RTCRtpReceiver.getCapabilities?.(kind)?.codecs ?? [];
  const isPreferred = (codec) => codec.mimeType.toLowerCase() === PREFERRED[kind];
  const ordered = [...codecs.filter(isPreferred), ...codecs.filter((codec) => !isPreferred(codec))];
  if (ordered.length) transceiver.setCodecPreferences?.(ordered);
}
