"""A long run prints its summary, then completes its per-request files: what happens where that goes wrong."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from aiperf_command_simulate.testing import Simulator
from program import Done, Program, Running, wait_for

SOURCE = '''
import os, signal, sys, time
from pathlib import Path
from aiperf import BatchExporter

if "aiperf.run.reducer_process" in sys.modules:  # the reducer leaves all to the end, as one does that gets no core
    from aiperf_reducer_columns import running
    from aiperf_reducer_columns.reduce import batches
    running._WORTH_BYTES = -1
    running.ColumnsReduction.step = lambda self: 50
    batches.BATCH_REQUESTS = 4
REDUCER = os.getpid()

class Late(BatchExporter):
    label, kind = "Late", "late.txt"
    files = {kind: "late.txt"}

    def rows(self, batch):
        folder = Path(os.environ["LATE"])
        deed = folder / ("reducer" if os.getpid() == REDUCER else "second")
        (folder / f"pid-{os.getpid()}").touch()
        while (folder / "wait").exists():
            time.sleep(0.01)
        try:
            exec(deed.read_text())
        except FileNotFoundError:
            pass
        return b"row\\n" * len(batch)
'''
MANIFEST = '''
schema_version: 1
api: ">=1,<2"
plugins:
  - category: exporters
    name: late
    summary: Takes its time.
    capabilities: {files: {late.txt: late.txt}}
'''
REQUESTS = 40
LATE = ("late.txt", "profile_export.jsonl", "profile_export_arrivals.jsonl")


@pytest.fixture
def late(aiperf: Program) -> Path:
    """A folder whose files say what the exporter does in the reducer and in its second process; ``wait`` holds it up."""
    package, about, folder = (aiperf.folder / "site" / name for name in ("acme_late", "acme_late-1.0.dist-info", "late"))
    for each in (package, about, folder):
        each.mkdir(parents=True)
    (package / "__init__.py").write_text(SOURCE)
    (package / "aiperf.yaml").write_text(MANIFEST)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-late\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[aiperf.exporters]\nlate = acme_late:Late\n")
    # Held rows look like a plugin that hangs, and a busy machine takes its time to the summary.
    aiperf.environment |= {"PYTHONPATH": str(package.parent), "LATE": str(folder), "AIPERF_PLUGIN_TIMEOUT": "600"}
    return folder


def begin(aiperf: Program, simulator: Simulator, *more: str) -> Running:
    return aiperf.start(
        "profile", "--model", "m", "--url", simulator.url, "--tokenizer", "builtin", "--isl", 8, "--osl", 2, "--concurrency", 8,
        "--request-count", REQUESTS, "--ui", "none", *more,
    )  # fmt: skip


def held(late: Path) -> list[int]:
    """Processes that have begun with rows."""
    return [int(path.name.removeprefix("pid-")) for path in late.glob("pid-*")]


def printed(run: Running) -> bool:
    """Whether the summary's JSON is there."""
    return (run.artifacts / "profile_export_aiperf.json").exists()


@contextlib.contextmanager
def behind_the_summary(aiperf: Program, simulator: Simulator, late: Path, *more: str) -> Iterator[Running]:
    """A run whose summary is printed, and whose rows are held up until the block is over."""
    (late / "wait").touch()
    run = begin(aiperf, simulator, *more)
    try:
        try:
            wait_for(lambda: (printed(run) and bool(held(late))) or run.process.poll() is not None, 400)
        except AssertionError as error:
            there = [path.name for path in (run.artifacts / "journal").iterdir()]
            log = (run.artifacts / "logs" / "aiperf.log").read_text()
            raise AssertionError(f"{printed(run)}, {held(late)}, {run.processes()}, {there}\n{log}") from error
        assert run.process.poll() is None, run.end().err
        assert not (run.artifacts / "late.txt").exists()
        yield run
    finally:
        (late / "wait").unlink()


def complete(done: Done) -> None:
    """All files are there, and each has all requests."""
    assert (done.artifacts / "late.txt").read_text() == "row\n" * REQUESTS
    assert len(done.lines("profile_export.jsonl")) == len(done.lines("profile_export_arrivals.jsonl")) == REQUESTS
    assert json.loads((done.artifacts / ".aiperf_results_ready.json").read_text())["partial"] is False


