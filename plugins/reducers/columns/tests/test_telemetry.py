"""Telemetry: tables of series, and what a summary has of samples."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
from aiperf.rundir.samples import SampleWriter, read_samples, sample_path
from aiperf.sdk.descriptor import PluginRef
from aiperf.sdk.plan import Secrets
from aiperf.sdk.series import Line, Moment, Sample, Series, SourceHeader, Window
from aiperf.sdk.summary import SeriesSummary, SourceSummary, Summary
from aiperf.sdk.telemetry import Point, SeriesDeclaration, SeriesKind, SeriesTable
from aiperf_reducer_columns.reduce.reducer import ShardReducer
from aiperf_reducer_columns.report.report import merged_early, write_summary
from aiperf_testing.journals import CLOCK, Recording, event
from aiperf_testing.plans import sample_ref

S = 1_000_000_000


def ref(category: str, plugin: type) -> PluginRef:
    return sample_ref(category, f"{__name__}:{plugin.__name__}")


# Tables of series

TABLE = SeriesTable(
    SeriesDeclaration("power", "W", labels=("gpu", "host"), help="Draw"), SeriesDeclaration("jobs", kind=SeriesKind.COUNTER)
)


def test_a_table_makes_points_of_its_series() -> None:
    assert TABLE.point("power", 5.0, "0", "a", at_ns=7) == Point("power", 5.0, SeriesKind.GAUGE, "W", {"gpu": "0", "host": "a"},
                                                                "Draw", 7)  # fmt: skip
    assert TABLE.point("jobs", 3).kind is SeriesKind.COUNTER


@pytest.mark.parametrize(
    ("name", "labels", "why"), [("power", ("0",), "has 2 labels, not 1"), ("heat", (), "the series heat is not in the table")]
)
def test_a_table_refuses_other_series_and_labels(name: str, labels: tuple[str, ...], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        TABLE.point(name, 1.0, *labels)


# Samples on disk


def written(folder: Path, *samples: list[Point]) -> tuple[list[Sample], list[str]]:
    """The samples of one target, ten seconds apart, and what was said of them."""
    path = sample_path(folder, 0)
    writer = SampleWriter(path, SourceHeader(sample_ref("telemetry", name="t"), 1.0))
    said = [sentence for at, points in enumerate(samples) for sentence in writer.add(points, Moment(10 * at * S, 0, 0, 0))]
    writer.close()
    return [line for line in read_samples(path) if isinstance(line, Sample)], said


def test_only_changed_values_are_written_and_all_of_them_once_a_minute(tmp_path: Path) -> None:
    steady, moving = Point("g", 5.0), [Point("c", float(at), SeriesKind.COUNTER) for at in range(8)]
    samples, said = written(tmp_path, *([steady, each] for each in moving))
    assert [sample.values for sample in samples] == [{0: 5, 1: 0}, *({1: at} for at in range(1, 6)), {0: 5, 1: 6}, {1: 7}]
    assert [sample.whole for sample in samples] == [True, *[False] * 5, True, False] and not said


def test_a_series_that_ends_is_said_and_may_come_back(tmp_path: Path) -> None:
    here, other = Point("g", 5.0), Point("h", 1.0)
    gone = [Point("g", math.nan), other], [Point("g", math.inf), other], [other]
    samples, _ = written(tmp_path, [here, other], gone[0], gone[1], [here, other], gone[2], [other], [here, other])
    assert [sample.ended for sample in samples] == [[], [0], [], [], [0], [], []]
    assert [sample.values for sample in samples][1:] == [{}, {}, {0: 5}, {}, {}, {0: 5, 1: 1}]


def test_of_a_series_that_occurs_twice_the_last_value_counts(tmp_path: Path) -> None:
    samples, _ = written(tmp_path, [Point("g", 1.0), Point("g", 2.0)], [Point("g", 3.0), Point("g", 2.0)], [Point("g", 2.0)])
    assert [sample.values.get(0, 2) for sample in samples] == [2, 2, 2]


def test_a_value_with_a_time_of_its_own_is_written_once(tmp_path: Path) -> None:
    first, later = Point("g", 1.0, at_ns=5), Point("g", 1.0, at_ns=7)
    samples, _ = written(tmp_path, [first], [first], [later], [first])
    assert [sample.timed for sample in samples] == [[(0, 5, 1)], [], [(0, 7, 1)], []]


def test_a_hundred_thousand_series_are_kept_and_one_more_is_said(tmp_path: Path) -> None:
    points = [Point("g", float(n), labels={"n": str(n)}) for n in range(100_001)]
    samples, said = written(tmp_path, points, points)
    assert [len(sample.values) for sample in samples] == [100_000, 0]
    assert set(said) == {"has more than 100,000 series; further ones are left out"}


# Statistics


class Counting(Series[None]):
    """Counts lines, and says what it was asked for."""

    def summary(
        self, folds: Path, samples: Callable[[], Iterator[Line]], windows: Sequence[Window], slices: Sequence[Window]
    ) -> SourceSummary:
        counts = {"lines": float(len([*samples()])), "seconds": sum(each.end_ns - each.begin_ns for each in windows) / S}
        stats = {**counts, "slices": float(len(slices))}
        return SourceSummary("t", "acme", "1", 1.0, 2, 0, 0, (SeriesSummary("t", 0, "g", "gauge", "", {}, "", stats),))


class Broken(Series[None]):
    def summary(self, *_: Any) -> SourceSummary:
        raise ZeroDivisionError("odd")


def summarized(folder: Path, series: PluginRef | None, *, early: bool = False) -> Summary:
    """The summary of a run of 4 s with a source of two samples; *early*: it is begun before the last of them."""
    made = Recording(folder, series=series)
    made.phase("begin", 0)
    made.answered(0, 1000, (2 * S, event(text="a")))
    made.flush(3 * S)
    made.phase("end", 4 * S)
    writer = SampleWriter(sample_path(made.journal, 0), SourceHeader(sample_ref("telemetry", name="t"), 1.0))
    points = [Point("g", 5.0)]
    writer.add(points, Moment(CLOCK.started_mono_ns - S, 0, 0, 0))
    ShardReducer(made.plan, made.journal, 0, 1, clock=CLOCK).finish()
    merged = merged_early(made.journal, Secrets(), None) if early else None
    assert (merged is not None) is early
    writer.add(points, Moment(CLOCK.started_mono_ns + 5 * S, 0, 0, 0))
    writer.close()
    made.ended()
    write_summary(made.journal, merged=merged)
    return msgspec.msgpack.decode((made.journal / "summary.msgpack").read_bytes(), type=Summary)


@pytest.mark.parametrize("early", [False, True])
def test_the_summary_has_the_samples_of_its_phases(tmp_path: Path, early: bool) -> None:
    ((source,), warnings) = (made := summarized(tmp_path, ref("series", Counting), early=early)).telemetry, made.warnings
    assert source.series[0].stats == {"lines": 4, "seconds": 4, "slices": 0}
    assert not [warning for warning in warnings if "telemetry" in warning or "series" in warning]
    assert ("series", "counting") in {(used.category, used.name) for used in made.plugins}


@pytest.mark.parametrize(
    ("plugin", "why"),
    [
        (None, "telemetry has no statistics: no plugin of the category series is in use; aiperf-series-by-time is one"),
        (Broken, "the plugin series:broken of acme 1.2 failed: ZeroDivisionError: odd"),
    ],
)
def test_a_summary_without_statistics_says_why(tmp_path: Path, plugin: type | None, why: str) -> None:
    made = summarized(tmp_path, None if plugin is None else ref("series", plugin))
    assert made.telemetry == () and why in made.warnings and made.valid == 1
