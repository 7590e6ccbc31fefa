"""H.264 as RTP payloads: made up, and of a real encoder that sends its parameter sets once."""

from __future__ import annotations

import fractions

import av
import numpy
from aiortc.codecs.h264 import H264Encoder

from shared.rtc import h264


def _number(value: int) -> bytes:
    """Exp-Golomb, and a one where the rest of the set would be."""
    code = f"{value + 1:b}"
    bits = "0" * (len(code) - 1) + code + "1"
    bits += "0" * (-len(bits) % 8)
    return int(bits, 2).to_bytes(len(bits) // 8, "big")


def sps(identifier: int, body: bytes = b"") -> bytes:
    """A sequence parameter set, as far as the plane reads it."""
    return b"\x67\x42\xe0\x1f" + _number(identifier) + body


def pps(identifier: int, body: bytes = b"") -> bytes:
    """A picture parameter set, as far as the plane reads it."""
    return b"\x68" + _number(identifier) + body


def stap(*units: bytes) -> bytes:
    """Units in one packet."""
    return h264.aggregate(list(units))


IDR = b"\x65idr"
SLICE = b"\x61slice"


def encoded(frames: int, *, key_every: int) -> tuple[bytes, bytes, list[list[bytes]]]:
    """SPS, PPS, and each picture's payloads without any set, as a hardware encoder goes on after its first picture.

    The pictures are 320x240, their grey grows by 4 a picture.
    """
    encoder = av.CodecContext.create("libx264", "w")
    encoder.width, encoder.height, encoder.pix_fmt = 320, 240, "yuv420p"
    encoder.time_base, encoder.framerate = fractions.Fraction(1, 30), fractions.Fraction(30, 1)
    encoder.options = {
        "profile": "baseline",
        "tune": "zerolatency",
        "x264-params": f"keyint={key_every}:min-keyint={key_every}:scenecut=0",
    }
    found: dict[int, bytes] = {}
    pictures = []
    for number in range(frames):
        grey = numpy.full((360, 320), 128, numpy.uint8)
        grey[:240] = 16 + 4 * number
        picture = av.VideoFrame.from_ndarray(grey, format="yuv420p")
        picture.pts = number
        for packet in encoder.encode(picture):
            units = list(H264Encoder._split_bitstream(bytes(packet)))
            found.update({unit[0] & 0x1F: unit for unit in units if unit[0] & 0x1F in (h264.SPS, h264.PPS)})
            slices = [unit for unit in units if unit[0] & 0x1F in (1, 5)]
            pictures.append(list(H264Encoder._packetize(iter(slices))))
    return found[h264.SPS], found[h264.PPS], pictures


def decoded(payloads: list[tuple[int, bytes]]) -> list[int]:
    """The greys of the pictures that a decoder makes of `(timestamp, payload)`, which begins with the first of them."""
    decoder = av.CodecContext.create("h264", "r")
    greys = []
    stamps = list(dict.fromkeys(timestamp for timestamp, _ in payloads))
    for stamp in stamps:
        stream = b"".join(_annex_b(payload) for timestamp, payload in payloads if timestamp == stamp)
        try:
            pictures = decoder.decode(av.Packet(stream))
        except av.error.InvalidDataError:
            continue
        greys += [int(picture.to_ndarray(format="gray")[120, 160]) for picture in pictures]
    pictures = decoder.decode(None)
    return greys + [int(picture.to_ndarray(format="gray")[120, 160]) for picture in pictures]


def _annex_b(payload: bytes) -> bytes:
    """Of a single unit, an aggregate or a fragment."""
    start = b"\0\0\0\1"
    match payload[0] & 0x1F:
        case 24:
            units, position = b"", 1
            while position < len(payload):
                length = int.from_bytes(payload[position : position + 2], "big")
                units += start + payload[position + 2 : position + 2 + length]
                position += 2 + length
            return units
        case 28:
            head = start + bytes((payload[0] & 0xE0 | payload[1] & 0x1F,)) if payload[1] & 0x80 else b""
            return head + payload[2:]
        case _:
            return start + payload
