"""The reader of studies: finished, half, and the reference's; cells and their table."""

from __future__ import annotations

import csv
import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from aiperf import AiperfError
from aiperf.results import is_study, open_study


def run(directory: Path, throughput: float, *, verdict: str = "trustworthy", **files: dict[str, Any]) -> None:
    """The directory of a run; *files*: further ones, by name without ``.json``."""
    directory.mkdir(parents=True)
    summary = {
        "schema_version": "1.4", "aiperf_version": "0.1.0", "request_throughput": {"unit": "requests/sec", "avg": throughput},
        "measurement": {"verdict": verdict, "reasons": ["slip"] if verdict == "suspect" else []},
    }  # fmt: skip
    (directory / "profile_export_aiperf.json").write_text(json.dumps(summary))
    for name, content in files.items():
        (directory / f"{name}.json").write_text(json.dumps(content))


def manifest(seed: int, **cell: Any) -> dict[str, Any]:
    return {"label": "x", "options": {"cell": cell}, "seed": seed, "failed": ""}


@pytest.fixture
def sweep(tmp_path: Path) -> Path:
    """A sweep over two values with two trials, of which the last run was broken off, and an earlier attempt lies aside."""
    about = {"study_id": "abc", "version": "0.1.0", "command": "aiperf profile"}
    (tmp_path / "study_manifest.json").write_text(json.dumps(about))
    trials = tmp_path / "profile_runs"
    run(trials / "trial_0001" / "concurrency_2", 3.0, run_manifest=manifest(42, concurrency=2))
    run(trials / "trial_0001" / "concurrency_10", 9.0, verdict="suspect", run_manifest=manifest(43, concurrency=10))
    run(trials / "trial_0002" / "concurrency_2", 5.0, run_manifest=manifest(42, concurrency=2))
    (trials / "trial_0002" / "concurrency_10" / "journal").mkdir(parents=True)
    run(trials / "trial_0002" / "concurrency_10.half", 1.0)
    (tmp_path / "aggregate" / "concurrency_2").mkdir(parents=True)
    return tmp_path


def test_cells_have_values_runs_and_means(sweep: Path) -> None:
    study = open_study(sweep)
    first, second = study.cells
    assert [cell.name for cell in study.cells] == ["concurrency_2", "concurrency_10"]
    assert (first.parameters, first.number("request_throughput"), first.verdict) == ({"concurrency": 2}, 4.0, "trustworthy")
    assert [run.trial for run in first.runs] == [1, 2] and first.directory.name == "concurrency_2"
    assert (second.number("request_throughput"), second.number("absent"), second.verdict) == (9.0, None, "failed")
    assert first.summary["request_throughput"]["avg"] == 3.0


def test_a_run_that_was_broken_off_says_so(sweep: Path) -> None:
    broken = open_study(sweep).runs[-1]
    assert broken.run is None and "no summary" in broken.failed and broken.verdict == "failed" and broken.summary == {}


def test_exporters_may_see_the_study_again(sweep: Path) -> None:
    study = open_study(sweep).study
    assert (study.study_id, study.trials, study.order, study.sweeps) == ("abc", 2, "repeated", True)
    assert [each.label for each in study.runs][:2] == ["concurrency_2/trial_0001", "concurrency_2/trial_0002"]
    assert [each.seed for each in study.runs][:3] == [42, 42, 43]


def test_a_table_is_rows_csv_and_a_data_frame(sweep: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = open_study(sweep).table(["request_throughput_avg", "absent_p99"])
    first = {"cell": "concurrency_2", "concurrency": 2, "runs": 2, "verdict": "trustworthy", "request_throughput_avg": 4.0}
    assert table.rows[0] == {**first, "absent_p99": None} and len(table) == 2
    lines = list(csv.DictReader(io.StringIO(table.csv())))
    assert [line["request_throughput_avg"] for line in lines] == ["4.0", "9.0"] and list(lines[0]) == table.columns
    assert "request_throughput_avg" in open_study(sweep).table().columns

    class Frames:
        DataFrame = staticmethod(lambda rows, columns: (rows, columns))

    monkeypatch.setitem(sys.modules, "pandas", Frames)
    assert table.to_pandas() == (table.rows, table.columns)
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(AiperfError, match="needs pandas, which is not installed"):
        table.to_pandas()


def test_repeats_are_one_cell_without_a_name(tmp_path: Path) -> None:
    for trial, value in ((1, 2.0), (2, 4.0)):
        run(tmp_path / "profile_runs" / f"run_000{trial}", value)
    (cell,) = open_study(tmp_path).cells
    assert (cell.name, cell.number("request_throughput"), len(cell.runs)) == ("", 3.0, 2)
    assert not open_study(tmp_path).study.sweeps


def test_trials_below_their_cells_are_independent(tmp_path: Path) -> None:
    for cell in (1, 2):
        for trial in (1, 2):
            run(tmp_path / f"c_{cell}" / "profile_runs" / f"trial_000{trial}", 1.0, run_manifest=manifest(1, c=cell))
    study = open_study(tmp_path).study
    assert (study.order, study.trials, [cell.name for cell in study.cells]) == ("independent", 2, ["c_1", "c_2"])


def test_the_reference_says_values_in_its_own_file(tmp_path: Path) -> None:
    for index, value in enumerate((8, 2)):
        variation = {"index": index, "label": f"phases.profiling.concurrency={value}"}
        about = {"variation": {**variation, "values": {"phases.profiling.concurrency": value}}, "random_seed": 42 + index}
        run(tmp_path / f"concurrency_{value}", 1.0 + index, run_config=about)
    cells = open_study(tmp_path).cells
    assert [cell.parameters for cell in cells] == [{"concurrency": 8}, {"concurrency": 2}], "in its order, by index"
    assert [cell.runs[0].seed for cell in cells] == [42, 43]


def test_what_holds_no_study_is_refused(tmp_path: Path) -> None:
    with pytest.raises(AiperfError, match="is not there; a study is a directory"):
        open_study(tmp_path / "absent")
    with pytest.raises(AiperfError, match="holds no runs of a study"):
        open_study(tmp_path)
    run(tmp_path / "single", 1.0)
    with pytest.raises(AiperfError, match="it has one run"):
        open_study(tmp_path / "single")
    assert not is_study(tmp_path / "single") and not is_study(tmp_path), "runs side by side are none"
    run(tmp_path / "other" / "c_1", 1.0, run_manifest=manifest(1, c=1))
    assert is_study(tmp_path / "other")
