"""Options of transcription, given as extra inputs."""

from __future__ import annotations

from typing import Literal

from aiperf import Options


class AudioTranscriptionOptions(Options):
    response_format: Literal["json", "verbose_json", "text", "srt", "vtt"] | None = None
