"""Options of the translation of a sweep, and of the pictures of finished runs."""

from __future__ import annotations

from pathlib import Path

from aiperf import Options, option
from aiperf.sdk.options import Word

TYPES = {
    "batch_size": "--prompt-batch-size", "concurrency": "--concurrency", "num_dataset_entries": "--num-dataset-entries",
    "input_sequence_length": "--isl", "request_rate": "--request-rate",
}  # fmt: skip
"""By the word for ``--sweep-type``, the option of ``aiperf profile`` that has the values."""


class AnalyzeOptions(Options):
    sweep_type: Word = option("--sweep-type", default="concurrency", group="Sweep", choices=tuple(TYPES), metavar="WORD",
        help="What differs between runs.")
    sweep_range: str | None = option("--sweep-range", group="Sweep", metavar="MIN:MAX[:STEP]",
        help="Its values: powers of two from MIN to MAX, or steps.")
    sweep_list: list[str] = option("--sweep-list", default=[], arity="many", group="Sweep", metavar="VALUE",
        help="Its values, one by one.")

    def problems(self, typed: dict[str, str]) -> list[str]:
        if self.sweep_range is not None and self.sweep_list:
            return ["--sweep-range and --sweep-list exclude each other: both say which values\ndrop one of them"]
        return []


class SwimLaneOptions(Options):
    out: Path | None = option("--out", "-o", metavar="FILE", shown="swim_lane.svg in the directory",
        help="The picture, as .svg, or as a page that zooms, .html.")
    concurrency: int | None = option("--concurrency", "-c", metavar="N", ge=1, help="A line at so many sessions.")
    ramp: float | None = option("--ramp", metavar="SECONDS", gt=0, shown="as the run's summary says",
        help="When the ramp of sessions was done.")
    html: bool = option("--html", default=False, help="Write the page that zooms, too.")


class TurnMessagesOptions(Options):
    out: Path | None = option("--out", "-o", metavar="FILE", shown="turn_messages.html in the directory", help="The page.")
    limit_conversations: int = option("--limit-conversations", "-n", default=40, ge=1, metavar="N",
        help="Conversations on the page: roots first, then by their first request.")
    max_turns: int = option("--max-turns", default=60, ge=1, metavar="N", help="Turns of a conversation on the page.")
    content_cap: int = option("--content-cap", default=8000, ge=1, metavar="CHARACTERS",
        help="Characters of a message on the page.")
