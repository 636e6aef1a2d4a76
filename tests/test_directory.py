"""One directory, several runs: nothing is lost without a word, and nothing of one run stands among another's files."""

from __future__ import annotations

import json
import os
import shutil
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from aiperf_command_simulate.testing import Simulator, running
from program import Program, wait_for


def words(url: str, *more: str | Path) -> list[str | Path]:
    short = ["--tokenizer", "builtin", "--isl", "10", "--osl", "5", "--request-count", "4", "--ui", "none"]
    return ["profile", "--model", "m", "--url", url, "--streaming", *short, *more]


def contents(directory: Path) -> dict[str, bytes]:
    found = (path for path in directory.rglob("*") if path.is_file() and path.name != "lock" and path.parent.name != "logs")
    return {str(path.relative_to(directory)): path.read_bytes() for path in found}


def test_a_second_run_replaces_all_files_of_the_first(
    aiperf: Program, simulator: Simulator
) -> None:
    first = aiperf(*words(simulator.url, "--export-level", "raw"))
    assert (first.artifacts / "profile_export_raw.jsonl").exists()
    assert "earlier run" not in first.err
    (first.artifacts / "notes.txt").write_text("mine")
    second = aiperf(*words(simulator.url, "--export-level", "summary"))
    assert second.code == 0, second.err
    assert second.err.count("holds results of an earlier run, which this one replaces") == 1
    assert not (second.artifacts / "profile_export_raw.jsonl").exists()
    assert not (second.artifacts / "profile_export.jsonl").exists()
    assert (second.artifacts / "notes.txt").read_text() == "mine"
    assert aiperf("validate", second.artifacts).code == 0


@pytest.mark.parametrize("wrong", [("--tokenizer", "no/such"), ("--zmq-host", "256.0.0.1")])
def test_a_failed_start_leaves_the_earlier_results(
    aiperf: Program, simulator: Simulator, wrong: tuple[str, str]
) -> None:
    first = aiperf(*words(simulator.url))
    before = contents(first.artifacts)
    aiperf.environment |= {"HF_ENDPOINT": "http://127.0.0.1:9", "HF_HOME": str(aiperf.folder / "hub")}
    line = [*words(simulator.url), *wrong]
    if wrong[0] == "--tokenizer":
        line = [word for word in line if word not in ("builtin",)]
        line.remove("--tokenizer")
    failed = aiperf(*line)
    assert failed.code == 1, failed.err
    assert contents(first.artifacts) == before
    assert "earlier run" not in failed.err


@pytest.mark.parametrize(
    ("code", "wrong"),
    [(2, ("--goodput", "bad:1")), (1, ("--wait-for-model-timeout", "0.2", "--url", "http://127.0.0.1:9"))],
    ids=["objective", "server"],
)
def test_a_run_that_is_refused_leaves_nothing_where_there_was_nothing(
    aiperf: Program, simulator: Simulator, code: int, wrong: tuple[str, ...]
) -> None:
    line = [word for word in words(simulator.url) if "--url" not in wrong or word not in ("--url", simulator.url)]
    failed = aiperf(*line, *wrong)
    assert failed.code == code, failed.err
    assert contents(aiperf.folder) == {}
    assert not (failed.artifacts / "journal").exists()


def test_a_report_restores_results_after_a_killed_start(aiperf: Program) -> None:
    with running(first_token_ms=5, decode_ms=1) as simulator:
        first = aiperf(*words(simulator.url))
    before, journal = contents(first.artifacts), first.artifacts / "journal"
    start = aiperf.start(*words("http://127.0.0.1:9"), "--wait-for-model-timeout", "60")
    wait_for(lambda: (journal.with_name("journal.earlier")).exists() and (journal / "run.json").exists())
    os.killpg(start.process.pid, signal.SIGKILL)
    start.process.communicate()
    judged = aiperf("validate", first.artifacts)
    assert judged.code == 1
    assert f"aiperf report {first.artifacts} puts them back" in judged.err
    again = aiperf("report", first.artifacts)
    assert again.code == 0, again.err
    assert "a start that was killed had set the results of an earlier run aside; they are back" in again.err
    after = contents(first.artifacts)
    assert {name: after[name] for name in ("journal/run.json", "inputs.json", "profile_export.jsonl")} == {
        name: before[name] for name in ("journal/run.json", "inputs.json", "profile_export.jsonl")
    }
    assert aiperf("validate", first.artifacts).code == 0


def test_two_runs_at_once_into_one_directory_are_refused_by_name(aiperf: Program) -> None:
    with running(first_token_ms=100_000, decode_ms=1) as simulator:
        first = aiperf.start(*words(simulator.url), "--benchmark-duration", "600", "--benchmark-grace-period", "0.1")
        wait_for(lambda: simulator.summary()["in_flight"] > 0)
        second = aiperf(*words(simulator.url))
        assert second.code == 1
        assert f"{second.artifacts} is in use by another run or report" in second.err
        first.interrupt()
        done = first.end()
    assert done.code == 130
    assert json.loads((done.artifacts / "profile_export_aiperf.json").read_text())["was_cancelled"] is True


