"""Options of video generation."""

from __future__ import annotations

from aiperf import Options, option


class VideoGenerationOptions(Options):
    download_video_content: bool = option(
        "--download-video-content",
        default=False,
        group="Video generation endpoint",
        place="endpoint.download_video_content",
        help="Fetch each film behind its job: its bytes are counted, not kept, and the latency ends with the last.",
    )
