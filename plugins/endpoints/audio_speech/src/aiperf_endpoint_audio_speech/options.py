"""Options of speech, given as extra inputs."""

from __future__ import annotations

from typing import Literal

from aiperf import Options


class AudioSpeechOptions(Options):
    voice: str = "alloy"
    response_format: Literal["wav", "mp3", "flac", "pcm", "opus", "aac"] = "wav"
    stream_format: Literal["audio", "sse"] | None = None
