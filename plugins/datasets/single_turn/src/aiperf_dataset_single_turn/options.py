"""Options of a single_turn file, and of all files whose rows may name other files."""

from __future__ import annotations

from aiperf.sdk.options import Options, option
from aiperf_dataset_synthetic.options import CommonOptions


class PathOptions(Options):
    """Options of files whose rows may name other files."""

    allow_paths: bool = option("--allow-paths", default=False, group="Input", place="dataset.allow_paths",
        help="Read media of rows from anywhere, not only from the input file's folder and below it.")


class RowOptions(CommonOptions, PathOptions):
    """Options of files of rows."""


class SingleTurnOptions(RowOptions):
    """No further options."""
