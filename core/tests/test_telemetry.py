"""Telemetry: tables of series, and what a summary has of samples."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
from aiperf.rundir.samples import SampleWriter, read_samples, sample_path
from aiperf.sdk.descriptor import PluginRef
from aiperf.sdk.series import Line, Moment, Series, SeriesHeader, SourceHeader, Window
from aiperf.sdk.summary import SeriesSummary, SourceSummary, Summary
from aiperf.sdk.telemetry import Point, SeriesDeclaration, SeriesKind, SeriesTable
from aiperf_testing.journals import CLOCK, Recording, event
from aiperf_testing.plans import sample_ref

_report = pytest.importorskip("aiperf_reducer_columns.report.report")
write_summary = _report.write_summary

_reducer = pytest.importorskip("aiperf_reducer_columns.reduce.reducer")
Reducer = _reducer.ShardReducer

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


def summarized(folder: Path, series: PluginRef | None) -> Summary:
    """The summary of a run of 4 s with a source of two samples."""
    made = Recording(folder, series=series)
    made.phase("begin", 0)
    made.answered(0, 1000, (2 * S, event(text="a")))
    made.flush(3 * S)
    made.phase("end", 4 * S)
    writer = SampleWriter(sample_path(made.journal, 0), SourceHeader(sample_ref("telemetry", name="t"), 1.0))
    for at_s in (-1, 5):
        writer.add([Point("g", 5.0)], Moment(CLOCK.started_mono_ns + at_s * S, 0, 0, 0))
    writer.close()
    Reducer(made.plan, made.journal, 0, 1, clock=CLOCK).finish()
    made.ended()
    write_summary(made.journal)
    return msgspec.msgpack.decode((made.journal / "summary.msgpack").read_bytes(), type=Summary)


def test_the_summary_has_the_samples_of_its_phases(tmp_path: Path) -> None:
    ((source,), warnings) = (made := summarized(tmp_path, ref("series", Counting))).telemetry, made.warnings
    assert source.series[0].stats == {"lines": 4, "seconds": 4, "slices": 0}
    assert not [warning for warning in warnings if "telemetry" in warning or "series" in warning]
    assert ("series", "counting") in {(used.category, used.name) for used in made.plugins}


def test_controls_of_terminals_are_escaped_in_samples(tmp_path: Path) -> None:
    path = sample_path(tmp_path, 0)
    writer = SampleWriter(path, SourceHeader(sample_ref("telemetry", name="t"), 1.0))
    writer.add([Point("g", 5.0, help="a\x9b31mb\u202ec")], Moment(1, 0, 0, 0))
    writer.close()
    text = path.read_text()
    assert "\x9b" not in text and "\u202e" not in text and r"a\u009b31mb\u202ec" in text
    assert [line.help for line in read_samples(path) if isinstance(line, SeriesHeader)] == ["a\x9b31mb\u202ec"]


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
