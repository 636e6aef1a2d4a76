"""Statistics of telemetry series, weighted by time and made beside the load."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from aiperf.sdk.series import Line, RunningSeries, Series, Window
from aiperf.sdk.summary import SourceSummary


class ByTime(Series[None]):
    """Folds in the process of each source; a summary reads the folds, or folds the samples again."""

    def preload(self) -> None:
        from aiperf_series_by_time import summaries as _imported  # noqa: F401

    def running(self, folds: Path, slices: tuple[int, int] | None) -> RunningSeries:
        from aiperf_series_by_time.stored import RunningFold  # numpy

        return RunningFold(folds, slices)

    def summary(
        self, folds: Path, samples: Callable[[], Iterator[Line]], windows: Sequence[Window], slices: Sequence[Window]
    ) -> SourceSummary | None:
        from aiperf_series_by_time.summaries import summary

        return summary(folds, samples, windows, slices)
