"""OpenAI's video generation: a prompt out as a form, a job that is polled, and its film."""

from __future__ import annotations

from contextlib import suppress
from typing import Any
from urllib.parse import quote, urljoin

import msgspec
from aiperf import BadResponse, Capabilities, Delta, Endpoint, HttpRequest, Turn, Unit
from aiperf.sdk.endpoint import Answered, Done, Follow, decoded, in_band_error
from aiperf.sdk.environment import number
from aiperf.sdk.fetch import origin
from aiperf.sdk.metric import PluginUnit
from aiperf_dialects.forms import FormFields
from aiperf_dialects.turns import one_text
from msgspec import Struct

from aiperf_endpoint_video_generation.options import VideoGenerationOptions

POLL_INTERVAL = "AIPERF_HTTP_VIDEO_POLL_INTERVAL"
_WAITING = frozenset(("queued", "in_progress", "pending", "processing", "running", "starting"))
_FAILED = frozenset(("failed", "cancelled", "canceled", "expired", "error"))
_DONE = frozenset(("completed", "succeeded"))
_MOST_UNKNOWN = 3
"""After so many unknown statuses in a row a job is given up."""
_FILM = "film"
"""State behind the download."""


class _Job(Struct):
    """What a job says of itself."""

    id: str | None = None
    status: str | None = None
    url: str | None = None
    usage: Any = None
    error: Any = None
    inference_time_s: Any = None
    peak_memory_mb: Any = None


_read = msgspec.json.Decoder(_Job).decode


class VideoGeneration(Endpoint[VideoGenerationOptions]):
    """``POST /v1/videos`` makes a job, and ``GET /v1/videos/ID`` is asked until it is over; the last status is the answer.

    With ``--download-video-content`` the film follows, of which nothing is kept: from the job's ``url`` where that is of
    the same server, else from ``GET /v1/videos/ID/content``.
    """

    capabilities = Capabilities(
        path="/v1/videos", tokenizes_input=True, media_out=("video",), follows=True, forms=True,
        title="Video Generation Metrics",
    )  # fmt: skip
    numbers = {"inference_time_s": Unit.SECONDS, "peak_memory_mb": PluginUnit("MB", "size", 1024.0**2)}

    def __init__(self, options: VideoGenerationOptions | None = None) -> None:
        super().__init__(options or VideoGenerationOptions())
        self._form = FormFields("video_generation", self.capabilities.path, ("prompt",))
        self._poll_s = number(POLL_INTERVAL, 0.001, 10, 0.1)

    def encode(self, turn: Turn) -> HttpRequest:
        """The request for a turn.

        Raises:
            BadDataset: The turn has another number of texts than one.
        """
        return self._form.request(turn, {"prompt": one_text("video_generation", turn), "model": turn.model})

    def follow(self, answer: Answered) -> Follow | Done:
        if answer.state == _FILM:
            return Done()
        try:
            job = _read(answer.body)
        except (msgspec.DecodeError, UnicodeDecodeError):
            return Done()  # ``decode`` says why the answer can't be read
        if job.status in _DONE and self.options.download_video_content:
            film = HttpRequest(_film_url(answer, job), b"", {"Accept": "*/*"}, method="GET")
            return Follow(film, keep=True, drain=True, failure="VideoDownloadError", state=_FILM)
        if job.status in _DONE or job.status in _FAILED:
            return Done()
        poll, unknown = answer.before, 0
        if poll is None:
            if not job.id:
                return Done()
            poll = HttpRequest(_below(answer.url, quote(job.id, safe="")), b"", method="GET")
        elif job.status not in _WAITING:
            unknown = answer.state + 1
            if unknown == _MOST_UNKNOWN:
                return Done()
        return Follow(poll, self._poll_s, state=unknown)

    def decode(self, event: bytes) -> Delta | None:
        """What the job says at its end, which must be its success."""
        if not event:
            return None
        job = decoded("video_generation", _read, event)
        if job.status in _DONE:
            numbers = {"inference_time_s": job.inference_time_s, "peak_memory_mb": job.peak_memory_mb}
            known = {name: value for name, value in numbers.items() if value is not None}
            return Delta(usage=job.usage if isinstance(job.usage, dict) else None, items=1, extra=known or None)
        if job.status in _FAILED:
            raise BadResponse(_reason(job), raw=event, code=500, kind="VideoGenerationError")
        if job.id is None:
            raise in_band_error(event) or BadResponse(
                "video_generation: the answer to a request for a film has no id, so no status can be asked for", raw=event
            )
        statuses = ", ".join(sorted(_WAITING | _FAILED | _DONE))
        raise BadResponse(
            f"video_generation: the job has the status {job.status!r}, {_MOST_UNKNOWN} times in a row; known are {statuses}",
            raw=event,
        )


def _film_url(answer: Answered, job: _Job) -> str:
    """Where the film of a job is."""
    with suppress(ValueError):  # the job's url is none
        if job.url and origin(url := urljoin(answer.url, job.url)) == origin(answer.url):
            return url
    # A server that makes films at once answers the first request so.
    place = answer.url if answer.before is not None else _below(answer.url, quote(job.id or "", safe=""))
    return _below(place, "content")


def _below(url: str, name: str) -> str:
    """The URL of *name* below *url*, with the same query."""
    head, mark, query = url.partition("?")
    return f"{head.rstrip('/')}/{name}{mark}{query}"


def _reason(job: _Job) -> str:
    """Why a job failed, as the server says it."""
    error = job.error
    said = error.get("message") or error.get("code") if isinstance(error, dict) else error
    return str(said) if said else f"the job ended with the status {job.status!r}"
