"""The files with the samples of telemetry sources, a line each (:data:`aiperf.sdk.series.Line`).

The names are in the package ``aiperf-companion-telemetry`` and loaded from there; a package that uses them declares it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiperf.doors import door

__all__ = ["SampleWriter", "folds_path", "read_samples", "sample_files", "sample_path"]

__getattr__ = door(__name__, {}, packages=dict.fromkeys(__all__, "aiperf_companion_telemetry.samples"))

if TYPE_CHECKING:
    from aiperf_companion_telemetry.samples import SampleWriter, folds_path, read_samples, sample_files, sample_path
