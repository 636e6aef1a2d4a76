"""The contract of series: one result from folds and from samples, and nothing is lost on a bad day."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar

from aiperf.rundir.samples import SampleWriter, folds_path, read_samples, sample_path
from aiperf.sdk.descriptor import PluginRef
from aiperf.sdk.series import FailedSample, Line, Moment, Series, SourceHeader, TargetHeader, Window, whole_samples
from aiperf.sdk.summary import SourceSummary
from aiperf.sdk.telemetry import Digest, Histogram, Point, SeriesKind

from aiperf_testing.findings import shown, unlike
from aiperf_testing.manifests import check_row

_S = 1_000_000_000
_PHASES = (Window(0, 10 * _S, 12 * _S), Window(1, 13 * _S, 18 * _S + 7))
_TARGETS = ("http://a", "http://b")
_SLICES = tuple(Window(1, at * _S, min(at * _S + _S, 18 * _S + 7)) for at in range(13, 19))


class SeriesContract:
    """Subclass with a plugin's class::

        class TestMineKeepsTheContract(SeriesContract):
            series = Mine
    """

    series: ClassVar[type[Series[Any]]]
    options: ClassVar[Any] = None

    def _summary(
        self, samples: Path, windows: Sequence[Window] = _PHASES, slices: Sequence[Window] = _SLICES
    ) -> SourceSummary:
        made = type(self).series(type(self).options)
        found = made.summary(folds_path(samples), lambda: read_samples(samples), windows, slices)
        assert isinstance(found, SourceSummary), (
            unlike(type(found), "SourceSummary", "summary must return one, or None for no source")
        )
        return found

    def _sampled(self, folder: Path, phases: Sequence[Window] = _PHASES, *, killed: bool = False) -> Path:
        """The samples of a source that folds; *killed*: in the last phase."""
        path = sample_path(folder, 0)
        running = type(self).series(type(self).options).running(folds_path(path), (1, _S))
        ref = PluginRef("telemetry", "vitals", "", "acme", "1")
        targets = tuple(TargetHeader(name, 0.5) for name in _TARGETS)
        writer = SampleWriter(path, SourceHeader(ref, 0.5, targets), running.take)
        for phase in phases:
            for at_ns in range(phase.begin_ns - 5, phase.end_ns + _S // 2, _S // 2):
                for target in range(len(_TARGETS)):
                    writer.add(_points(at_ns / _S), Moment(at_ns, at_ns, 1, phase.phase, missed=at_ns % 2), target)
                if at_ns < phase.begin_ns:
                    running.begin(phase.phase, phase.begin_ns)
            writer.failed(phase.end_ns + _S // 2, phase.phase, "it rains")
            if not (killed and phase is phases[-1]):
                running.end(phase.phase, phase.end_ns)
        writer.close()
        if not killed:
            running.close()
        return path

    def test_its_manifest_says_what_it_is(self) -> None:
        check_row("series", self.series)

    def test_every_series_is_there_by_phase_and_slice(self, tmp_path: Path) -> None:
        found = self._summary(self._sampled(tmp_path))
        assert (found.name, found.distribution, found.version, found.interval_s) == ("vitals", "acme", "1", 0.5), (
            unlike(found.name, "vitals", "take name, package, version and interval from the header")
        )
        assert (found.samples, found.failed, found.missed) == (36, 2, 36), (
            unlike(
                (found.samples, found.failed, found.missed), (36, 2, 36),
                "count samples, failed and missed ones of the file",
            )
        )
        names = {"level", "flow", "wait", "engine", "pace", "steady"}
        for phase in _PHASES:
            own = [series for series in found.series if series.phase == phase.phase]
            assert {series.name for series in own} >= names and {series.source for series in own} == {"vitals"}, (
                f"the series are {shown({series.name for series in own})}, and the file has {shown(names)}: give all of them"
            )
            assert {series.target for series in own} == set(_TARGETS), (
                unlike({series.target for series in own}, set(_TARGETS), "keep the targets of a source apart")
            )
            assert all(series.stats and set(map(type, series.stats.values())) == {float} for series in own), (
                "a series has no statistics, or some that are no float: give floats alone"
            )
        assert len(found.slices) == len(_SLICES), unlike(len(found.slices), len(_SLICES), "give a part for each slice")
        assert all({series.name for series in part} >= {"level", "flow", "wait", "steady"} for part in found.slices[:-1]), (
            "a slice lacks a series that was sampled in it: give level, flow, wait and steady, which doesn't change"
        )
        assert {series.phase for part in found.slices for series in part} == {1}, (
            "a series of a slice is of another phase than profiling"
        )

    def test_changed_and_whole_samples_have_one_result(self, tmp_path: Path) -> None:
        samples = self._sampled(tmp_path)
        folds_path(samples).unlink(missing_ok=True)
        made = type(self).series(type(self).options)
        whole = made.summary(folds_path(samples), lambda: whole_samples(read_samples(samples)), _PHASES, _SLICES)
        assert whole == self._summary(samples), "samples give other results where they have unchanged values, too"

    def test_folds_and_samples_have_one_result(self, tmp_path: Path) -> None:
        samples = self._sampled(tmp_path)
        folded = self._summary(samples)
        folds_path(samples).unlink(missing_ok=True)
        assert self._summary(samples) == folded == self._summary(samples), (
            "the samples alone give other results than the folds: both must agree"
        )

    def test_other_windows_are_made_from_the_samples(self, tmp_path: Path) -> None:
        samples = self._sampled(tmp_path)
        folded = self._summary(samples, _PHASES[1:], _SLICES[:3])
        folds_path(samples).unlink(missing_ok=True)
        assert self._summary(samples, _PHASES[1:], _SLICES[:3]) == folded, (
            "other windows were not made from the samples: read them again where the folds don't fit"
        )
        assert {series.phase for series in folded.series} == {1} and len(folded.slices) == 3, (
            "the result has phases or slices that were not asked for"
        )

    def test_a_killed_source_has_its_samples(self, tmp_path: Path) -> None:
        samples = self._sampled(tmp_path, killed=True)
        killed = self._summary(samples)
        for path in tmp_path.iterdir():
            if path != samples:
                path.unlink()
        assert self._summary(samples) == killed, "a source that was killed lost samples: read all whole lines"

    def test_a_file_without_a_line_is_no_source(self, tmp_path: Path) -> None:
        def none() -> Iterator[Line]:
            return iter(())

        assert type(self).series(type(self).options).summary(tmp_path / "folds", none, _PHASES, ()) is None, (
            "an empty file is a source: give None for it"
        )

    def test_a_source_whose_samples_all_failed_has_no_series(self, tmp_path: Path) -> None:
        header = SourceHeader(PluginRef("telemetry", "vitals", "", "acme", "1"), 0.5)
        lines = (header, FailedSample(11 * _S, 0, "it rains"))
        made = type(self).series(type(self).options).summary(tmp_path / "folds", lambda: iter(lines), _PHASES, ())
        assert made is not None and (made.samples, made.failed, made.series) == (0, 1, ()), (
            unlike(made, "a source with 0 samples, 1 failed and no series", "count failed samples")
        )


def _points(at_s: float) -> list[Point]:
    counts = (at_s, 3 * at_s, 4 * at_s)
    return [
        Point("level", at_s % 3, unit="m", labels={"where": "roof"}, help="How high"),
        Point("flow", 5 * at_s, SeriesKind.COUNTER, at_ns=round(at_s * _S) - 9),
        Point("wait", Histogram((0.1, 1.0, math.inf), counts, 2 * at_s), SeriesKind.HISTOGRAM, "s"),
        Point("steady", 7.0),
        Point("engine", 1, SeriesKind.INFO, labels={"version": "2"}),
        Point("pace", Digest({0.5: at_s}, 3 * at_s, 4 * at_s), SeriesKind.SUMMARY),
    ]
