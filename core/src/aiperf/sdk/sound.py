"""The length of a clip of sound, from the header of its file: WAV, FLAC and MP3.

Sources: RIFF WAVE (Microsoft and IBM, 1991); FLAC (RFC 9639); frames of ISO 11172-3 and 13818-3, with the headers ``Xing``,
``Info`` and ``VBRI`` that encoders put into the first one; ID3v2 tags (id3.org).
"""

from __future__ import annotations

from msgspec import Struct

_RATES = (44100, 48000, 32000)
_BITRATES = (
    (0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320),  # MPEG 1, layer III
    (0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160),  # MPEG 2 and 2.5
)
"""kbit/s of layer III by index; 0 is a free rate."""
_VERSIONS = {3: 1, 2: 2, 0: 4}
"""Version bits of a frame, and by what the sampling rate is divided."""


class Sound(Struct, frozen=True):
    """A clip.  seconds: its length, None where its header doesn't tell.  begins: bytes before the sound itself."""

    seconds: float | None
    begins: int


def sound_of(start: bytes, size: int) -> Sound | None:
    """The clip of *size* bytes that begins with *start*; None where it is no WAV, FLAC or MP3.

    A WAV file that was written as a stream has no length in its header, and an MP3 may have none: it then follows from *size*,
    where the bit rate is known.
    """
    if start[:4] == b"RIFF" and start[8:12] == b"WAVE":
        return _wav(start, size)
    if start[:4] == b"fLaC":
        return _flac(start)
    tag = tag_bytes(start)
    return _mp3(start, size, tag) if tag or _frame(start, 0) is not None else None


def tag_bytes(start: bytes) -> int:
    """Length of the ID3v2 tag that stands before the sound; 0 without."""
    if start[:3] != b"ID3" or len(start) < 10 or any(byte & 0x80 for byte in start[6:10]):
        return 0
    size = sum(byte << shift for byte, shift in zip(start[6:10], (21, 14, 7, 0), strict=True))
    return 10 + size + (10 if start[5] & 0x10 else 0)


def _wav(start: bytes, size: int) -> Sound:
    at, rate = 12, 0
    while at + 8 <= len(start):
        name, length = start[at : at + 4], int.from_bytes(start[at + 4 : at + 8], "little")
        if name == b"fmt " and at + 20 <= len(start):
            rate = int.from_bytes(start[at + 16 : at + 20], "little")
        if name == b"data":  # of a file that was written as a stream the length is 0, or too large
            there = max(0, size - at - 8)
            return Sound((min(length, there) if length else there) / rate if rate else None, at + 8)
        at += 8 + length + length % 2
    return Sound(None, min(at, size))


def _flac(start: bytes) -> Sound:
    """The first block, STREAMINFO, has the rate (20 bits), and the number of samples (36), 0 where it isn't known."""
    at = 4
    while at + 4 <= len(start):
        last, length = start[at] & 0x80, int.from_bytes(start[at + 1 : at + 4], "big")
        at += 4 + length
        if last:
            break
    if start[4:5] and start[4] & 0x7F == 0 and len(start) >= 26:
        word = int.from_bytes(start[18:26], "big")
        rate, samples = word >> 44, word & ((1 << 36) - 1)
        if rate and samples:
            return Sound(samples / rate, at)
    return Sound(None, at)


def _mp3(start: bytes, size: int, at: int) -> Sound:
    frame = _frame(start, at)
    if frame is None:
        return Sound(None, at)
    kbits, rate, mpeg1, length = frame
    per_frame = 1152 if mpeg1 else 576
    side = 4 + ((17 if mpeg1 else 9) if start[at + 3] >> 6 == 3 else (32 if mpeg1 else 17))
    mark, about = start[at + side : at + side + 4], at + side
    if mark in (b"Xing", b"Info") and len(start) >= about + 12 and start[about + 7] & 1:
        samples = int.from_bytes(start[about + 8 : about + 12], "big") * per_frame - _silence(start, about)
        return Sound(max(0, samples) / rate, at)
    if start[at + 36 : at + 40] == b"VBRI" and len(start) >= at + 54:
        return Sound(int.from_bytes(start[at + 50 : at + 54], "big") * per_frame / rate, at)
    behind = at + length
    while (following := _frame(start, behind)) is not None:
        if following[0] != kbits:
            return Sound(None, at)  # the rate varies, and nothing says how long it is
        behind += following[3]
    return Sound(max(0, size - at) * 8 / (kbits * 1000), at)


def _silence(start: bytes, about: int) -> int:
    """Samples that the encoder put before and behind the sound, as LAME and others tell it behind a whole ``Xing`` header."""
    told = start[about + 141 : about + 144]
    if start[about + 4 : about + 8] != b"\0\0\0\x0f" or start[about + 120 : about + 122] not in (b"LA", b"La") or len(told) < 3:
        return 0
    value = int.from_bytes(told, "big")
    return (value >> 12) + (value & 0xFFF)


def _frame(data: bytes, at: int) -> tuple[int, int, bool, int] | None:
    """The frame of layer III there: kbit/s, samples a second, whether it is MPEG 1, its bytes; None where there is none."""
    if len(data) < at + 4 or data[at] != 0xFF or data[at + 1] & 0xE0 != 0xE0:
        return None
    version, layer = data[at + 1] >> 3 & 3, data[at + 1] >> 1 & 3
    index, rate_index = data[at + 2] >> 4, data[at + 2] >> 2 & 3
    if layer != 1 or version == 1 or rate_index == 3 or index in (0, 15):
        return None
    mpeg1 = version == 3
    rate, kbits = _RATES[rate_index] // _VERSIONS[version], _BITRATES[not mpeg1][index]
    return kbits, rate, mpeg1, (144 if mpeg1 else 72) * kbits * 1000 // rate + (data[at + 2] >> 1 & 1)


__all__ = ["Sound", "sound_of", "tag_bytes"]
