"""A made-up summary, and the contract of summary exporters."""

from __future__ import annotations

import contextlib
import resource
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import msgspec
import pytest
from aiperf.errors import AiperfError
from aiperf.sdk.exporter import SummaryExporter, Target
from aiperf.sdk.summary import STATISTICS, Arrivals, DeliveredLoad, Measurement, PhaseSummary, Result, Slice, Summary

from aiperf_testing.findings import shown, unlike
from aiperf_testing.manifests import check_exporter_row

_SPREAD = {name: 1.0 + place for place, name in enumerate(STATISTICS)} | {"count": 24.0}


def sample_summary(*results: Result) -> Summary:
    """A run of 24 requests with 6 failures.  Without *results*: one metric with statistics, one with a single value."""
    given = results or (
        Result("request_latency", "Request Latency", "ms", _SPREAD, order=300),
        Result("request_throughput", "Request Throughput", "requests/sec", {"avg": 12.5}, order=900),
    )
    by_tag = {result.tag: result for result in given}
    start_ns = 1_700_000_000_000_000_000
    end_ns = start_ns + 2_000_000_000
    arrivals = Arrivals(planned=24, sent=24, completed=18, errors=6)
    return Summary(
        run_id="0123456789ab",
        version="0.1.0",
        results=by_tag,
        errors=(),
        phases=(PhaseSummary("profiling", "profiling", 0, start_ns, end_ns, by_tag, valid=18, failed=6),),
        measurement=Measurement("kernel", loopback=True, arrivals=arrivals, verdict="trustworthy"),
        delivered=DeliveredLoad(sent_rate=12.0, on_time_share=None, never_sent=0),
        plugins=(),
        start_ns=start_ns,
        end_ns=end_ns,
        title="LLM Metrics",
        command="aiperf profile --model m",
        config={},
        valid=18,
        failed=6,
        seed=1,
        observation_window_s=2.0,
        benchmark_duration_s=2.0,
        outcomes={"completed": 18, "failed": 6},
        slices=(
            Slice(start_ns, start_ns + 1_500_000_000, by_tag, started=20, outcomes={"completed": 18}),
            Slice(start_ns + 1_500_000_000, end_ns, {}, started=4, outcomes={"failed": 6}, complete=False),
        ),
        slice_duration_s=1.5,
    )


class SummaryExporterContract:
    """Subclass with an exporter's class::

        class TestMineKeepsTheContract(SummaryExporterContract):
            exporter = Mine

    writes: the exporter writes files; False for exporters that only print or send.
    """

    exporter: ClassVar[type[SummaryExporter]]
    options: ClassVar[Any] = None
    writes: ClassVar[bool] = True

    def prepare(self, directory: Path) -> None:
        """Write the files of other exporters that this exporter reads."""

    def target(self, directory: Path) -> Target:
        """The target of the exporter."""
        return Target(directory)

    def summary(self) -> Summary:
        """The summary that it exports; it should have what the exporter writes of."""
        return sample_summary()

    def _prepared(self, directory: Path) -> set[str]:
        """Prepare the directory; its files."""
        directory.mkdir(exist_ok=True)
        self.prepare(directory)
        return _files(directory)

    def _exported(self, directory: Path, summary: Summary) -> dict[str, bytes]:
        """The content written by a new exporter, by path below *directory*."""
        made = type(self).exporter(self.target(directory), type(self).options)
        return {str(file.path.relative_to(directory)): file.path.read_bytes() for file in made.export(summary)}

    def test_its_manifest_says_what_it_is(self) -> None:
        check_exporter_row(self.exporter)

    def test_it_names_every_file_it_writes(self, tmp_path: Path) -> None:
        there = self._prepared(tmp_path)
        written = self._exported(tmp_path, self.summary())
        assert bool(written) is self.writes, (
            unlike(written, f"files: {self.writes}", "return an Artifact for each file, or set writes = False")
        )
        assert _files(tmp_path) == there | set(written), (
            unlike(
                _files(tmp_path), there | set(written),
                "return an Artifact for each file that it writes, and write no other",
            )
        )

    def test_it_declares_every_file_it_writes(self, tmp_path: Path) -> None:
        self._prepared(tmp_path)
        target = Target(Path(), files=dict(self.exporter.files))
        declared = {target.file(kind).name for kind in self.exporter.files}
        assert set(self._exported(tmp_path, self.summary())) <= declared, "a file is not in files, see aiperf.Exporter.files"

    def test_the_same_summary_gives_the_same_files(self, tmp_path: Path) -> None:
        self._prepared(tmp_path / "first"), self._prepared(tmp_path / "second")
        first = self._exported(tmp_path / "first", self.summary())
        assert first == self._exported(tmp_path / "second", self.summary()), (
            "the same summary gives other bytes: no clock, no chance, no number of the process"
        )

    def test_a_run_without_results_is_survived(self, tmp_path: Path) -> None:
        nothing = msgspec.structs.replace(
            self.summary(), results={}, phases=(), valid=0, failed=0, complete=False, incomplete_reason="it was cut short",
            seed=None, observation_window_s=None, benchmark_duration_s=None, outcomes={}, slices=(),
        )  # fmt: skip
        self._prepared(tmp_path)
        self._exported(tmp_path, nothing)

    def test_where_nothing_can_be_written_it_says_so_and_leaves_nothing(self, tmp_path: Path) -> None:
        if not self.writes:
            pytest.skip("it writes no file")
        (tmp_path / "file").write_bytes(b"")
        with pytest.raises((OSError, AiperfError)):
            self._exported(tmp_path / "file" / "below", self.summary())
        assert [path.name for path in tmp_path.iterdir()] == ["file"], (
            f"it left {shown([path.name for path in tmp_path.iterdir()])}: write with atomic(path), which leaves nothing"
        )

    def test_a_full_disk_is_said_and_no_half_file_is_left(self, tmp_path: Path) -> None:
        if not self.writes:
            pytest.skip("it writes no file")
        there = self._prepared(tmp_path)
        with _full_disk(), pytest.raises((OSError, AiperfError)):
            self._exported(tmp_path, self.summary())
        assert _files(tmp_path) == there, (
            f"half a file is left: {shown(_files(tmp_path) - there)}; write with atomic(path), which leaves nothing"
        )


def _files(directory: Path) -> set[str]:
    return {str(path.relative_to(directory)) for path in directory.rglob("*") if path.is_file()}


@contextlib.contextmanager
def _full_disk() -> Iterator[None]:
    """The operating system refuses to extend any file of this process, like on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
