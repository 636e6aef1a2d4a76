"""Video generation: the job, its polls, its end, and the film."""

from __future__ import annotations

import msgspec
import pytest
from aiperf import BadResponse, HttpRequest, Turn
from aiperf.sdk.endpoint import Answered, Done, Follow
from aiperf.sdk.errors import ConfigError
from aiperf_endpoint_video_generation import POLL_INTERVAL, VideoGeneration
from aiperf_endpoint_video_generation.contract import DownloadContract, VideoGenerationContract
from aiperf_endpoint_video_generation.options import VideoGenerationOptions

URL = "http://here/api/v1/videos?key=a"
POLL = HttpRequest("http://here/api/v1/videos/v1?key=a", b"", method="GET")


class TestVideoGenerationKeepsTheContract(VideoGenerationContract):
    pass


class TestADownloadKeepsTheContract(DownloadContract):
    pass


def job(status: str | None, **fields: object) -> bytes:
    return msgspec.json.encode({"id": "v1", "status": status, **fields})


def polled(status: str | None, unknown: int = 0) -> Follow | Done:
    return VideoGeneration().follow(Answered(3, 200, job(status), before=POLL, state=unknown, url=POLL.path))


def test_the_form_has_prompt_model_and_extra_inputs() -> None:
    request = VideoGeneration().encode(Turn(("a kite",), model="wan", extra={"seconds": 4, "size": "640x480"}))
    assert request.path == "/v1/videos"
    for field in (b'name="prompt"\r\n\r\na kite', b'name="model"\r\n\r\nwan', b'name="seconds"\r\n\r\n4', b"640x480"):
        assert field in request.body


def test_a_job_is_asked_for_where_it_was_made() -> None:
    step = VideoGeneration().follow(Answered(0, 200, job("queued"), url=URL))
    assert step == Follow(POLL, 0.1, state=0)


@pytest.mark.parametrize("status", ["queued", "in_progress", "processing"])
def test_a_job_that_goes_on_is_asked_again(status: str) -> None:
    assert polled(status, 2) == Follow(POLL, 0.1, state=0)


@pytest.mark.parametrize("status", ["completed", "failed", "cancelled"])
def test_a_job_that_is_over_is_not_asked_again(status: str) -> None:
    assert polled(status) == Done()


def test_an_unknown_status_ends_the_job_with_its_third_time() -> None:
    assert polled("upscaling", 0) == Follow(POLL, 0.1, state=1)
    assert polled(None, 1) == Follow(POLL, 0.1, state=2)
    assert polled("upscaling", 2) == Done()
    with pytest.raises(BadResponse, match="the status 'upscaling', 3 times in a row; known are cancel"):
        VideoGeneration().decode(job("upscaling"))


@pytest.mark.parametrize("page", [b"<html>502</html>", b"null", b'{"status":"\xff"}'])
def test_an_unreadable_answer_is_the_servers_fault(page: bytes) -> None:
    assert VideoGeneration().follow(Answered(1, 200, page, before=POLL, state=0, url=POLL.path)) == Done()
    with pytest.raises(BadResponse, match="video_generation: ") as caught:
        VideoGeneration().decode(page)
    assert caught.value.raw == page


def test_an_answer_without_id_fails_the_request() -> None:
    assert VideoGeneration().follow(Answered(0, 200, b'{"status":"queued"}', url=URL)) == Done()
    with pytest.raises(BadResponse, match="has no id"):
        VideoGeneration().decode(b'{"status":"queued"}')


@pytest.mark.parametrize(("error", "said"), [
    ({"message": "the prompt was refused", "code": "moderation_blocked"}, "the prompt was refused"), ("no GPU", "no GPU"),
    (None, "the job ended with the status 'failed'"),
])  # fmt: skip
def test_a_failed_job_is_an_error_of_its_type(error: object, said: str) -> None:
    with pytest.raises(BadResponse, match=said) as caught:
        VideoGeneration().decode(job("failed", error=error))
    assert (caught.value.code, caught.value.kind) == (500, "VideoGenerationError")


@pytest.mark.parametrize(("url", "film"), [
    (None, "http://here/api/v1/videos/v1/content?key=a"), ("/files/v1.mp4", "http://here/files/v1.mp4"),
    ("http://here/files/v1.mp4", "http://here/files/v1.mp4"), ("http://Here:80/v1.mp4", "http://Here:80/v1.mp4"),
    ("http://here:x/v1.mp4", "http://here/api/v1/videos/v1/content?key=a"),
    ("http://[/v1.mp4", "http://here/api/v1/videos/v1/content?key=a"), ("https://cdn/v1.mp4", "http://here/api/v1/videos/v1/content?key=a"),
])  # fmt: skip
def test_the_film_is_fetched_from_the_same_server(url: str | None, film: str) -> None:
    endpoint = VideoGeneration(VideoGenerationOptions(download_video_content=True))
    step = endpoint.follow(Answered(3, 200, job("completed", url=url), before=POLL, state=0, url=POLL.path))
    assert isinstance(step, Follow) and (step.request.path, step.request.method) == (film, "GET")
    assert (step.keep, step.drain, step.failure, step.after_s) == (True, True, "VideoDownloadError", 0)
    assert endpoint.follow(Answered(4, 200, b"film", before=step.request, state=step.state, url=film)) == Done()


def test_a_film_made_at_once_is_fetched_at_once() -> None:
    endpoint = VideoGeneration(VideoGenerationOptions(download_video_content=True))
    step = endpoint.follow(Answered(0, 200, job("completed"), url=URL))
    assert isinstance(step, Follow) and step.request.path == "http://here/api/v1/videos/v1/content?key=a"


def test_the_interval_is_that_of_the_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(POLL_INTERVAL, "2.5")
    step = VideoGeneration().follow(Answered(0, 200, job("queued"), url=URL))
    assert isinstance(step, Follow) and step.after_s == 2.5
    monkeypatch.setenv(POLL_INTERVAL, "11")
    with pytest.raises(ConfigError, match="it must be a number from 0"):
        VideoGeneration()
