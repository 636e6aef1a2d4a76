"""Images, sound, transcriptions and films: what the server sends, its truth, and its faults."""

from __future__ import annotations

import http.client
import io
import json
import urllib.request
import wave
from base64 import b64decode
from collections.abc import Iterator
from typing import Any
from urllib.error import HTTPError

import pytest
from aiperf.sdk.multipart import FilePart, multipart
from aiperf.sdk.sound import sound_of
from aiperf_command_simulate.testing import Simulator, running


@pytest.fixture(scope="module")
def simulator() -> Iterator[Simulator]:
    with running(decode_ms=0, prefill_us_per_token=0, film_ms=0, film_bytes=3_000_000) as simulator:
        yield simulator


def ask(simulator: Simulator, path: str, body: Any = None, *files: FilePart, form: bool = False, fault: str = "") -> Any:
    """An answer: its body and content type."""
    made = multipart(body, files) if form or files else None
    data = None if body is None else made.body if made is not None else json.dumps(body).encode()
    headers = {"Content-Type": "application/json" if made is None else made.content_type}
    request = urllib.request.Request(simulator.url + path, data, {**headers, **({"X-Simulate": fault} if fault else {})})
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=60) as answer:
        return answer.read(), answer.headers["Content-Type"]


def events(body: bytes) -> list[dict[str, Any]]:
    lines = [line.partition("data: ")[2] for line in body.decode().splitlines() if line.startswith("data: ")]
    return [json.loads(line) for line in lines if line != "[DONE]"]


def clip(seconds: float) -> bytes:
    file = io.BytesIO()
    with wave.open(file, "wb") as out:
        out.setparams((1, 2, 8000, 0, "NONE", "not compressed"))
        out.writeframes(bytes(round(seconds * 16_000)))
    return file.getvalue()


def refusal(simulator: Simulator, path: str, body: Any, *files: FilePart, form: bool = False) -> str:
    with pytest.raises(HTTPError) as caught:
        ask(simulator, path, body, *files, form=form)
    assert caught.value.code == 400
    return str(json.load(caught.value)["error"]["message"])


def test_an_image_is_a_picture_of_the_size_that_was_asked_for(simulator: Simulator) -> None:
    body, _ = ask(simulator, "/v1/images/generations", {"prompt": "a kite", "n": 2, "size": "64x48"})
    answer = json.loads(body)
    first, second = (b64decode(each["b64_json"]) for each in answer["data"])
    assert first[:8] == b"\x89PNG\r\n\x1a\n" and first[16:24] == bytes((0, 0, 0, 64, 0, 0, 0, 48)) and first != second
    assert answer["usage"]["output_tokens"] == 8


def test_a_streamed_image_has_partial_ones_before(simulator: Simulator) -> None:
    wanted = {"prompt": "a kite", "stream": True, "partial_images": 2}
    body, _ = ask(simulator, "/v1/images/generations", wanted)
    kinds = [(each["type"], each.get("partial_image_index")) for each in events(body)]
    partial = "image_generation.partial_image"
    assert kinds == [(partial, 0), (partial, 1), ("image_generation.completed", None)]


def test_an_image_at_a_url_can_be_fetched(simulator: Simulator) -> None:
    body, _ = ask(simulator, "/v1/images/generations", {"prompt": "a kite", "response_format": "url"})
    picture, kind = ask(simulator, json.loads(body)["data"][0]["url"].removeprefix(simulator.url))
    assert kind == "image/png" and picture.startswith(b"\x89PNG")


def test_an_edit_is_a_form_with_images(simulator: Simulator) -> None:
    picture = FilePart("image[]", "image.png", b"\x89PNG\r\n\r\n--x\r\n", "image/png")
    body, _ = ask(simulator, "/v1/images/edits", {"prompt": "night", "stream": True}, picture, picture)
    assert [each["type"] for each in events(body)] == ["image_edit.completed"]
    assert "image is missing" in refusal(simulator, "/v1/images/edits", {"prompt": "night"}, form=True)


