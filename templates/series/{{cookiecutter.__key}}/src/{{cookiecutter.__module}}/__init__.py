"""The {{ cookiecutter.name }} series: of each telemetry series the last value, by phase and by time slice."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from aiperf.sdk.series import (
    FailedSample,
    Line,
    Sample,
    Series,
    SeriesHeader,
    SourceHeader,
    Window,
    whole_samples,
)
from aiperf.sdk.summary import SeriesSummary, SourceSummary


class {{ cookiecutter.__class }}(Series[None]):
    """Reads the samples when the summary is made; :meth:`running` could fold them beside the load."""

    def summary(
        self, folds: Path, samples: Callable[[], Iterator[Line]], windows: Sequence[Window], slices: Sequence[Window]
    ) -> SourceSummary | None:
        origin: SourceHeader | None = None
        series: dict[int, SeriesHeader] = {}
        last: dict[tuple[Window, int], float] = {}
        taken = failed = missed = 0
        for line in whole_samples(samples()):  # a sample has the values that changed
            match line:
                case SourceHeader():
                    origin = line
                case SeriesHeader():
                    series[line.id] = line
                case FailedSample():
                    failed += 1
                case Sample(moment, values, timed):
                    taken, missed = taken + 1, missed + moment.missed
                    now = [(number, moment.at_ns, value) for number, value in values.items()]
                    now += [(number, moment.at_ns + wall_ns - moment.wall_ns, value) for number, wall_ns, value in timed]
                    for number, at_ns, value in now:
                        for window in (*windows, *slices):
                            if window.begin_ns <= at_ns <= window.end_ns:
                                last[window, number] = float(value[-1] if isinstance(value, list) else value)
        if origin is None:
            return None
        ref, names = origin.ref, [target.name for target in origin.targets] or [""]

        def found(window: Window) -> tuple[SeriesSummary, ...]:
            own = [(series[number], last[window, number]) for number in series if (window, number) in last]
            return tuple(
                SeriesSummary(
                    ref.name, window.phase, one.name, one.kind.value, one.unit, one.labels, one.help, {"last": value},
                    target=names[one.target],
                )
                for one, value in own
            )  # fmt: skip

        by_phase = tuple(each for window in windows for each in found(window))
        about = ref.name, ref.distribution, ref.version, origin.interval_s, taken, failed, missed
        return SourceSummary(*about, by_phase, tuple(map(found, slices)))
