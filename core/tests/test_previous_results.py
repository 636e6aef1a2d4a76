"""Results of an earlier run: set aside, put back, replaced."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from aiperf.errors import BadJournal
from aiperf.rundir.artifacts import READY_FILE
from aiperf.rundir.journal import RunClock, hold, save_run
from aiperf.rundir.previous_results import PreviousResults, recover, set_aside
from aiperf_testing.plans import sample_plan

FILES = {"aiperf.json": "{prefix_aiperf}.json", "raw.jsonl": "{prefix}_raw.jsonl", "inputs.json": "inputs.json"}


def previous(directory: Path) -> PreviousResults:
    """What a run with these exporters finds."""
    output = sample_plan(directory, files=FILES, early_files=("inputs.json",)).output
    return PreviousResults(directory, output)


def old(directory: Path, *, files: tuple[str, ...] = ("profile_export_raw.jsonl", "inputs.json")) -> None:
    (directory / "journal").mkdir()
    (directory / "journal" / "run.json").write_text("old")
    (directory / "journal" / "columns-0.0").write_text("old")
    for name in ("inputs.json", "profile_export_raw.jsonl", "notes.txt"):
        (directory / name).write_text("old")
    (directory / READY_FILE).write_text(json.dumps({"ready": True, "files": list(files)}))


def start(directory: Path) -> None:
    """What a run writes before it begins."""
    (directory / "journal").mkdir(parents=True)
    (directory / "journal" / "run.json").write_text("new")
    (directory / "inputs.json.draft").write_text("new")
    (directory / "inputs.json.draft").replace(directory / "inputs.json")


def contents(directory: Path) -> dict[str, str]:
    return {
        str(path.relative_to(directory)): path.read_text()
        for path in sorted(directory.rglob("*"))
        if path.is_file() and path.name not in ("lock", READY_FILE)
    }


def test_a_run_that_never_begins_leaves_the_earlier_results_as_they_were(tmp_path):
    old(tmp_path)
    before = contents(tmp_path)
    earlier = previous(tmp_path)
    start(tmp_path)
    earlier.restore()
    assert contents(tmp_path) == before
    assert (tmp_path / READY_FILE).exists()
    with hold(tmp_path / "journal"):
        pass  # nobody holds it any more


def test_a_run_that_begins_replaces_them_and_says_so(tmp_path, caplog):
    old(tmp_path)
    earlier = previous(tmp_path)
    start(tmp_path)
    earlier.replace()
    assert contents(tmp_path) == {"inputs.json": "new", "journal/run.json": "new", "notes.txt": "old"}, "stale files are gone"
    assert f"{tmp_path} holds results of an earlier run, which this one replaces" in caplog.text
    assert not (tmp_path / READY_FILE).exists()


def test_an_empty_directory_gets_no_warning(tmp_path, caplog):
    earlier = previous(tmp_path)
    start(tmp_path)
    earlier.replace()
    assert caplog.text == ""
    assert contents(tmp_path) == {"inputs.json": "new", "journal/run.json": "new"}


def test_a_run_that_never_begins_leaves_nothing_where_there_was_nothing(tmp_path):
    earlier = previous(tmp_path / "new")
    start(tmp_path / "new")
    (tmp_path / "new" / "logs").mkdir()
    (tmp_path / "new" / "logs" / "aiperf.log").touch()
    earlier.restore()
    assert not list(tmp_path.iterdir())


def test_a_log_that_says_why_a_run_never_began_stays(tmp_path):
    earlier = previous(tmp_path / "new")
    start(tmp_path / "new")
    (tmp_path / "new" / "logs").mkdir()
    (tmp_path / "new" / "logs" / "aiperf.log").write_text("why")
    earlier.restore()
    assert contents(tmp_path) == {"new/logs/aiperf.log": "why"}


def test_inputs_of_the_reference_come_back_too(tmp_path):
    (tmp_path / "inputs.json").write_text("theirs")
    earlier = previous(tmp_path)
    start(tmp_path)
    earlier.restore()
    assert contents(tmp_path) == {"inputs.json": "theirs"}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["inputs.json"]


def test_a_run_keeps_the_inputs_that_it_reads(tmp_path):
    old(tmp_path)
    earlier = previous(tmp_path)
    assert (tmp_path / "inputs.json").read_text() == "old"
    (tmp_path / "journal").mkdir()
    earlier.replace(keep=tmp_path / "inputs.json")
    assert contents(tmp_path) == {"inputs.json": "old", "notes.txt": "old"}


def test_inputs_of_the_earlier_run_go_unless_the_new_run_writes_them(tmp_path):
    old(tmp_path)
    earlier = previous(tmp_path)
    (tmp_path / "journal").mkdir()
    earlier.replace()
    assert contents(tmp_path) == {"notes.txt": "old"}


def test_a_start_that_was_killed_left_no_results_to_warn_of(tmp_path, caplog):
    start(tmp_path)
    previous(tmp_path).replace()
    assert caplog.text == ""


def test_results_of_the_reference_get_the_warning_too(tmp_path, caplog):
    (tmp_path / "profile_export_aiperf.json").write_text("{}")
    (tmp_path / READY_FILE).write_text('{"ready": true}')
    previous(tmp_path).replace()
    assert "which this one replaces" in caplog.text


@pytest.mark.parametrize("marker", ["", "[]", '{"files": 3}', '{"files": ["../outside", "journal.earlier", "/etc/hostname"]}'])
def test_a_marker_can_name_nothing_outside_the_directory(tmp_path, marker):
    directory = tmp_path / "run"
    directory.mkdir()
    old(directory)
    (tmp_path / "outside").write_text("mine")
    (directory / READY_FILE).write_text(marker)
    previous(directory).replace()
    assert (tmp_path / "outside").read_text() == "mine"


def test_a_directory_at_work_is_left_alone(tmp_path):
    old(tmp_path)
    before = contents(tmp_path)
    with hold(tmp_path / "journal"), pytest.raises(BadJournal, match="in use by another run or report"):
        previous(tmp_path)
    assert contents(tmp_path) == before


def test_a_start_that_was_killed_costs_no_earlier_results(tmp_path):
    old(tmp_path)
    before = contents(tmp_path)
    previous(tmp_path)
    start(tmp_path)
    again = previous(tmp_path)
    again.restore()
    assert contents(tmp_path) == before


def test_a_report_puts_back_what_a_start_that_was_killed_set_aside(tmp_path):
    old(tmp_path)
    before = contents(tmp_path)
    assert not recover(tmp_path)
    previous(tmp_path)
    start(tmp_path)
    assert set_aside(tmp_path)
    assert recover(tmp_path)
    assert contents(tmp_path) == before
    assert not set_aside(tmp_path)


def test_a_start_under_way_keeps_what_it_set_aside(tmp_path):
    old(tmp_path)
    going_on = previous(tmp_path)
    with pytest.raises(BadJournal, match="in use by another run or report"):
        recover(tmp_path)
    going_on.restore()
    assert contents(tmp_path)["journal/run.json"] == "old"


def test_results_set_aside_go_once_a_later_run_has_observed_something(tmp_path):
    old(tmp_path)
    previous(tmp_path)
    start(tmp_path)
    (tmp_path / "journal" / "shard-0.0.seg").write_text("observed")
    earlier = previous(tmp_path)
    earlier.restore()
    assert contents(tmp_path)["journal/run.json"] == "new"
    assert not (tmp_path / "journal.earlier").exists()


def test_a_strangers_files_of_an_earlier_run_are_removed_like_ours(tmp_path):
    (tmp_path / "journal").mkdir()
    files = {"aiperf.json": "{prefix_aiperf}.json", "ledger.txt": "{prefix_}ledger.txt"}
    save_run(tmp_path / "journal", sample_plan(tmp_path, files=files, export_prefix="mine"), RunClock(0, 0))
    (tmp_path / "journal" / "columns-0.0").write_text("old")
    for name in ("mine.json", "mine_ledger.txt", "ledger.txt"):
        (tmp_path / name).write_text("old")
    previous(tmp_path).replace()
    assert contents(tmp_path) == {"ledger.txt": "old"}


def test_a_strangers_early_file_comes_back_with_the_results(tmp_path):
    output = sample_plan(tmp_path, files={"list": "{prefix_}list.txt"}, early_files=("list",)).output
    (tmp_path / "list.txt").write_text("old")
    earlier = PreviousResults(tmp_path, output)
    (tmp_path / "draft").write_text("new")
    (tmp_path / "draft").replace(tmp_path / "list.txt")
    earlier.restore()
    assert contents(tmp_path) == {"list.txt": "old"}


def test_a_plan_can_name_no_file_outside_the_directory(tmp_path):
    directory = tmp_path / "run"
    (directory / "journal").mkdir(parents=True)
    (tmp_path / "outside").write_text("mine")
    plan = sample_plan(directory, files={"a": "../outside", "b": str(tmp_path / "outside")}, early_files=("a", "b"))
    save_run(directory / "journal", plan, RunClock(0, 0))
    previous(directory).restore()
    previous(directory).replace()
    assert (tmp_path / "outside").read_text() == "mine"
