"""Pictures, sound and films in whole runs, judged by the bodies that the simulator received."""

from __future__ import annotations

import base64
import io
import json
import wave
from collections import Counter
from collections.abc import Iterator
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import pytest
from aiperf import DatasetContext
from aiperf.rundir.store import Store
from aiperf.rundir.store_writer import StoreWriter
from aiperf_command_simulate.testing import Simulator, running
from aiperf_dataset_synthetic.dataset import Synthetic
from aiperf_dataset_synthetic.options import SyntheticOptions
from msgspec.structs import replace
from PIL import Image
from program import Done, Program


@pytest.fixture(scope="module")
def server() -> Iterator[Simulator]:
    with running(truth_bodies=True, first_token_ms=5, decode_ms=1) as simulator:
        yield simulator


def run(server: Simulator, folder: Path, words: str) -> tuple[Done, list[dict[str, Any]]]:
    """A run with these words, and the bodies that the server received, in order."""
    server.reset()
    done = Program(folder)(
        "profile", "--url", server.url, "--tokenizer", "builtin", "--ui", "none", "--random-seed", 3, "--isl", 20, "--osl", 4,
        "--concurrency", 2, *words.split(),
    )  # fmt: skip
    assert done.code == 0, done.err
    rows = sorted(server.truth()["requests"], key=lambda row: int(row["received_mono_ns"]))
    assert {(row["status"], row["outcome"]) for row in rows} == {(200, "completed")}
    return done, [json.loads(row["body"]) for row in rows]


def parts(body: dict[str, Any], kind: str) -> list[Any]:
    contents = [message["content"] for message in body["messages"] if not isinstance(message["content"], str)]
    return [part[kind] for content in contents for part in content if part["type"] == kind]


def picture(url: str) -> Image.Image:
    head, _, data = url.partition(",")
    image = Image.open(io.BytesIO(base64.b64decode(data, validate=True)))
    image.load()
    assert head == f"data:image/{(image.format or '').lower()};base64"
    return image


def test_each_chat_has_a_picture_of_its_entry(server: Simulator, tmp_path: Path) -> None:
    words = "--model m --model n --image-width-mean 512 --image-height-mean 512 --num-dataset-entries 6 --request-count 12"
    done, bodies = run(server, tmp_path, words)
    urls = [part["url"] for body in bodies for part in parts(body, "image_url")]
    assert [len(parts(body, "text")) for body in bodies] == [1] * 12
    assert len(urls) == 12
    assert len(set(urls)) == 6
    assert {(picture(url).format, picture(url).size) for url in urls} == {("JPEG", (512, 512))}
    by_text: dict[str, set[str]] = {}
    for body in bodies:
        text, image = body["messages"][0]["content"]
        by_text.setdefault(text["text"], set()).add(image["image_url"]["url"])
    assert [len(images) for images in by_text.values()] == [1] * 6, "an entry keeps its picture"
    encoded_bytes = sum(len(base64.b64decode(url.partition(",")[2])) for url in set(urls))
    stored_bytes = sum(path.stat().st_size for path in (done.artifacts / "journal").glob("dataset.*"))
    assert stored_bytes <= 1.4 * encoded_bytes, "stored once for both models"
    assert done.json()["image_throughput"]["avg"] > 0
    records = done.lines("profile_export.jsonl")
    assert [record["metrics"]["num_images"]["value"] for record in records] == [1] * 12
    assert {record["metrics"]["input_sequence_length"]["value"] for record in records} == {20}


def test_each_chat_has_ten_seconds_of_sound(server: Simulator, tmp_path: Path) -> None:
    done, bodies = run(server, tmp_path, "--model m --audio-length-mean 10 --num-dataset-entries 4 --request-count 4")
    (clips,) = zip(*(parts(body, "input_audio") for body in bodies), strict=True)
    assert len({clip["data"] for clip in clips}) == 4
    for clip in clips:
        assert clip["format"] == "wav"
        with wave.open(io.BytesIO(base64.b64decode(clip["data"], validate=True))) as sound:
            assert (sound.getframerate(), sound.getnframes()) == (16_000, 160_000)
            assert (sound.getsampwidth(), sound.getnchannels()) == (2, 1)
    records = done.lines("profile_export.jsonl")
    assert [record["metrics"]["audio_duration"]["value"] for record in records] == [10.0] * 4
    for record in records:
        latency_s = record["metrics"]["request_latency"]["value"] / 1000
        assert record["metrics"]["rtfx"]["value"] == pytest.approx(10 / latency_s)
    assert "rtfx" in done.json()


def test_later_turns_send_the_media_of_earlier_ones_again(server: Simulator, tmp_path: Path) -> None:
    words = (
        "--model m --image-width-mean 40 --image-height-mean 30 --image-format random --image-batch-size 2"
        " --audio-batch-size 1 --audio-length-mean 0.5 --session-turns-mean 2 --num-sessions 3"
    )
    done, bodies = run(server, tmp_path, words)
    firsts = {body["messages"][0]["content"][0]["text"]: body for body in bodies if len(body["messages"]) == 1}
    seconds = [body for body in bodies if len(body["messages"]) == 3]
    assert (len(firsts), len(seconds)) == (3, 3)
    for body in seconds:
        assert body["messages"][0] == firsts[body["messages"][0]["content"][0]["text"]]["messages"][0]
        assert [len(parts(body, kind)) for kind in ("image_url", "input_audio")] == [4, 2]
        assert len({part["url"] for part in parts(body, "image_url")}) == 4
        assert {picture(part["url"]).size for part in parts(body, "image_url")} == {(40, 30)}
    counts = [record["metrics"]["num_images"]["value"] for record in done.lines("profile_export.jsonl")]
    assert sorted(counts) == [2, 2, 2, 4, 4, 4]