@pytest.mark.parametrize(("form", "kind"), [("wav", "audio/wav"), ("mp3", "audio/mpeg"), ("pcm", "audio/pcm")])
def test_speech_is_as_long_as_its_text(simulator: Simulator, form: str, kind: str) -> None:
    body, told = ask(simulator, "/v1/audio/speech", {"input": "x" * 72, "voice": "alloy", "response_format": form})
    sound = sound_of(body[:4096], len(body))
    seconds = len(body) / 48_000 if sound is None else sound.seconds
    assert (told, seconds) == (kind, pytest.approx(4.8))


def test_speech_may_come_as_events(simulator: Simulator) -> None:
    wanted = {"input": "x" * 72, "voice": "alloy", "response_format": "wav", "stream_format": "sse"}
    *pieces, done = events(ask(simulator, "/v1/audio/speech", wanted)[0])
    assert len(pieces) == 20 and done["usage"]["output_tokens"] == 20
    data = b"".join(b64decode(each["audio"]) for each in pieces)
    assert sound_of(data, len(data)).seconds == pytest.approx(4.8)  # type: ignore[union-attr]


def test_a_transcript_is_as_long_as_its_clip(simulator: Simulator) -> None:
    file, path = FilePart("file", "clip.wav", clip(4), "audio/wav"), "/v1/audio/transcriptions"
    answer = json.loads(ask(simulator, path, {}, file)[0])
    assert len(answer["text"].split()) == answer["usage"]["output_tokens"] == 10
    whole = json.loads(ask(simulator, path, {"response_format": "verbose_json"}, file)[0])
    assert whole["duration"] == 4 and whole["segments"][0]["text"] == whole["text"]
    subtitles, kind = ask(simulator, path, {"response_format": "srt"}, file)
    assert subtitles.startswith(b"1\n00:00:00,000 --> 00:00:04,000\n") and kind.startswith("text/plain")
    assert ask(simulator, path, {"response_format": "vtt"}, file)[0].startswith(b"WEBVTT\n\n00:00:00.000 --> 00:00:04.000\n")
    assert "file is missing" in refusal(simulator, path, {"model": "m"}, form=True)


def test_a_transcript_streams_in_both_dialects(simulator: Simulator) -> None:
    file, path = FilePart("file", "clip.wav", clip(2), "audio/wav"), "/v1/audio/transcriptions"
    *deltas, done = events(ask(simulator, path, {"stream": True}, file)[0])
    assert [each["type"] for each in deltas] == ["transcript.text.delta"] * 5
    assert done["text"] == "".join(each["delta"] for each in deltas) and done["usage"]["output_tokens"] == 5
    *chunks, usage = events(ask(simulator, path, {"stream": True, "stream_include_usage": True}, file)[0])
    assert [each["object"] for each in chunks] == ["transcription.chunk"] * 5
    assert (usage["choices"], usage["usage"]["completion_tokens"]) == ([], 5)


def test_a_job_ends_with_a_film(simulator: Simulator) -> None:
    job = json.loads(ask(simulator, "/v1/videos", {"prompt": "a kite", "seconds": 4}, form=True)[0])
    state = json.loads(ask(simulator, f"/v1/videos/{job['id']}")[0])
    assert (state["status"], state["seconds"], state["inference_time_s"]) == ("completed", "4", 0)
    film, kind = ask(simulator, f"/v1/videos/{job['id']}/content")
    assert len(film) == 3_000_000 and film[4:8] == b"ftyp" and kind == "video/mp4"
    posted, polled, fetched = simulator.truth()["requests"][-3:]
    assert posted["job_ends_mono_ns"] <= polled["received_mono_ns"]
    assert [row["outcome"] for row in (posted, polled, fetched)] == ["completed"] * 3
    assert fetched["first_mono_ns"] <= fetched["last_mono_ns"] <= fetched["ended_mono_ns"]


