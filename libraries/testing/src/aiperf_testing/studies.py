"""A made-up study, and the contract of exporters that read all runs of one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import pytest
from aiperf.errors import AiperfError
from aiperf.sdk.exporter import StudyExporter, Target
from aiperf.sdk.study import Dimension, Study, StudyCell, StudyRun
from aiperf.sdk.summary import STATISTICS, Result, Summary
from msgspec.structs import replace

from aiperf_testing.findings import shown, unlike
from aiperf_testing.manifests import check_exporter_row, row_of
from aiperf_testing.summaries import _files, _full_disk, sample_summary

_CONCURRENCIES = (1, 2, 4)
_START_NS, _RUN_NS = 1_700_000_000_000_000_000, 5_000_000_000


def sample_study(directory: Path, trials: int = 2, concurrencies: Sequence[int] = _CONCURRENCIES) -> Study:
    """A sweep over *concurrencies*, each *trials* times; without concurrencies repeats of one load.

    Throughput and latency grow with concurrency, and a little with the trial.
    """
    dimensions = (Dimension("profiling.concurrency", "concurrency", tuple(concurrencies)),) if concurrencies else ()
    cells = [
        StudyCell(index, {"concurrency": value}, f"concurrency_{value}", f"concurrency={value}")
        for index, value in enumerate(concurrencies)
    ] or [StudyCell(0, {})]
    runs: list[StudyRun] = []
    for trial in range(1, trials + 1):
        for cell in cells:
            begin_ns = _START_NS + len(runs) * _RUN_NS
            run = StudyRun(cell, trial, directory, 42 + cell.index, begin_ns=begin_ns, end_ns=begin_ns + _RUN_NS)
            part = f"profile_runs/{run.label.rpartition('/')[2]}" if trials > 1 else ""
            place = directory / part / cell.name
            runs.append(replace(run, directory=place, summary=_summary(place, cell, trial)))
    return Study(
        study_id="0123456789ab", version="0.1.0", directory=directory, runs=tuple(runs), planner="grid", dimensions=dimensions,
        trials=trials, command="aiperf profile --model m --concurrency 1,2,4", config={"endpoint": {"type": "chat"}},
    )  # fmt: skip


def _summary(directory: Path, cell: StudyCell, trial: int) -> Summary:
    load = int(str(cell.parameters.get("concurrency", 1)))
    latency_ms = 20.0 + 3 * load + 0.25 * trial
    spread = {name: latency_ms + place for place, name in enumerate(STATISTICS)} | {"std": 2.0, "count": 24.0}
    results = (
        Result("request_latency", "Request Latency", "ms", {**spread, "sum": 24 * latency_ms}, order=300),
        Result("time_to_first_token", "Time to First Token", "ms", {name: value / 4 for name, value in spread.items()}),
        Result("inter_token_latency", "Inter Token Latency", "ms", {name: value / 9 for name, value in spread.items()}),
        Result("request_throughput", "Request Throughput", "requests/sec", {"avg": 10.0 * load + 0.5 * trial}, order=900),
        Result("output_token_throughput", "Output Token Throughput", "tokens/sec", {"avg": 320.0 * load + 4 * trial}),
        Result("request_count", "Request Count", "requests", {"avg": 24.0}),
    )
    return replace(sample_summary(*results), directory=str(directory))


class StudyExporterContract:
    """Subclass with an exporter's class::

        class TestMineKeepsTheContract(StudyExporterContract):
            exporter = Mine

    writes: the exporter writes files; False for exporters that only print or send.
    """

    exporter: ClassVar[type[StudyExporter]]
    options: ClassVar[Any] = None
    writes: ClassVar[bool] = True

    def target(self, directory: Path) -> Target:
        """The target of the exporter."""
        return Target(directory)

    def studies(self, directory: Path) -> Sequence[Study]:
        """Studies that it exports: a sweep, a sweep of one trial, repeats."""
        return (sample_study(directory), sample_study(directory, trials=1), sample_study(directory, concurrencies=()))

    def _exported(self, study: Study) -> dict[str, bytes]:
        """The content written by a new exporter that saw each run end, by path below the directory."""
        made = type(self).exporter(self.target(study.directory), type(self).options)
        for count in range(1, len(study.runs) + 1):
            made.run_ended(replace(study, runs=study.runs[:count], complete=False))
        return {str(file.path.relative_to(study.directory)): file.path.read_bytes() for file in made.export_study(study)}

    def test_its_manifest_says_what_it_is(self) -> None:
        check_exporter_row(self.exporter)
        said = row_of("exporters", self.exporter).capabilities.get("studies")
        assert said is True, unlike(said, "studies: true", "write it into the capabilities of its manifest")

    def test_it_names_every_file_it_writes(self, tmp_path: Path) -> None:
        written: set[str] = set()
        for number, study in enumerate(self.studies(tmp_path / "0")):
            folder = tmp_path / str(number)
            written |= set(self._exported(replace(study, directory=folder, runs=self._moved(study, folder))))
            left = _files(folder) if folder.exists() else set()
            assert left <= written, unlike(left, written, "return an Artifact for each file that it writes")
        assert bool(written) is self.writes, (
            unlike(written, f"files: {self.writes}", "return an Artifact for each file, or set writes = False")
        )

    def test_it_declares_every_file_it_writes(self, tmp_path: Path) -> None:
        target = Target(Path(), files=dict(self.exporter.files))
        declared = {target.file(kind).name for kind in self.exporter.files}
        for study in self.studies(tmp_path):
            names = {Path(path).name for path in self._exported(study)}
            assert names <= declared, unlike(names, declared, "a file is not in files, see aiperf.Exporter.files")

    def test_the_same_runs_give_the_same_files(self, tmp_path: Path) -> None:
        for study in self.studies(tmp_path):
            first, second = self._exported(study), self._exported(study)
            assert first == second, "the same runs give other bytes: no clock, no chance, no number of the process"

    def test_the_order_in_which_runs_ended_changes_nothing(self, tmp_path: Path) -> None:
        for study in self.studies(tmp_path):
            resumed = replace(study, runs=study.runs[::-1])
            assert self._exported(study) == self._exported(resumed), (
                "runs that ended in another order, as in a resumed study, give other bytes: read runs_of(cell)"
            )

    def test_failed_runs_are_survived(self, tmp_path: Path) -> None:
        for study in self.studies(tmp_path):
            first, *others = study.runs
            failed = replace(first, summary=None, failed="the server was not there")
            self._exported(replace(study, runs=(failed, *others), complete=False, reason="it was cut short"))
            self._exported(replace(study, runs=(failed,), complete=False, reason="it was cut short"))

    def test_what_it_says_on_the_console_fits(self, tmp_path: Path) -> None:
        for study in self.studies(tmp_path):
            made = type(self).exporter(self.target(tmp_path), type(self).options)
            texts = [text for run in study.runs for text in made.line(study, run)]
            assert not [text for text in texts if "\n" in text or not text], f"the words of a line are {shown(texts)}"
            for width in (60, 120):
                lines = made.table(study, width).splitlines()
                assert all(len(line) <= width for line in lines), f"the table is wider than {width} columns: {shown(lines)}"

    def test_where_nothing_can_be_written_it_says_so_and_leaves_nothing(self, tmp_path: Path) -> None:
        if not self.writes:
            pytest.skip("it writes no file")
        (tmp_path / "file").write_bytes(b"")
        with pytest.raises((OSError, AiperfError)):
            self._exported(sample_study(tmp_path / "file" / "below"))
        assert [path.name for path in tmp_path.iterdir()] == ["file"], (
            f"it left {shown([path.name for path in tmp_path.iterdir()])}: write with atomic(path), which leaves nothing"
        )

    def test_a_full_disk_is_said_and_no_half_file_is_left(self, tmp_path: Path) -> None:
        if not self.writes:
            pytest.skip("it writes no file")
        with _full_disk(), pytest.raises((OSError, AiperfError)):
            self._exported(sample_study(tmp_path))
        assert _files(tmp_path) == set(), f"half a file is left: {shown(_files(tmp_path))}; write with atomic(path)"

    @staticmethod
    def _moved(study: Study, folder: Path) -> tuple[StudyRun, ...]:
        """The runs, in a copy of the study's directory."""
        return tuple(replace(run, directory=folder / run.directory.relative_to(study.directory)) for run in study.runs)