def test_pictures_alone_go_where_no_text_is_taken(server: Simulator, tmp_path: Path) -> None:
    server.reset()
    done = Program(tmp_path)(
        "profile", "--url", server.url, "--model", "m", "--endpoint-type", "image_retrieval", "--ui", "none",
        "--image-width-mean", 24, "--image-height-mean", 16, "--image-format", "png", "--image-batch-size", 3,
        "--request-count", 2, "--num-dataset-entries", 2,
    )  # fmt: skip
    assert done.code == 0, done.err
    bodies = [json.loads(row["body"]) for row in server.truth()["requests"]]
    pictures = [picture(item["url"]) for body in bodies for item in body["input"]]
    assert [(image.format, image.size) for image in pictures] == [("PNG", (24, 16))] * 6


def test_films_reach_the_server_whole(server: Simulator, tmp_path: Path) -> None:
    av = pytest.importorskip("av")
    words = "--model m --video-width 64 --video-height 48 --video-fps 5 --num-dataset-entries 2 --request-count 2"
    _, bodies = run(server, tmp_path, words)
    (films,) = zip(*(parts(body, "video_url") for body in bodies), strict=True)
    assert len({film["url"] for film in films}) == 2
    for film in films:
        head, _, data = film["url"].partition(",")
        assert head == "data:video/webm;base64"
        with av.open(io.BytesIO(base64.b64decode(data, validate=True))) as opened:
            assert sum(1 for _ in opened.decode(video=0)) == 5


def taking(kind: str) -> list[str]:
    """The installed endpoint types that take media of the kind in messages of their own form."""
    found = {point.name: point.load() for point in entry_points(group="aiperf.endpoints")}
    return sorted(
        name for name, endpoint in found.items() if kind in endpoint.capabilities.media_in and name not in ("raw", "template")
    )


@pytest.mark.parametrize(("kind", "options"), [
    ("image", {"image_width_mean": 40.0, "image_height_mean": 40.0}), ("audio", {"audio_length_mean": 0.1}),
])  # fmt: skip
def test_every_type_that_takes_media_sends_them_whole(kind: str, options: dict[str, Any], tmp_path: Path) -> None:
    """And the stored body is small: the medium stands apart from it."""
    types = taking(kind)
    assert "chat" in types
    for name in types:
        (point,) = entry_points(group="aiperf.endpoints", name=name)
        endpoint = point.load()()
        data = Synthetic(SyntheticOptions(isl=0, **options), DatasetContext(1, 5, True, None, endpoint.capabilities))
        (conversation,) = data
        (medium,) = conversation.turns[0].media
        forms, encoded = endpoint.capabilities.forms, medium.value.partition(",")[2]
        texts = ("night",) if endpoint.capabilities.tokenizes_input and forms else ()
        request = endpoint.encode(replace(conversation.turns[0], model="m", texts=texts))
        assert (base64.b64decode(encoded) if forms else encoded.encode()) in request.body, name
        with StoreWriter(tmp_path) as writer:
            writer.add(conversation, [[request]])
        assert Store(tmp_path).body(0, 0) == request.body, name
        if not forms:  # which have files as they are, not as base64
            assert (tmp_path / "dataset.bodies").stat().st_size < 600, name


def test_each_way_a_job_can_fail_has_its_error(tmp_path: Path) -> None:
    shares = ("job=failed", "job=lost", "job=upscaling", "film=cut", "film=missing")
    with running(film_ms=150, film_bytes=400_000, decode_ms=0, faults=[f"{each}@0.2" for each in shares], seed=3) as simulator:
        done = Program(tmp_path)(
            "profile", "--url", simulator.url, "--model", "m", "--endpoint-type", "video_generation", "--ui", "none",
            "--tokenizer", "builtin", "--isl", 8, "--concurrency", 40, "--request-count", 40,
            "--download-video-content", "--failed-request-threshold", 1,
        )  # fmt: skip
        rows = [row for row in simulator.truth()["requests"] if row["path"] == "/v1/videos"]
    assert done.code == 0, done.err
    kinds = {
        "failed": "VideoGenerationError", "lost": "Not Found", "upscaling": "InvalidInferenceResultError",
        "cut": "VideoDownloadError", "missing": "VideoDownloadError", "": "",
    }  # fmt: skip
    faults = [row["fault"] or {} for row in rows]
    wanted = Counter(kinds[fault.get("job") or fault.get("film") or ""] for fault in faults)
    records = done.lines("profile_export.jsonl")
    assert Counter((record.get("error") or {"type": ""})["type"] for record in records) == wanted
    assert len(wanted) == 5, "each way came"
    codes = {record["error"]["type"]: record["error"].get("code") for record in records if record.get("error")}
    assert (codes["VideoGenerationError"], codes["Not Found"]) == (500, 404)
    (lost,) = (warning for warning in done.json()["warnings"] if "(404)" in warning)
    assert "doesn't find a job that it has begun, or its file" in lost
    assert done.json()["video_inference_time"]["avg"] == 150
    assert "known by polling" in " ".join(done.out.split())
