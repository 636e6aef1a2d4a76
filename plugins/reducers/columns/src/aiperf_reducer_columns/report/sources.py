"""Summaries of a run's telemetry sources, which the plugin for series makes from their samples and folds."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

from aiperf.parts.loading import isolated, load
from aiperf.parts.samples import folds_path, read_samples, sample_files
from aiperf.sdk.plan import PluginPlan
from aiperf.sdk.series import Window
from aiperf.sdk.summary import SourceSummary

_NO_SERIES = "telemetry has no statistics: no plugin of the category series is in use; aiperf-series-by-time is one"


def summaries(
    journal: Path, plugins: PluginPlan, windows: Sequence[Window], slices: Sequence[Window], report: Callable[[str], object]
) -> Iterator[SourceSummary]:
    """A summary of each source with samples.  Windows, and slices, don't overlap each other.  *report* gets failures."""
    files, ref = sample_files(journal), plugins.series
    if files and ref is None:
        report(_NO_SERIES)
    if not files or ref is None:
        return
    with isolated(ref, report):
        series = load(ref)(plugins.options_of(ref))
        for path in files:
            made = series.summary(folds_path(path), partial(read_samples, path), windows, slices)
            if made is not None:
                yield made
