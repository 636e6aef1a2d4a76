"""Answers for the conformance suite.  For tests, and for ``aiperf plugins validate``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from aiperf.sdk.endpoint import Answered
from aiperf.testing import EndpointContract

from aiperf_endpoint_video_generation import VideoGeneration
from aiperf_endpoint_video_generation.options import VideoGenerationOptions

_SUBMITTED = b'{"id":"v1","object":"video","status":"queued","progress":0}'
_WAITS = b'{"id":"v1","object":"video","status":"in_progress","progress":40}'
_ENDED = (
    b'{"id":"v1","object":"video","status":"completed","progress":100,"seconds":"4","size":"640x480","inference_time_s":7.4,'
    b'"peak_memory_mb":20480.5}'
)


class VideoGenerationContract(EndpointContract):
    endpoint = VideoGeneration()
    transcript = (_ENDED,)
    answer = ""
    numbers: ClassVar[dict[str, float] | None] = {"inference_time_s": 7.4, "peak_memory_mb": 20480.5}
    whole = _ENDED
    usage: ClassVar[dict[str, Any] | None] = None
    failure = b'{"id":"v1","status":"failed","error":{"message":"busy","code":"overloaded"}}'
    followed: ClassVar[Sequence[Answered]] = (
        Answered(0, 200, _SUBMITTED, url="http://here/v1/videos"), Answered(1, 200, _WAITS), Answered(2, 200, _WAITS),
        Answered(3, 200, _ENDED),
    )  # fmt: skip


class DownloadContract(VideoGenerationContract):
    """With the film behind the job."""

    endpoint = VideoGeneration(VideoGenerationOptions(download_video_content=True))
    followed: ClassVar[Sequence[Answered]] = (*VideoGenerationContract.followed, Answered(4, 200, b"\x00\x00\x00\x20ftypisom"))