def test_the_summary_is_printed_before_the_files_are_complete(aiperf: Program, simulator: Simulator, late: Path) -> None:
    with behind_the_summary(aiperf, simulator, late) as run:
        assert run.process.stdout is not None
        printed = ""
        while "Delivered load" not in printed:
            printed += run.process.stdout.readline()
        assert "Late: " not in printed and "JSON Export" not in printed
        assert not (run.artifacts / ".aiperf_results_ready.json").exists()
    done = run.end()
    assert done.code == 0, done.err
    complete(done)
    assert f"Late: {done.artifacts}/late.txt" in done.out
    before = {name: (done.artifacts / name).read_bytes() for name in LATE}
    assert aiperf("report", done.artifacts).code == 0
    assert {name: (done.artifacts / name).read_bytes() for name in LATE} == before
    assert run.survivors() == []


@pytest.mark.parametrize("victim", ["second", "reducer"])
def test_a_process_that_is_killed_then_costs_no_row(aiperf: Program, simulator: Simulator, late: Path, victim: str) -> None:
    (late / victim).write_text(f"Path('{late}/{victim}').unlink(); os.kill(os.getpid(), signal.SIGKILL)")
    with behind_the_summary(aiperf, simulator, late) as run:
        pass
    done = run.end()
    assert done.code == 0, done.err
    complete(done)


def test_of_a_run_that_is_killed_then_a_report_makes_the_files(aiperf: Program, simulator: Simulator, late: Path) -> None:
    with behind_the_summary(aiperf, simulator, late) as run:
        run.process.kill()
        run.process.wait(60)
    wait_for(lambda: run.survivors() == [])
    assert not any((run.artifacts / name).exists() for name in (*LATE, ".aiperf_results_ready.json"))
    assert aiperf("report", run.artifacts).code == 0
    complete(Done(0, "", "", run.artifacts))


def test_ctrl_c_then_lets_the_files_be_completed(aiperf: Program, simulator: Simulator, late: Path) -> None:
    with behind_the_summary(aiperf, simulator, late) as run:
        run.interrupt()
    done = run.end()
    assert done.code == 130
    complete(done)


def test_a_second_ctrl_c_then_names_the_files_that_are_missing(aiperf: Program, simulator: Simulator, late: Path) -> None:
    with behind_the_summary(aiperf, simulator, late) as run:
        run.interrupt()
        run.hears("aiperf: stopping")  # two signals that wait together are one
        run.interrupt()
        done = run.end()
    assert done.code == 130
    assert "aiperf report" in done.err
    assert all(name in done.last_words for name in LATE), done.err
    assert not any((done.artifacts / name).exists() for name in LATE)
    assert aiperf("report", done.artifacts).code == 0
    complete(done)


@pytest.mark.parametrize("process", ["second", "reducer"])
def test_an_exporter_that_fails_then_makes_the_run_fail(
    aiperf: Program, simulator: Simulator, late: Path, process: str
) -> None:
    (late / process).write_text("1 // 0")
    with behind_the_summary(aiperf, simulator, late) as run:
        pass
    done = run.end()
    assert done.code == 1
    assert done.err.count("exporters:late of acme-late 1.0 failed: ZeroDivisionError") == 1, done.err
    assert len(done.lines("profile_export.jsonl")) == REQUESTS
    assert json.loads((done.artifacts / ".aiperf_results_ready.json").read_text())["partial"] is True


def test_a_disk_that_is_full_then_costs_the_files_and_not_the_summary(
    aiperf: Program, simulator: Simulator, late: Path
) -> None:
    (late / "second").write_text("raise OSError(28, 'No space left on device')")
    (late / "reducer").write_text("raise OSError(28, 'No space left on device')")
    with behind_the_summary(aiperf, simulator, late) as run:
        pass
    done = run.end()
    assert done.code == 1
    assert "can't be written: No space left on device" in done.err and "aiperf report" in done.err
    assert done.json()["request_count"]["avg"] == REQUESTS
    assert not any((done.artifacts / name).exists() for name in LATE)
    for process in ("second", "reducer"):
        (late / process).unlink()
    assert aiperf("report", done.artifacts).code == 0
    complete(done)


def test_two_workers_have_all_rows_in_order(aiperf: Program, simulator: Simulator, late: Path) -> None:
    done = begin(aiperf, simulator, "--workers", "2").end()
    assert done.code == 0, done.err
    complete(done)
    assert len(held(late)) >= 1
    before = {name: (done.artifacts / name).read_bytes() for name in LATE}
    assert aiperf("report", done.artifacts).code == 0
    assert {name: (done.artifacts / name).read_bytes() for name in LATE} == before


