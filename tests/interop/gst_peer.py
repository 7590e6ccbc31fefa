"""GStreamer's webrtcbin as a player's media: one publish and one subscribe connection.

Run by the system's Python, which has the bindings; nothing of Sluice is imported. JSON lines as `wrtc_peer.mjs` has
them.
"""

import json
import sys
import threading

import gi

gi.require_version("Gst", "1.0")
gi.require_version("GstWebRTC", "1.0")
gi.require_version("GstSdp", "1.0")
from gi.repository import GLib, Gst, GstSdp, GstWebRTC  # noqa: E402

PUBLISH = """
    webrtcbin name=rtc bundle-policy=max-bundle
    audiotestsrc is-live=true freq=440 volume=0.3 ! audio/x-raw,rate=48000,channels=1 ! opusenc ! rtpopuspay pt=111
        ! application/x-rtp,media=audio,encoding-name=OPUS,payload=111 ! rtc.
    videotestsrc is-live=true pattern=ball motion=sweep ! video/x-raw,width=480,height=270,framerate=15/1
        ! vp8enc deadline=1 cpu-used=8 target-bitrate=300000 keyframe-max-dist=300
        ! rtpvp8pay pt=96 picture-id-mode=15-bit ! application/x-rtp,media=video,encoding-name=VP8,payload=96 ! rtc.
"""
NEEDED = ("webrtcbin", "nicesrc", "dtlsdec", "srtpdec", "vp8enc", "vp8dec", "opusenc", "opusdec", "rtpvp8pay")
PROFILES = {(1, 2): "AES_CM_128_HMAC_SHA1_80", (1, 1): "AES_CM_128_HMAC_SHA1_32"}
"""GstDtlsSrtpCipher and GstDtlsSrtpAuth."""

KEPT = []
"""Promises, replies and ICE agents: the bindings free what Python forgets while C still uses it."""


def make_webrtcbin(rtc):
    """Let libnice use the loopback address, which it leaves out: from another one the SFU's answers don't come back."""
    agent = rtc.get_property("ice-agent")
    agent.emit("add-local-ip-address", "127.0.0.1")
    KEPT.append(agent)
    return rtc


def ask(rtc, signal, *arguments):
    """Emit a signal that answers through a promise; the answer."""
    promise = Gst.Promise.new()
    rtc.emit(signal, *arguments, promise)
    promise.wait()
    reply = promise.get_reply()
    KEPT.extend((promise, reply))
    return reply


def description(kind, sdp):
    _, message = GstSdp.SDPMessage.new_from_text(sdp)
    return GstWebRTC.WebRTCSessionDescription.new(kind, message)


def transceivers(rtc):
    found = []
    while (one := rtc.emit("get-transceiver", len(found))) is not None:
        found.append(one)
    return found


def repair(transceiver):
    """Offer, take and ask for retransmissions of video; sound has none with us."""
    if transceiver.get_property("kind") == GstWebRTC.WebRTCKind.VIDEO:
        transceiver.set_property("do-nack", True)


class Publisher:
    def __init__(self):
        self.pipeline = Gst.parse_launch(PUBLISH)
        self.rtc = make_webrtcbin(self.pipeline.get_by_name("rtc"))
        self.sent = 0

    def offer(self, _):
        for one in transceivers(self.rtc):
            one.set_property("direction", GstWebRTC.WebRTCRTPTransceiverDirection.SENDONLY)
            repair(one)
        pay = next(e for e in children(self.pipeline) if factory(e) == "rtpvp8pay")
        pay.get_static_pad("sink").add_probe(Gst.PadProbeType.BUFFER, self.count)
        negotiated = threading.Event()
        self.rtc.connect("on-negotiation-needed", lambda _: negotiated.set())
        self.pipeline.set_state(Gst.State.PLAYING)
        negotiated.wait(10)
        made = ask(self.rtc, "create-offer", None).get_value("offer")
        ask(self.rtc, "set-local-description", made)
        text = made.sdp.as_text()
        mids = [line[6:] for line in text.splitlines() if line.startswith("a=mid:")]
        kinds = [line[2:].split()[0] for line in text.splitlines() if line.startswith("m=")]
        return {"sdp": text, "tracks": [{"mid": m, "kind": k} for m, k in zip(mids, kinds, strict=True)]}

    def answer(self, command):
        ask(self.rtc, "set-remote-description", description(GstWebRTC.WebRTCSDPType.ANSWER, command["sdp"]))
        return {}

    def count(self, pad, info):
        self.sent += 1
        return Gst.PadProbeReturn.OK


