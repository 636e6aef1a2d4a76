"""The contract of telemetry sources."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar

import pytest
from aiperf.registry.third_party import load
from aiperf.rundir.samples import SampleWriter, read_samples
from aiperf.sdk.descriptor import PluginRef
from aiperf.sdk.series import Moment, Sample, SeriesHeader, SourceHeader
from aiperf.sdk.telemetry import (
    MOST_POINTS,
    Digest,
    Histogram,
    Point,
    Reading,
    SeriesKind,
    TelemetryContext,
    TelemetrySource,
    TelemetryTarget,
)

from aiperf_testing.findings import shown, unlike
from aiperf_testing.manifests import check_row

_SAMPLES = 3
"""Samples that are asked of the source."""


def bounded(given: Iterable[Point] | Reading) -> list[Point]:
    """A sample, which ends."""
    found = list(islice(given.points if isinstance(given, Reading) else given, MOST_POINTS + 1))
    assert len(found) <= MOST_POINTS, f"sample() gave more than {MOST_POINTS:,} points: it must end with those of the moment"
    return found


class TelemetryContract:
    """Subclass with a source's class, and something to sample (a recorded exporter, a fake library)::

        class TestMineKeepsTheContract(TelemetryContract):
            source = Mine
            options = SimpleNamespace(url="…")
    """

    source: ClassVar[type[TelemetrySource]]
    options: ClassVar[Any] = None
    context: ClassVar[TelemetryContext] = TelemetryContext(("http://127.0.0.1:9",), ("m",))

    def _made(self) -> TelemetrySource:
        return type(self).source(type(self).options, type(self).context)

    def _started(self) -> TelemetrySource:
        source = self._made()
        source.start()
        return source

    @pytest.fixture
    def samples(self) -> list[list[Point]]:
        return self._taken()

    def _taken(self) -> list[list[Point]]:
        """The samples of all targets between start and stop."""
        source = self._started()
        try:
            return [bounded(target.sample()) for target in source.targets() for _ in range(_SAMPLES)]
        finally:
            source.stop()

    def test_its_manifest_says_what_it_is(self) -> None:
        row = check_row("telemetry", self.source)
        option = row.capabilities.get("needs_option")
        properties = set() if row.options_model is None else set(dir(load(PluginRef("", "", row.options_model, "", ""))))
        assert option is None or option in {spec.field for spec in row.options} | properties, f"it has no option {option}"

    def test_making_it_starts_nothing(self) -> None:
        """A source is constructed without a start where only its options are read."""
        self._made()

    def test_its_targets_have_intervals_and_names_of_their_own(self) -> None:
        source = self._started()
        try:
            targets = list(source.targets())
            assert targets, "there is no target: raise Absent where nothing can be sampled"
            for target in targets:
                assert isinstance(target, TelemetryTarget), unlike(target, "TelemetryTarget", "give targets")
                assert target.interval_s > 0, unlike(target.interval_s, "more than 0", "seconds between two samples")
                assert "@" not in target.name.partition("://")[2].partition("/")[0], (
                    f"the target {target.name} has credentials: they would stand in every file"
                )
            names = [target.name for target in targets]
            assert len(names) == len(set(names)), f"two targets have one name: {shown(names)}"
        finally:
            source.stop()

    def test_a_reading_has_its_times_in_order(self) -> None:
        source = self._started()
        try:
            for target in source.targets():
                given = target.sample()
                if isinstance(given, Reading) and given.sent_ns is not None and given.first_byte_ns is not None:
                    assert given.sent_ns <= given.first_byte_ns, (
                        unlike(given.first_byte_ns, f"at least {given.sent_ns}", "an answer begins behind its question")
                    )
                bounded(given)
        finally:
            source.stop()

    def test_there_is_something_in_every_sample(self, samples: list[list[Point]]) -> None:
        assert all(samples), "a sample is empty"
        assert all(type(point) is Point for sample in samples for point in sample), (
            "a sample has something other than a Point: give Point objects"
        )

    def test_a_series_stands_once_in_a_sample(self, samples: list[list[Point]]) -> None:
        for sample in samples:
            series = [(point.name, tuple(sorted(point.labels.items())), point.at_ns) for point in sample]
            assert len(series) == len(set(series)), "two values of one name need different labels, or times of their own"

    def test_a_series_keeps_its_kind_and_unit(self, samples: list[list[Point]]) -> None:
        known: dict[str, tuple[SeriesKind, str]] = {}
        for point in (point for sample in samples for point in sample):
            assert known.setdefault(point.name, (point.kind, point.unit)) == (point.kind, point.unit), (
                f"{point.name} changed its kind or unit: a series keeps both"
            )

    def test_values_are_what_their_kind_says(self, samples: list[list[Point]]) -> None:
        for point in (point for sample in samples for point in sample):
            assert isinstance(point.value, Histogram) is (point.kind is SeriesKind.HISTOGRAM), (
                f"{point.name} is a {point.kind.value} of {shown(point.value)}: a Histogram stands in histograms alone"
            )
            assert isinstance(point.value, Digest) is (point.kind is SeriesKind.SUMMARY), (
                f"{point.name} is a {point.kind.value} of {shown(point.value)}: a Digest stands in summaries alone"
            )
            assert point.kind is not SeriesKind.INFO or point.value == 1, (
                f"{point.name} is an info of {shown(point.value)}: its value is 1, and labels say the rest"
            )
            assert point.at_ns is None or type(point.at_ns) is int, (
                f"at_ns of {point.name} is {shown(point.at_ns)}: give whole ns, or None for now"
            )
            if isinstance(point.value, Digest):
                assert all(0 <= quantile <= 1 for quantile in point.value.quantiles), (
                    f"{point.name} has quantiles outside 0 to 1: give 0.99, not 99"
                )
            elif isinstance(point.value, Histogram):
                bounds, counts = point.value.bounds, point.value.counts
                assert len(bounds) == len(counts) > 0 and bounds[-1] == float("inf"), (
                    f"{point.name} needs as many bounds as counts, the last of them inf"
                )
                assert list(bounds) == sorted(set(bounds)) and list(counts) == sorted(counts), (
                    f"bounds and counts of {point.name} must grow: counts are cumulative"
                )
            else:
                assert isinstance(point.value, int | float), f"{point.name} is {shown(point.value)}: give a number"

    def test_labels_are_texts(self, samples: list[list[Point]]) -> None:
        for point in (point for sample in samples for point in sample):
            assert point.name, "a point has no name: give its series one"
            assert all(isinstance(text, str) for text in (*point.labels, *point.labels.values())), (
                f"the labels {shown(point.labels)} are no texts: give str(value)"
            )

    def test_its_samples_can_be_kept(self, samples: list[list[Point]], tmp_path: Path) -> None:
        writer = SampleWriter(tmp_path / "samples", SourceHeader(PluginRef("telemetry", "mine", "", "", ""), 1.0))
        for at_ns, sample in enumerate(samples):
            writer.add(sample, Moment(at_ns, at_ns, 0, 0))
        writer.close()
        lines = list(read_samples(tmp_path / "samples"))
        assert len([line for line in lines if isinstance(line, Sample)]) == len(samples), (
            "samples were lost on the way to the file: give only what can be encoded as JSON"
        )
        digests = {point.name for sample in samples for point in sample if isinstance(point.value, Digest)}
        parts = {f"{name}{end}" for name in digests for end in ("", "_sum", "_count")}
        names = {point.name for sample in samples for point in sample if point.finite}
        assert {line.name for line in lines if isinstance(line, SeriesHeader)} - parts == names - digests, (
            "series were lost on the way to the file: give only what can be encoded as JSON"
        )

    def test_it_starts_again_after_it_was_stopped(self) -> None:
        for _ in range(2):
            source = self._started()
            for target in source.targets():
                bounded(target.sample())
            source.stop()

