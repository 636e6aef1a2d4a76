"""Options of the translation of a sweep."""

from __future__ import annotations

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
