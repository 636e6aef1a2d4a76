"""What becomes of the samples of telemetry: between which levels each series stayed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from aiperf.sdk.series import FailedSample, Line, Sample, Series, SeriesHeader, SourceHeader, Window, whole_samples
from aiperf.sdk.summary import SeriesSummary, SourceSummary


class Ebb(Series[None]):
    """Reads the samples when the summary is made; a series has its extremes, histograms and slices have none."""

    def summary(
        self, folds: Path, samples: Callable[[], Iterator[Line]], windows: Sequence[Window], slices: Sequence[Window]
    ) -> SourceSummary | None:
        origin, headers = None, {}
        levels: dict[tuple[int, int], list[float]] = {}
        taken = failed = missed = 0
        for line in whole_samples(samples()):
            if isinstance(line, SourceHeader):
                origin = line
            elif isinstance(line, SeriesHeader):
                headers[line.id] = line
            elif isinstance(line, FailedSample):
                failed += 1
            elif isinstance(line, Sample):
                taken, missed = taken + 1, missed + line.moment.missed
                for window in windows:
                    if window.begin_ns <= line.moment.at_ns <= window.end_ns:
                        for number, value in line.values.items():
                            if isinstance(value, float | int):
                                levels.setdefault((window.phase, number), []).append(float(value))
        if origin is None:
            return None
        ref, names = origin.ref, [target.name for target in origin.targets] or [""]
        found = (
            SeriesSummary(
                ref.name, phase, head.name, head.kind.value, head.unit, head.labels, head.help,
                {"min": min(seen), "max": max(seen)}, target=names[head.target],
            )
            for (phase, number), seen in levels.items() if (head := headers[number])
        )  # fmt: skip
        about = ref.name, ref.distribution, ref.version, origin.interval_s, taken, failed, missed
        return SourceSummary(*about, tuple(found), tuple(() for _ in slices))
