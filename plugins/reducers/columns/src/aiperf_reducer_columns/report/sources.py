"""Summaries of a run's telemetry sources, which the plugin for series makes from their samples and folds."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

from aiperf.parts.loading import isolated, load
from aiperf.parts.samples import folds_path, read_samples, sample_files
from aiperf.sdk.plan import PluginPlan
from aiperf.sdk.series import Window
from aiperf.sdk.summary import SourceSummary, TargetSummary

_LATE_S = 1.0
"""A source that the user didn't ask for may be so late without a warning."""
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


def lacking(sources: Sequence[SourceSummary], phases: Mapping[int, str], given: Collection[str] = ()) -> Iterator[str]:
    """Sentences on telemetry that came late, ended early, or went on counting behind a phase.  *phases*: their names.

    given: plugins that the user asked for, as ``category:name``; the load waits for no other, and most are a bit late.
    """
    for source in sources:
        patience_s = 0.0 if f"telemetry:{source.name}" in given else _LATE_S
        for target in source.targets or (TargetSummary("", source.interval_s, partial=source.partial),):
            who = f"telemetry {source.name} of {source.distribution}{f' ({target.name})' if target.name else ''}"
            for index, late_s in target.late.items():
                if late_s <= patience_s:
                    continue
                begin = f"{late_s:.2f} s after the begin of phase {phases[index]}"
                yield f"{who} has its first sample {begin}: its series begin there"
            for index in target.partial:
                yield f"{who} has no sample at the end of phase {phases[index]}: its series are of the part before"
            for index in target.unsettled:
                yield (
                    f"{who} still counted after the end of phase {phases[index]}: its counters may lack requests of the phase,"
                    " or have those of other clients"
                )
