"""The files with the samples of telemetry sources, a line each (:data:`aiperf.sdk.series.Line`)."""

from __future__ import annotations

from aiperf.rundir.samples import SampleWriter, folds_path, read_samples, sample_files, sample_path

__all__ = ["SampleWriter", "folds_path", "read_samples", "sample_files", "sample_path"]
