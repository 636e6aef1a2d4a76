"""The files with the samples of telemetry sources, a line each (:data:`aiperf.sdk.series.Line`).

The names come from a room above this one, so they are loaded when a plugin uses them, as in the door ``aiperf`` itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiperf.doors import door

_WHERE = {"telemetry.samples": "SampleWriter folds_path read_samples sample_files sample_path"}

__all__ = ["SampleWriter", "folds_path", "read_samples", "sample_files", "sample_path"]

__getattr__ = door(__name__, _WHERE)

if TYPE_CHECKING:
    from aiperf.telemetry.samples import SampleWriter, folds_path, read_samples, sample_files, sample_path