@pytest.mark.parametrize(("fault", "status"), [("job=failed", "failed"), ("job=upscaling", "upscaling")])
def test_a_job_may_end_otherwise(simulator: Simulator, fault: str, status: str) -> None:
    job = json.loads(ask(simulator, "/v1/videos", {"prompt": "a kite"}, form=True, fault=fault)[0])
    state = json.loads(ask(simulator, f"/v1/videos/{job['id']}")[0])
    assert state["status"] == status and (state["error"] is not None) == (status == "failed")


@pytest.mark.parametrize(("fault", "place"), [("job=lost", ""), ("film=missing", "/content")])
def test_a_job_or_its_film_may_be_lost(simulator: Simulator, fault: str, place: str) -> None:
    job = json.loads(ask(simulator, "/v1/videos", {"prompt": "a kite"}, form=True, fault=fault)[0])
    with pytest.raises(HTTPError, match="404"):
        ask(simulator, f"/v1/videos/{job['id']}{place}")


def test_a_film_may_be_cut(simulator: Simulator) -> None:
    job = json.loads(ask(simulator, "/v1/videos", {"prompt": "a kite"}, form=True, fault="film=cut")[0])
    with pytest.raises(http.client.IncompleteRead) as caught:
        ask(simulator, f"/v1/videos/{job['id']}/content")
    assert len(caught.value.partial) == 1_500_000
    assert simulator.truth()["requests"][-1]["outcome"] == "cut"


@pytest.mark.parametrize(("path", "body", "why"), [
    ("/v1/images/generations", {"prompt": "a", "size": "big"}, "size is 'big'"),
    ("/v1/images/generations", {"prompt": "a", "n": 11}, "n is 11"),
    ("/v1/images/generations", {"prompt": "a", "response_format": "gif"}, "response_format is 'gif'"),
    ("/v1/audio/speech", {"input": "", "voice": "a"}, "must not be empty"),
    ("/v1/audio/speech", {"input": "a", "voice": "a", "response_format": "opus"}, "known are wav, pcm, mp3"),
    ("/v1/videos", {"model": "m"}, "prompt is missing"),
])  # fmt: skip
def test_what_cannot_be_made_is_said(simulator: Simulator, path: str, body: Any, why: str) -> None:
    assert why in refusal(simulator, path, body)


def test_faults_of_chats_are_those_of_media(simulator: Simulator) -> None:
    with pytest.raises(HTTPError, match="503"):
        ask(simulator, "/v1/videos", {"prompt": "a"}, form=True, fault="fail=503")
    with pytest.raises(http.client.IncompleteRead):
        ask(simulator, "/v1/audio/speech", {"input": "x" * 72, "voice": "a", "response_format": "pcm"}, fault="cut=2")
    body, _ = ask(simulator, "/v1/images/generations", {"prompt": "a"}, fault="items=3")
    assert len(json.loads(body)["data"]) == 3


def test_a_head_request_for_a_film_has_no_body(simulator: Simulator) -> None:
    job = json.loads(ask(simulator, "/v1/videos", {"prompt": "a kite"}, form=True)[0])
    connection = http.client.HTTPConnection(simulator.url.removeprefix("http://"), timeout=60)
    connection.request("HEAD", f"/v1/videos/{job['id']}/content")
    answer = connection.getresponse()
    assert (answer.status, answer.headers["Content-Length"], answer.read()) == (200, "3000000", b"")
    connection.request("GET", f"/v1/videos/{job['id']}")
    assert json.load(connection.getresponse())["status"] == "completed"
    connection.close()


def test_a_field_of_a_form_that_is_no_number_is_refused(simulator: Simulator) -> None:
    picture = FilePart("image", "image.png", b"\x89PNG", "image/png")
    said = refusal(simulator, "/v1/images/edits", {"prompt": "a", "partial_images": "many"}, picture)
    assert "partial_images is 'many'; a whole number from 0 to 3" in said