def test_the_next_start_sweeps_the_temporary_directory_of_a_killed_run(aiperf: Program) -> None:
    temporary = aiperf.folder / "tmp"
    (temporary / "aiperf-notes").mkdir(parents=True)
    (temporary / "aiperf-notes" / "mine.txt").write_text("of another program")
    (temporary / "aiperf-ab_12345" / "new").mkdir(parents=True)  # killed before it had a lock
    os.utime(temporary / "aiperf-ab_12345", (1e9, 1e9))
    (temporary / "aiperf-pipe-ab_12345" / "run").mkdir(parents=True)  # of a pipe that was read
    (temporary / "aiperf-pipe-ab_12345" / "run" / "lock").touch()
    (temporary / "aiperf-report-ab_12345" / "new").mkdir(parents=True)  # of a killed command
    os.utime(temporary / "aiperf-report-ab_12345", (1e9, 1e9))
    aiperf.environment["TMPDIR"] = str(temporary)

    def ours() -> list[Path]:
        return [path for path in temporary.glob("aiperf-*") if path.name != "aiperf-notes"]

    with running(first_token_ms=20_000, decode_ms=1) as simulator:
        killed = aiperf.start(*words(simulator.url, "--artifact-dir", aiperf.folder / "killed"))
        wait_for(lambda: simulator.summary()["in_flight"] > 0)
        os.kill(killed.process.pid, signal.SIGKILL)
        killed.process.communicate()
        (left,) = ours()
        alive = aiperf.start(*words(simulator.url, "--artifact-dir", aiperf.folder / "alive"))
        wait_for(lambda: not left.exists() and len(ours()) == 1)
        (kept,) = ours()
        refused = aiperf(*words("http://127.0.0.1:9", "--wait-for-model-timeout", "0.1"))
        assert refused.code == 1 and kept.exists(), "that of a run at work stays"
        wait_for(lambda: simulator.summary()["in_flight"] > 0)
        alive.interrupt()
        assert alive.end().code == 130
    assert [path.name for path in temporary.iterdir()] == ["aiperf-notes"]


@pytest.mark.long
def test_a_journal_that_is_a_link_is_written_where_it_points(aiperf: Program, simulator: Simulator) -> None:
    elsewhere, artifacts = aiperf.folder / "big disk" / "journal of runs", aiperf.folder / "artifacts"
    artifacts.mkdir()
    (artifacts / "journal").symlink_to(elsewhere)  # it is not there yet
    first = aiperf(*words(simulator.url))
    assert first.code == 0, first.err
    assert (artifacts / "journal").is_symlink() and (elsewhere / "run.json").is_file()
    failed = aiperf(*words(simulator.url, "--goodput", "bad:1"))
    assert failed.code == 2 and (artifacts / "journal").is_symlink()
    assert aiperf("validate", artifacts).code == 0, "a refused start leaves the earlier results"
    second = aiperf(*words(simulator.url))
    assert second.code == 0, second.err
    assert "holds results of an earlier run, which this one replaces" in second.err
    assert (artifacts / "journal").is_symlink() and (elsewhere / "run.json").is_file()
    assert [path.name for path in elsewhere.parent.iterdir()] == [elsewhere.name]
    (artifacts / "profile_export_aiperf.json").unlink()
    assert aiperf("report", artifacts).code == 0 and aiperf("validate", artifacts).code == 0


def removed(path: Path) -> None:
    """Away with the directory, though others write into it meanwhile."""
    while path.exists():
        shutil.rmtree(path, ignore_errors=True)


@pytest.mark.parametrize("away", [removed, lambda path: path.rename(path.with_name("moved"))], ids=["removed", "moved"])
def test_a_directory_that_goes_away_in_mid_run_is_told(aiperf: Program, away: Callable[[Path], object]) -> None:
    with running(first_token_ms=5, decode_ms=1) as simulator:
        line = [*words(simulator.url), "--benchmark-duration", "600"]
        del line[line.index("--request-count") : line.index("--request-count") + 2]
        run = aiperf.start(*line)
        wait_for(lambda: simulator.summary()["requests"] > 4)
        away(run.artifacts)
        done = run.end()
        assert simulator.summary()["in_flight"] == 0
    assert done.code == 1
    assert f"error: {run.artifacts} was removed or moved during the run" in done.err
    assert "the journal is kept" not in done.err and run.survivors() == []


def test_a_deep_directory_for_temporary_files_is_no_obstacle(aiperf: Program, simulator: Simulator) -> None:
    deep = aiperf.folder / ("d" * 100)
    deep.mkdir()
    aiperf.environment["TMPDIR"] = str(deep)
    done = aiperf("profile", "--model", "m", "--url", simulator.url, "--tokenizer", "builtin", "--request-count", 2)
    assert done.code == 0, done.err
    assert list(deep.iterdir()) == []
