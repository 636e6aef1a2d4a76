"""The files of studies and the lines about them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from aiperf import ConfigError, Target
from aiperf.sdk.study import Objective, SlaFilter, Study
from aiperf.testing import StudyExporterContract, sample_study
from aiperf_exporter_aggregate import Aggregate
from aiperf_studies.options import ConvergedOptions
from msgspec.structs import replace


class TestItKeepsTheContract(StudyExporterContract):
    exporter = Aggregate


def exported(study: Study, options: ConvergedOptions | None = None) -> dict[str, Path]:
    """The files by their place below the study."""
    written = Aggregate(Target(study.directory), options or ConvergedOptions()).export_study(study)
    return {file.path.relative_to(study.directory).as_posix(): file.path for file in written}


AGGREGATES = ("profile_export_aiperf_aggregate.csv", "profile_export_aiperf_aggregate.json")
SWEEPS = ("profile_export_aiperf_sweep.csv", "profile_export_aiperf_sweep.json")


@pytest.mark.parametrize(
    ("trials", "concurrencies", "order", "cell", "sweep"),
    [
        (3, (), "repeated", "aggregate", None),
        (1, (1, 2), "repeated", "aggregate/concurrency_{}", "sweep_aggregate"),
        (2, (1, 2), "repeated", "aggregate/concurrency_{}", "aggregate/sweep_aggregate"),
        (2, (1, 2), "independent", "concurrency_{}/aggregate", "sweep_aggregate"),
    ],
)
def test_files_lie_where_the_reference_has_them(
    tmp_path: Path, trials: int, concurrencies: tuple[int, ...], order: str, cell: str, sweep: str | None
) -> None:
    study = replace(sample_study(tmp_path, trials, concurrencies), order=order)
    expected = {f"{cell.format(value)}/{name}" for value in concurrencies or ("",) for name in AGGREGATES}
    assert set(exported(study)) == expected | ({f"{sweep}/{name}" for name in SWEEPS} if sweep else set())


def test_one_run_alone_has_no_aggregate(tmp_path: Path) -> None:
    assert exported(sample_study(tmp_path, trials=1, concurrencies=())) == {}


def test_a_study_without_a_good_run_has_none(tmp_path: Path) -> None:
    study = sample_study(tmp_path)
    assert exported(replace(study, runs=tuple(replace(run, summary=None, failed="no") for run in study.runs))) == {}


def test_what_was_drawn_is_written_as_it_is(tmp_path: Path) -> None:
    design = {"type": "sobol", "samples": 2, "samples_mapped": [[1], [2]]}
    files = exported(replace(sample_study(tmp_path), design=design))
    assert json.loads(files["sweep_aggregate/sampling_design.json"].read_bytes()) == design


def recorded(study: Study) -> Study:
    """The study, with a file of three requests in each run's directory."""
    for number, run in enumerate(study.runs):
        run.directory.mkdir(parents=True)
        rows = [
            {
                "metadata": {"request_start_ns": 7, "benchmark_phase": phase}, "error": None,
                "metrics": {"request_latency": {"value": 10.0 * number + value, "unit": "ms"}},
            }
            for phase, value in (("warmup", 99.0), ("profiling", 1.0), ("profiling", 2.0), ("profiling", 3.0))
        ]  # fmt: skip
        (run.directory / "profile_export.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return study


def test_an_early_end_brings_the_requests_of_all_runs(tmp_path: Path) -> None:
    study = recorded(sample_study(tmp_path, concurrencies=()))
    name = "aggregate/profile_export_aiperf_collated.json"
    assert name not in exported(study)
    document = json.loads(exported(study, ConvergedOptions(metric="request_latency"))[name].read_bytes())
    (latency,) = document["metrics"].values()
    assert latency["combined"]["mean"] == 7.0 and latency["combined"]["count"] == 6
    assert latency["per_run"] == [
        {"label": "run_0001", "mean": 2.0, "count": 3}, {"label": "run_0002", "mean": 12.0, "count": 3},
    ]  # fmt: skip


def test_runs_without_files_of_requests_are_not_collated(tmp_path: Path) -> None:
    study = sample_study(tmp_path, concurrencies=())
    for run in study.runs:
        run.directory.mkdir(parents=True)
        (run.directory / "profile_export_aiperf.json").write_text("{}")
    assert not any("collated" in name for name in exported(study, ConvergedOptions(metric="request_latency")))


def test_repeats_are_a_table_with_intervals(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    exported(sample_study(tmp_path, trials=3, concurrencies=()))
    lines = capsys.readouterr().out.splitlines()
    assert lines[1] == "3 of 3 runs succeeded; intervals of the mean at 95 % confidence"
    (row,) = (line for line in lines if line.startswith("Request throughput"))
    assert " ".join(row.split()) == "Request throughput 11.00 0.50 10.50 11.50 4.5 % 9.76 … 12.24 requests/sec"
    assert max(map(len, lines)) <= 120


def test_the_console_names_the_best_cells_and_findings(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    objectives = (Objective("request_throughput", "avg", True), Objective("request_latency", "p99", False))
    exported(replace(sample_study(tmp_path, trials=1), objectives=objectives))
    assert capsys.readouterr().out.splitlines() == [
        "", "most request_throughput avg: concurrency_4, 40.50 requests/sec",
        "least request_latency p99: concurrency_1, 35.25 ms",
    ]  # fmt: skip
    study = sample_study(tmp_path, trials=3, concurrencies=())
    first, *later = study.runs
    assert first.summary is not None
    results = first.summary.results.items()
    slow = {tag: replace(each, stats={name: 9 * value for name, value in each.stats.items()}) for tag, each in results}
    exported(replace(study, runs=(replace(first, summary=replace(first.summary, results=slow)), *later)))
    assert "--vary-seed-per-trial" in capsys.readouterr().out


def test_a_filter_by_what_a_cell_lacks_is_an_error_behind_the_files(tmp_path: Path) -> None:
    study = replace(sample_study(tmp_path), sla_filters=(SlaFilter("energy", "avg", "lt", 9.0),))
    with pytest.raises(ConfigError, match="energy:avg:lt:9: concurrency_1, concurrency_2, concurrency_4 lack it"):
        exported(study)
    assert (tmp_path / "aggregate" / "sweep_aggregate" / SWEEPS[0]).exists()


def test_the_console_says_how_many_cells_hold_the_filters(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    exported(replace(sample_study(tmp_path), sla_filters=(SlaFilter("request_throughput", "avg", "gt", 15.0),)))
    assert "2 of 3 cells hold request_throughput:avg:gt:15" in capsys.readouterr().out


def test_the_table_marks_cells_that_no_other_beats(tmp_path: Path) -> None:
    study = sample_study(tmp_path, trials=2)
    lines = Aggregate(Target(tmp_path)).table(study, 80).splitlines()
    assert " ".join(lines[0].split()) == "concurrency tokens/s TTFT p99 ms ITL p99 ms latency p95 ms runs Pareto"
    assert [line.split()[-2:] for line in lines[2:]] == [["2", "*"]] * 3, "throughput and latency grow together"
    assert lines[2].split()[1] == "326.0", "the mean of both runs"
    least = replace(study, objectives=(Objective("request_latency", "avg", maximize=False),))
    rows = Aggregate(Target(tmp_path)).table(least, 80).splitlines()[2:]
    assert [row.endswith("*") for row in rows] == [True, False, False]


def test_a_narrow_table_keeps_what_tells_the_cells_apart(tmp_path: Path) -> None:
    study = sample_study(tmp_path, trials=1)
    study = replace(study, runs=(*study.runs[:2], replace(study.runs[2], summary=None, failed="no")))
    lines = Aggregate(Target(tmp_path)).table(study, 40).splitlines()
    assert max(map(len, lines)) <= 40 and lines[0].split()[0] == "concurrency" and lines[-1].split()[-3:] == ["0", "of", "1"]


def test_repeats_have_a_row_each_and_a_line_their_numbers(tmp_path: Path) -> None:
    study = sample_study(tmp_path, concurrencies=())
    exporter = Aggregate(Target(tmp_path))
    assert [line.split()[0] for line in exporter.table(study, 80).splitlines()[2:]] == ["run_0001", "run_0002"]
    assert exporter.line(study, study.runs[0]) == ("10.50 requests/s", "TTFT p50 7.81 ms", "p99 8.81 ms")