class Subscriber:
    def __init__(self):
        self.pipeline = Gst.Pipeline()
        self.rtc = make_webrtcbin(Gst.ElementFactory.make("webrtcbin"))
        self.rtc.set_property("bundle-policy", GstWebRTC.WebRTCBundlePolicy.MAX_BUNDLE)
        self.rtc.connect("on-new-transceiver", lambda _, one: repair(one))
        self.rtc.connect("pad-added", self.pad_added)
        self.pipeline.add(self.rtc)
        self.received = []

    def subscribe(self, command):
        self.pipeline.set_state(Gst.State.PLAYING)
        ask(self.rtc, "set-remote-description", description(GstWebRTC.WebRTCSDPType.OFFER, command["sdp"]))
        made = ask(self.rtc, "create-answer", None).get_value("answer")
        ask(self.rtc, "set-local-description", made)
        return {"sdp": made.sdp.as_text()}

    def pad_added(self, _, pad):
        if pad.get_direction() != Gst.PadDirection.SRC:
            return
        kind = pad.get_current_caps().get_structure(0).get_string("media")
        chain = (
            "rtpvp8depay ! vp8dec ! videoconvert ! video/x-raw,format=GRAY8"
            if kind == "video"
            else "rtpopusdepay ! opusdec ! audioconvert ! audio/x-raw,format=S16LE,channels=1"
        )
        made = Gst.parse_bin_from_description(
            f"queue ! {chain} ! fakesink name=end sync=false signal-handoffs=true", True
        )
        entry = {"kind": kind, "frames": 0, "changed": 0, "width": 0, "height": 0, "audible": 0}
        self.received.append(entry)
        made.get_by_name("end").connect("handoff", self.decoded, entry, [b""])
        self.pipeline.add(made)
        made.sync_state_with_parent()
        pad.link(made.get_static_pad("sink"))

    def decoded(self, _, buffer, pad, entry, last):
        entry["frames"] += 1
        data = buffer.extract_dup(0, buffer.get_size())
        if entry["kind"] == "video":
            caps = pad.get_current_caps().get_structure(0)
            entry["width"], entry["height"] = caps.get_int("width")[1], caps.get_int("height")[1]
            entry["changed"] += data != last[0]
            last[0] = data
        else:
            samples = memoryview(data[: len(data) // 2 * 2]).cast("h")
            entry["audible"] += max(map(abs, samples), default=0) > 500


def children(pipeline):
    iterator = pipeline.iterate_recurse()
    while True:
        result, value = iterator.next()
        if result != Gst.IteratorResult.OK:
            return
        yield value


def factory(element):
    made_by = element.get_factory()
    return made_by.get_name() if made_by else ""


def profiles(*pipelines):
    """What DTLS has agreed on for SRTP, on each connection that has got that far."""
    found = []
    for decoder in (e for p in pipelines for e in children(p) if factory(e) == "dtlsdec"):
        cipher, auth = decoder.get_property("srtp-cipher"), decoder.get_property("srtp-auth")
        found.append(PROFILES.get((int(cipher), int(auth)), f"cipher {cipher} auth {auth}"))
    return found


def main():
    Gst.init(None)
    if "--probe" in sys.argv:
        lacking = [name for name in NEEDED if Gst.ElementFactory.find(name) is None]
        sys.exit(f"GStreamer lacks {', '.join(lacking)}" if lacking else 0)
    publisher, subscriber = Publisher(), Subscriber()
    threading.Thread(target=GLib.MainLoop().run, daemon=True).start()

    def stats(_):
        video = [one for one in subscriber.received if one["kind"] == "video"]
        audio = [one for one in subscriber.received if one["kind"] == "audio"]
        keyed = profiles(publisher.pipeline, subscriber.pipeline)
        return {"video": video, "audio": audio, "profiles": keyed, "sent": publisher.sent}

    commands = {
        "offer": publisher.offer,
        "answer": publisher.answer,
        "subscribe": subscriber.subscribe,
        "stats": stats,
    }
    for line in sys.stdin:
        command = json.loads(line)
        if command["cmd"] == "close":
            break
        try:
            answer = commands[command["cmd"]](command)
        except Exception as error:
            answer = {"error": repr(error)}
        print(json.dumps(answer), flush=True)
    for one in (publisher, subscriber):
        one.pipeline.set_state(Gst.State.NULL)


main()
