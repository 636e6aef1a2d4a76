"""Options of pools."""

from __future__ import annotations

from aiperf.sdk.options import option
from aiperf_dataset_single_turn.options import PathOptions
from aiperf_dataset_synthetic.options import CommonOptions


class RandomPoolOptions(CommonOptions, PathOptions):
    prompt_batch_size: int = option("--prompt-batch-size", "--batch-size-text", "--batch-size", "-b", default=1, ge=0,
        group="Prompt and answer length", metavar="INT", cells=True, place="dataset.prompts.batch_size",
        help="Texts in one request, for endpoints that take several.")
