"""Summaries of telemetry sources, from the folds that their processes left, or else from their samples."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from aiperf.sdk.series import Line, SourceHeader, Window
from aiperf.sdk.summary import SeriesSummary, SourceSummary

from aiperf_series_by_time.folds import Fold, Part, most_sliced
from aiperf_series_by_time.stored import Contents, StoredFolds, begun, read_folds
from aiperf_series_by_time.windows import Windows

log = logging.getLogger(__name__)

def summary(
    path: Path, samples: Callable[[], Iterable[Line]], windows: Sequence[Window], slices: Sequence[Window]
) -> SourceSummary | None:
    """The summary from the folds in *path*, or else from *samples*; None for a source without its first line."""
    folds = read_folds(path, windows, slices) or _folded(samples(), windows, slices)
    return None if folds is None else _summary(folds, windows, slices)


def _folded(lines: Iterable[Line], windows: Sequence[Window], slices: Sequence[Window]) -> StoredFolds | None:
    """The folds of all samples; None without the first line."""
    origin: SourceHeader | None = None
    parts: list[Part] = []
    windows = begun(windows)
    fold = Fold(parts.extend, Windows(windows), Windows(slices), len(slices))
    for line in lines:
        if isinstance(line, SourceHeader):
            origin = line
        else:
            fold.take(line)
    if origin is None:
        return None
    fold.close()
    return StoredFolds(Contents.of(origin, fold, windows, slices), parts)


def _summary(folds: StoredFolds, windows: Sequence[Window], slices: Sequence[Window]) -> SourceSummary:
    contents, ref, names = folds.contents, folds.contents.ref, folds.contents.series
    targets = tuple(target.summary(contents.phases) for target in contents.targets)
    by_slice: list[list[SeriesSummary]] = [[] for _ in slices]
    series: list[SeriesSummary] = []
    sliced = most_sliced(len(slices))
    if slices and len(names) > sliced:
        log.warning("%s: time slices have the first %d of %d series", ref, sliced, len(names))
    for part in sorted(folds.parts, key=lambda part: (part.series, part.window)):
        if part.sliced and (not slices or part.series >= sliced):
            continue
        one = names[part.series]
        phase = (contents.slices if part.sliced else contents.phases)[part.window].phase
        summary = SeriesSummary(
            ref.name, phase, one.name, one.kind.value, one.unit, one.labels, one.help, part.stats, part.buckets, part.estimates,
            targets[one.target].name,
        )
        (by_slice[part.window] if part.sliced else series).append(summary)
    partial = tuple(each.phase for each in contents.phases if any(each.phase in target.partial for target in targets))
    counts = sum(each.samples for each in targets), sum(each.failed for each in targets), sum(each.missed for each in targets)
    return SourceSummary(
        ref.name, ref.distribution, ref.version, contents.interval_s, *counts,
        tuple(series), tuple(map(tuple, by_slice)), partial, targets,
    )  # fmt: skip
