"""What the generated clip shows and plays: a drifting gradient with a frame counter, and a beep each second."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

SAMPLE_RATE = 48_000
BEEP_S = 0.12
"""Long enough to hear, short enough that a lost stretch of it is heard too."""
_NOISE = 40
"""Peak of the noise floor, of 32767 (-58 dB): inaudible, and it makes each Opus packet differ from all others."""

# Each digit is three blocks wide and five high; a row is a number of three bits.
_DIGITS = (
    (7, 5, 5, 5, 7),
    (2, 6, 2, 2, 7),
    (7, 1, 7, 4, 7),
    (7, 1, 7, 1, 7),
    (5, 5, 7, 1, 1),
    (7, 4, 7, 1, 7),
    (7, 4, 7, 5, 7),
    (7, 1, 1, 2, 2),
    (7, 5, 7, 5, 7),
    (7, 5, 7, 1, 7),
)

Luma = npt.NDArray[np.uint8]


def gradient(frame: int, *, width: int, height: int, total: int) -> Luma:
    """A soft diagonal wave that has moved by exactly one period after `total` frames, so that laps join."""
    x = np.arange(width)[None, :] / width
    y = np.arange(height)[:, None] / height
    wave = np.sin(2 * np.pi * (x + y + frame / total))
    return (110 + 60 * wave).astype(np.uint8)


def draw_counter(luma: Luma, number: int, *, digits: int = 3) -> None:
    """Write `number` into the top left corner, white on black, each block a sixteenth of the height or so."""
    block = max(2, luma.shape[0] // 18)
    luma[0 : 7 * block, 0 : (4 * digits + 1) * block] = 16
    for place, digit in enumerate(str(number).zfill(digits)[-digits:]):
        left = (4 * place + 1) * block
        for row, bits in enumerate(_DIGITS[int(digit)]):
            for column in range(3):
                if bits & (4 >> column):
                    top = (row + 1) * block
                    at = left + column * block
                    luma[top : top + block, at : at + block] = 235
    draw_strip(luma, number, top=7 * block, block=block, blocks=4 * digits + 1)


def draw_strip(luma: Luma, number: int, *, top: int, block: int, blocks: int) -> None:
    """Below the counter, a row of grey blocks by chance with the number as seed.

    A counter alone is not enough: over a flat picture the step from 17 to 18 is encoded like that from 27 to 28.
    """
    levels = np.random.default_rng(number).integers(16, 236, blocks)
    for position, level in enumerate(levels):
        luma[top : top + block, position * block : (position + 1) * block] = level


def sound(seconds: int, *, seed: int = 1) -> npt.NDArray[np.int16]:
    """Mono samples: the noise floor, and a beep at the start of each second, higher from second to second."""
    rng = np.random.default_rng(seed)
    samples = noise(seconds * SAMPLE_RATE, rng)
    time = np.arange(int(BEEP_S * SAMPLE_RATE)) / SAMPLE_RATE
    envelope = np.sin(np.pi * time / BEEP_S)
    for second in range(seconds):
        tone = 9000 * envelope * np.sin(2 * np.pi * (440 + 55 * second) * time)
        start = second * SAMPLE_RATE
        samples[start : start + len(tone)] += tone.astype(np.int16)
    return samples


def noise(count: int, rng: np.random.Generator) -> npt.NDArray[np.int16]:
    """The noise floor."""
    return rng.integers(-_NOISE, _NOISE + 1, count).astype(np.int16)
