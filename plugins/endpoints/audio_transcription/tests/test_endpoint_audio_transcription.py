"""Transcription: the form, and answers of both dialects, whole and streamed."""

from __future__ import annotations

import base64
import io
import logging
import wave

import pytest
from aiperf import BadDataset, BadResponse, Delta, Media, Turn
from aiperf_endpoint_audio_transcription import AudioTranscription
from aiperf_endpoint_audio_transcription.contract import AudioTranscriptionContract, ChunkedTranscriptionContract
from aiperf_endpoint_audio_transcription.options import AudioTranscriptionOptions

CLIP = Media("audio", "wav,UklGRg==")
SRT = b"1\n00:00:00,000 --> 00:00:01,500\nHello there.\n\n2\n00:00:01,500 --> 00:00:03,000\nHow are you?\n"
VTT = b"WEBVTT\n\n00:00.000 --> 00:01.500\nHello there.\n\n00:01.500 --> 00:03.000\nHow are you?\n"


class TestAudioTranscriptionKeepsTheContract(AudioTranscriptionContract):
    pass


class TestChunksOfVllmKeepTheContract(ChunkedTranscriptionContract):
    pass


def text(*events: bytes, form: str | None = None) -> tuple[str, int]:
    """The text of an answer, and its number of items."""
    reader = AudioTranscription(AudioTranscriptionOptions(response_format=form)).reader()  # type: ignore[arg-type]
    deltas = [*reader.feed(events, [None] * len(events)), reader.close()]
    return "".join(delta.text for delta in deltas if delta), sum(delta.items for delta in deltas if delta)


def test_the_form_asks_for_usage_where_it_counts() -> None:
    turn = Turn(("Transcribe this.",), (CLIP,), model="m", stream=True, server_counts=True, extra={"language": "en"})
    body = AudioTranscription().encode(turn).body
    assert b"Transcribe" not in body and b'name="language"\r\n\r\nen\r\n' in body
    assert b'name="file"; filename="audio.wav"\r\nContent-Type: audio/wav\r\n\r\nRIFF\r\n' in body
    assert b'name="stream"\r\n\r\ntrue' in body and b'name="stream_include_usage"\r\n\r\ntrue' in body
    assert b"response_format" not in body
    assert b"stream" not in AudioTranscription().encode(Turn((), (CLIP,), model="m")).body


@pytest.mark.parametrize(("value", "name", "kind"), [
    ("mp3,SUQz", "audio.mp3", "audio/mpeg"), ("data:audio/mpeg;base64,SUQz", "audio.mp3", "audio/mpeg"),
    ("m4a,AAAA", "audio.m4a", "audio/mp4"), ("mp4,AAAA", "audio.mp4", "audio/mp4"), ("mpga,SUQz", "audio.mpga", "audio/mpeg"),
    ("flac,ZkxhQw==", "audio.flac", "audio/flac"), ("data:audio/x-wav;base64,UklG", "audio.wav", "audio/wav"),
    ("ogg,T2dn", "audio.ogg", "audio/ogg"),
])  # fmt: skip
def test_the_file_has_the_name_and_type_of_its_format(value: str, name: str, kind: str) -> None:
    body = AudioTranscription().encode(Turn((), (Media("audio", value),), model="m")).body
    assert f'filename="{name}"\r\nContent-Type: {kind}\r\n'.encode() in body


def test_the_probe_is_a_clip_of_a_tenth_of_a_second() -> None:
    (media,) = AudioTranscription().probe().media
    with wave.open(io.BytesIO(base64.b64decode(media.value.partition(",")[2]))) as clip:
        assert clip.getnframes() / clip.getframerate() == pytest.approx(0.1)


@pytest.mark.parametrize(("form", "body", "said"), [
    (None, b'{"text":"Hello there."}', "Hello there."),
    ("verbose_json", b'{"task":"transcribe","duration":3.0,"text":"Hello there.","segments":[{"id":0}]}', "Hello there."),
    ("text", b"Hello there.\n", "Hello there."),
    ("srt", SRT, "Hello there.\n\nHow are you?"), ("vtt", VTT, "Hello there.\n\nHow are you?"),
])  # fmt: skip
def test_each_form_of_an_answer_is_its_text(form: str | None, body: bytes, said: str) -> None:
    assert text(body, form=form) == (said, 0)


@pytest.mark.parametrize("form", ["text", "srt"])
@pytest.mark.parametrize("body", [b"<html>502</html>", b" <!DOCTYPE html>", b"\xff\xfe\x00"])
def test_a_page_is_no_transcript(form: str, body: bytes) -> None:
    with pytest.raises(BadResponse):
        text(body, form=form)


def test_an_error_in_place_of_plain_text_keeps_its_words() -> None:
    with pytest.raises(BadResponse, match="no GPU"):
        text(b'{"error":{"message":"no GPU"}}', form="text")


@pytest.mark.parametrize("events", [
    [b'{"text":""}'], [b'{"type":"transcript.text.done","text":""}'],
    [b'{"choices":[{"delta":{"content":""},"finish_reason":"stop"}]}', b"[DONE]"],
])  # fmt: skip
def test_a_clip_without_words_is_an_answer(events: list[bytes]) -> None:
    assert text(*events) == ("", 1)


def test_the_whole_text_at_the_end_counts_where_no_piece_came() -> None:
    assert text(b'{"type":"transcript.text.done","text":"Hello."}') == ("Hello.", 0)


def test_a_stream_that_was_cut_has_no_end_of_its_own() -> None:
    reader = AudioTranscription().reader()
    assert reader.feed([b'{"type":"transcript.text.delta","delta":""}'], [None]) == [Delta()]
    assert reader.close() is None


@pytest.mark.parametrize(("turn", "why"), [
    (Turn(("a",)), "needs one clip"), (Turn((), (CLIP, CLIP)), "2 of them"),
    (Turn((), (CLIP,), extra={"response_format": "srt"}), "read alike"),
    (Turn((), (Media("audio", "wav,UklGR!"),)), "damaged"),
])  # fmt: skip
def test_a_turn_that_cannot_be_sent_is_refused(turn: Turn, why: str) -> None:
    with pytest.raises(BadDataset, match=why):
        AudioTranscription().encode(turn)


def test_a_field_with_a_reserved_name_is_ignored(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        body = AudioTranscription().encode(Turn((), (CLIP,), model="m", extra={"file": "x"})).body
    assert body.count(b'name="file"') == 1 and "'file' is ignored" in caplog.text
