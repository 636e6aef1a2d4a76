"""The length of clips of sound, from headers that encoders write."""

from __future__ import annotations

import base64
import io
import wave

import pytest
from aiperf.sdk.media import audio_seconds
from aiperf.sdk.model import Media
from aiperf.sdk.sound import Sound, sound_of


def wav(seconds: float, *, before: bytes = b"") -> bytes:
    file = io.BytesIO()
    with wave.open(file, "wb") as out:
        out.setparams((2, 2, 8000, 0, "NONE", "not compressed"))
        out.writeframes(bytes(round(seconds * 32_000)))
    whole = file.getvalue()
    return whole[:36] + before + whole[36:]


def flac(samples: int, rate: int = 44_100, *, more: int = 0) -> bytes:
    """A FLAC file without frames: STREAMINFO (RFC 9639, 8.2), and *more* bytes of padding."""
    about = bytes(10) + (rate << 44 | 1 << 41 | 15 << 36 | samples).to_bytes(8, "big") + bytes(16)
    head = b"fLaC" + bytes((0x80 if not more else 0,)) + len(about).to_bytes(3, "big") + about
    return head + (b"\x81" + more.to_bytes(3, "big") + bytes(more) if more else b"")


FRAME_128K = b"\xff\xfb\x90\x00"
"""A frame head: MPEG 1, layer III, 128 kbit/s, 44,100 Hz, two channels: 417 bytes."""
FRAME_64K_MONO = b"\xff\xf3\x84\xc0"
"""A frame head: MPEG 2, layer III, 64 kbit/s, 24,000 Hz (index 1), one channel: 192 bytes."""


def mp3(head: bytes, length: int, count: int, *, first: bytes = b"") -> bytes:
    body = (head + bytes(length - 4)) * count
    return head + first + bytes(length - 4 - len(first)) + body if first else body


XING = bytes(32) + b"Xing" + (1).to_bytes(4, "big") + (1000).to_bytes(4, "big")
LAME = bytes(32) + b"Info" + (15).to_bytes(4, "big") + (1000).to_bytes(4, "big") + bytes(108) + b"LAME3.100" + bytes(12) + (
    576 << 12 | 1000
).to_bytes(3, "big")
VBRI = bytes(32) + b"VBRI" + bytes(10) + (500).to_bytes(4, "big")
ID3 = b"ID3\x04\x00\x00\x00\x00\x0f\x20"
"""The head of a tag of 1,952 bytes."""

CLIPS = {
    "wav": (wav(1.5), Sound(1.5, 44)),
    "wav with a chunk before": (wav(1.5, before=b"LIST\x05\x00\x00\x00abcde\x00"), Sound(1.5, 58)),
    "wav as a stream": (wav(2)[:40] + b"\xff\xff\xff\xff" + bytes(48_000), Sound(1.5, 44)),
    "wav without a length": (wav(2)[:40] + bytes(4) + bytes(48_000), Sound(1.5, 44)),
    "flac": (flac(88_200), Sound(2.0, 42)),
    "flac with padding": (flac(22_050, more=100), Sound(0.5, 146)),
    "flac as a stream": (flac(0), Sound(None, 42)),
    "mp3 of one rate": (mp3(FRAME_128K, 417, 40), Sound(40 * 417 * 8 / 128_000, 0)),
    "mp3 of MPEG 2": (mp3(FRAME_64K_MONO, 192, 100), Sound(2.4, 0)),
    "mp3 with a count": (mp3(FRAME_128K, 417, 3, first=XING), Sound(1000 * 1152 / 44_100, 0)),
    "mp3 with silence around": (mp3(FRAME_128K, 417, 3, first=LAME), Sound((1000 * 1152 - 1576) / 44_100, 0)),
    "mp3 with VBRI": (mp3(FRAME_128K, 417, 3, first=VBRI), Sound(500 * 1152 / 44_100, 0)),
    "mp3 behind a tag": (ID3 + bytes(1952) + mp3(FRAME_128K, 417, 40), Sound(40 * 417 * 8 / 128_000, 1962)),
    "mp3 of several rates": (FRAME_128K + bytes(413) + b"\xff\xfb\x50\x00" + bytes(400), Sound(None, 0)),
}


@pytest.mark.parametrize("name", CLIPS)
def test_a_clip_has_its_length(name: str) -> None:
    data, sound = CLIPS[name]
    found = sound_of(data[:4096], len(data))
    assert found is not None and found.begins == sound.begins
    assert found.seconds == (None if sound.seconds is None else pytest.approx(sound.seconds))


@pytest.mark.parametrize("data", [b"", b"OggS" + bytes(60), b"\xff\xf1" + bytes(60), b"<html>", b"RIFF\x00\x00\x00\x00WEBP"])
def test_what_is_no_such_clip_is_none(data: bytes) -> None:
    assert sound_of(data, len(data)) is None


@pytest.mark.parametrize("name", CLIPS)
def test_a_cut_anywhere_harms_nothing(name: str) -> None:
    data, _ = CLIPS[name]
    for end in range(80):
        sound = sound_of(data[:end], len(data))
        assert sound is None or sound.seconds is None or sound.seconds >= 0


@pytest.mark.parametrize("name", CLIPS)
@pytest.mark.parametrize("form", ["wav,", "data:audio/mpeg;base64,"])
def test_the_clips_of_a_row_have_their_lengths(name: str, form: str) -> None:
    data, sound = CLIPS[name]
    seconds = audio_seconds([Media("audio", form + base64.b64encode(data).decode())])
    assert seconds == (None if sound.seconds is None else pytest.approx(sound.seconds))


def test_a_clip_behind_a_tag_with_a_picture_has_its_length() -> None:
    tag, body = b"ID3\x04\x00\x00\x00\x04\x00\x00" + bytes(65_536), mp3(FRAME_128K, 417, 400)
    seconds = audio_seconds([Media("audio", "mp3," + base64.b64encode(tag + body).decode())])
    assert seconds == pytest.approx(len(body) * 8 / 128_000)


def test_a_clip_of_an_unknown_length_makes_the_sum_unknown() -> None:
    known = Media("audio", "wav," + base64.b64encode(wav(1)).decode())
    assert audio_seconds([known, known]) == 2.0
    assert audio_seconds([known, Media("audio", "ogg,T2dnUw==")]) is None
    assert audio_seconds([known, Media("audio", "ogg,T2dnUw==", seconds=3.0)]) == 4.0
