"""Speech: what goes out, how long the sound is, and what is no sound."""

from __future__ import annotations

import io
import wave

import msgspec
import pytest
from aiperf import BadDataset, BadResponse, Turn
from aiperf_endpoint_audio_speech import AudioSpeech
from aiperf_endpoint_audio_speech.contract import AudioSpeechContract
from aiperf_endpoint_audio_speech.options import AudioSpeechOptions


class TestAudioSpeechKeepsTheContract(AudioSpeechContract):
    pass


def clip(seconds: float) -> bytes:
    file = io.BytesIO()
    with wave.open(file, "wb") as out:
        out.setparams((1, 2, 8000, 0, "NONE", "not compressed"))
        out.writeframes(bytes(round(seconds * 16000)))
    return file.getvalue()


def test_the_body_is_exactly_this_and_the_answer_is_drained() -> None:
    request = AudioSpeech().encode(Turn(("Hello.",), model="tts", extra={"speed": 1.5}))
    assert msgspec.json.decode(request.body) == {
        "model": "tts", "input": "Hello.", "voice": "alloy", "response_format": "wav", "speed": 1.5,
    }  # fmt: skip
    assert (request.path, request.drain, request.headers) == ("/v1/audio/speech", True, {"Accept": "*/*"})


def test_events_are_read_and_not_drained() -> None:
    endpoint = AudioSpeech(AudioSpeechOptions(stream_format="sse", voice="nova", response_format="pcm"))
    request = endpoint.encode(Turn(("Hello.",), model="tts"))
    assert not request.drain and request.headers == {"Accept": "text/event-stream"}
    assert msgspec.json.decode(request.body)["stream_format"] == "sse"
    reader = endpoint.reader()
    reader.feed([b'{"type":"speech.audio.delta","audio":"' + b"AAAA" * 16000 + b'"}'], [None])
    last = reader.close()
    assert last is not None and last.extra == {"made_sound_s": 1.0}


def test_a_clip_has_its_seconds_and_begins_behind_its_header() -> None:
    whole = clip(2.5)
    said = AudioSpeech().drained(whole[:4096], len(whole))
    assert said.begins == 44 and said.delta is not None and said.delta.extra == {"made_sound_s": 2.5}


@pytest.mark.parametrize(("form", "start", "size", "seconds"), [
    ("pcm", bytes(100), 96_000, 2.0), ("mp3", b"\xff\xfb\x90\x00" + bytes(413) + b"\xff\xfb\x90\x00", 32_000, 2.0),
    ("opus", b"OggS" + bytes(60), 9000, None), ("aac", b"\xff\xf1" + bytes(60), 9000, None),
])  # fmt: skip
def test_the_length_of_other_formats(form: str, start: bytes, size: int, seconds: float | None) -> None:
    options = AudioSpeechOptions(response_format=form)  # type: ignore[arg-type]
    said = AudioSpeech(options).drained(start, size)
    assert said.delta is not None and said.delta.items == 1
    assert (said.delta.extra or {}).get("made_sound_s") == seconds


def test_an_empty_answer_has_no_content() -> None:
    assert AudioSpeech().drained(b"", 0).delta is None


@pytest.mark.parametrize(("start", "why"), [
    (b"<html>502</html>", "a text, not sound"), (b'{"error":{"message":"no such voice"}}', "no such voice"),
    (clip(0), "a header without sound"),
])  # fmt: skip
def test_what_is_no_sound_fails_the_request(start: bytes, why: str) -> None:
    with pytest.raises(BadResponse, match=why):
        AudioSpeech().drained(start, len(start))


def test_damaged_base64_fails_the_request() -> None:
    with pytest.raises(BadResponse, match="the base64 of the sound is damaged"):
        AudioSpeech().decode(b'{"type":"speech.audio.delta","audio":"AAA!"}')


@pytest.mark.parametrize(("turn", "why"), [
    (Turn(), "needs one text"), (Turn(("a", "b")), "2 texts"), (Turn(("a",), extra={"stream_format": "sse"}), "read alike"),
])  # fmt: skip
def test_a_turn_that_cannot_be_sent_is_refused(turn: Turn, why: str) -> None:
    with pytest.raises(BadDataset, match=why):
        AudioSpeech().encode(turn)
