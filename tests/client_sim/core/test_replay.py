"""The packets of a looped clip never jump, and are the same for every copy."""

from __future__ import annotations

import random

from client_sim.core.clip import Clip
from client_sim.core.replay import LoopedPicture, LoopedSound
from player.core.frames import Assembler
from player.core.track import HISTORY, Numbers, rtx_packet
from shared.rtc import rtp

CLIP = Clip(
    audio=tuple(b"opus%d" % n for n in range(50)),
    video=tuple(bytes([n % 10 > 0]) + n.to_bytes(2, "big") * (20 if n % 10 else 600) for n in range(20)),
    keys=(0, 10),
    fps=20,
    width=320,
    height=180,
)
NUMBERS = Numbers(ssrc=7, rtx_ssrc=8, sequence=65_500, timestamp=2**32 - 1000, picture=32_760)


def audio() -> LoopedSound:
    return LoopedSound(CLIP, mid="0", numbers=NUMBERS)


def video() -> LoopedPicture:
    return LoopedPicture(CLIP, mid="1", numbers=NUMBERS)


def test_audio_goes_on_from_lap_to_lap() -> None:
    headers, payloads = [], []
    for unit in range(120):
        (packet,) = audio().unit(unit)
        header = rtp.parse(packet)
        headers.append(header)
        payloads.append(packet[header.payload_start : header.payload_end])
    assert [h.sequence for h in headers] == [(65_500 + n) & 0xFFFF for n in range(120)]
    assert [h.timestamp for h in headers] == [(2**32 - 1000 + 960 * n) & 0xFFFFFFFF for n in range(120)]
    assert payloads == [CLIP.audio[n % 50] for n in range(120)]
    assert {(h.ssrc, h.payload_type) for h in headers} == {(7, 111)}


def test_video_goes_on_from_lap_to_lap_and_frames_arrive_whole() -> None:
    track, assembler = video(), Assembler()
    sequences: list[int] = []
    frames: list[bytes] = []
    for unit in range(60):
        for packet in track.unit(unit):
            header = rtp.parse(packet)
            sequences.append(header.sequence)
            assert header.timestamp == (2**32 - 1000 + 4500 * unit) & 0xFFFFFFFF
            payload = packet[header.payload_start : header.payload_end]
            frames += [data for _, data in assembler.add(header.sequence, header.timestamp, header.marker, payload)]
    assert sequences == [(65_500 + n) & 0xFFFF for n in range(len(sequences))]
    assert frames == [CLIP.video[unit % 20] for unit in range(60)]


def test_each_packet_names_its_mid() -> None:
    for track, mid in ((audio(), b"0"), (video(), b"1")):
        packet = track.unit(0)[0]
        assert rtp.extensions(packet, rtp.parse(packet)) == {4: mid}


def test_two_copies_of_a_track_are_equal_byte_for_byte() -> None:
    assert [video().unit(n) for n in range(40)] == [video().unit(n) for n in range(40)]


def test_a_copy_may_begin_at_a_key_frame_only() -> None:
    assert [unit for unit in range(45) if video().is_key(unit)] == [0, 10, 20, 30, 40]
    assert audio().is_key(3)


def test_sent_packets_can_be_had_again_for_a_while() -> None:
    track = audio()
    sent = {rtp.parse(packet).sequence: packet for unit in range(HISTORY + 10) for packet in track.unit(unit)}
    latest = (65_500 + HISTORY + 9) & 0xFFFF
    assert track.repeat(latest) == sent[latest]
    assert track.repeat(65_500) is None, "too old"
    assert track.repeat((latest + 1) & 0xFFFF) is None, "never sent"


def test_a_retransmission_carries_the_number_and_the_payload_of_the_original() -> None:
    packet = video().unit(0)[-1]
    repeated = rtx_packet(packet, ssrc=8, sequence=42)
    original, header = rtp.parse(packet), rtp.parse(repeated)
    assert (header.ssrc, header.payload_type, header.sequence) == (8, 97, 42)
    assert (header.timestamp, header.marker) == (original.timestamp, original.marker)
    payload = repeated[header.payload_start : header.payload_end]
    assert payload == original.sequence.to_bytes(2, "big") + packet[original.payload_start :]
    assert rtp.extensions(repeated, header) == {4: b"1"}


def test_numbers_begin_at_random() -> None:
    drawn = {Numbers.draw(random.Random(seed)) for seed in range(20)}
    assert len(drawn) == 20
