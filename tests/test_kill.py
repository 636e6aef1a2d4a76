"""``kill -9`` of a worker, a reducer and the parent, with long streams in flight: what each may lose, and no more."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from array import array
from collections.abc import Iterator
from pathlib import Path

import pytest
from aiperf.rundir import journal

simulator_testing = pytest.importorskip("aiperf_command_simulate.testing")

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="finds processes in /proc")

STREAMS = 8
STEP_MS = 10
FRAME_MS = 50
FRAME_STEPS = FRAME_MS // STEP_MS
LOST_FRAMES = 3
"""A worker may lose the frame it is filling (50 ms of reads); one more may be on its way to the disk, and a loop turn that a
busy machine delays makes a frame longer than it should be."""


@pytest.fixture
def server() -> Iterator[object]:
    with simulator_testing.running(first_token_ms=20, decode_ms=STEP_MS, decode_batch_us=0) as running:
        yield running


def start(
    server: object, directory: Path, *more: str, tokens: int = 300, requests: int = STREAMS, isl: int = 20
) -> subprocess.Popen[str]:
    url = server.url  # type: ignore[attr-defined]
    command = [
        sys.executable, "-m", "aiperf", "profile", "--model", "sim", "--url", url, "--endpoint-type", "chat", "--streaming",
        "--tokenizer", "builtin", "--concurrency", str(STREAMS), "--request-count", str(requests), "--isl", str(isl),
        "--osl", str(tokens), "--extra-inputs", "ignore_eos:true", "--random-seed", "1", "--artifact-dir", str(directory),
        "--ui", "none", *more,
    ]  # fmt: skip
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def child_of(pid: int, module: str, *, but: int = 0) -> int:
    """The process of a run that runs *module*; one other than *but* may still have to come."""
    found: list[int] = []

    def there() -> bool:
        for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
            with contextlib.suppress(OSError):  # it has just ended
                if int(child) != but and module in Path(f"/proc/{child}/cmdline").read_text().replace("\0", " "):
                    found.append(int(child))
        return bool(found)

    wait_for(there)
    return found[0]


def wait_for(condition: object, seconds: float = 120) -> None:
    until = time.monotonic() + seconds
    while not condition():  # type: ignore[operator]
        assert time.monotonic() < until, "it never came to that"
        time.sleep(0.02)


def streaming(server: object, directory: Path) -> None:
    """Wait until every stream is well under way."""
    wait_for(lambda: server.summary()["in_flight"] == STREAMS)  # type: ignore[attr-defined]
    wait_for(lambda: journaled_chunks(directory) > STREAMS * 40)


def journaled_chunks(directory: Path) -> int:
    """Streamed pieces in the segments, not counting the closing one of each answer."""
    found = 0
    for path in journal.numbered(directory / "journal", "shard-*.seg"):
        for frame in journal.frames(path):
            if frame.kind == journal.CHUNKS:
                width = len(journal.CHUNK_FIELDS)
                rows = array("q", frame.payload[: frame.count * width * 8])
                bodies = frame.payload[frame.count * width * 8 :]
                assert sum(rows[3::width]) == len(bodies)
                found += bodies.count(b'"content"')
    return found


def report(directory: Path) -> tuple[int, dict[str, object]]:
    command = [sys.executable, "-m", "aiperf", "report", str(directory)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert "Traceback" not in done.stderr, done.stderr
    return done.returncode, json.loads((directory / "profile_export_aiperf.json").read_text())


@pytest.mark.parametrize(
    "words",
    [
        (), ("--dataset-sampling-strategy", "shuffle", "--warmup-request-count", "3"),
        ("--session-turns-mean", "3", "--dataset-sampling-strategy", "random"),
    ],
    ids=["in order", "shuffled, behind a warmup", "sessions by chance"],
)
def test_without_its_builder_a_run_ends_and_tells_what_was_never_sent(
    server: object, tmp_path: Path, words: tuple[str, ...]
) -> None:
    run = start(server, tmp_path, "--request-rate", "40", *words, tokens=1, requests=20_000, isl=2000)
    wait_for(lambda: server.summary()["requests"] > 13)  # type: ignore[attr-defined]
    os.kill(child_of(run.pid, " profile "), signal.SIGKILL)
    _, said = run.communicate(timeout=600)
    assert run.returncode == 1
    assert "Traceback" not in said, said
    assert "the data set is not whole: its process was killed by signal 9" in said
    arrivals = json.loads((tmp_path / "profile_export_aiperf.json").read_text())["measurement"]["arrivals"]
    warmup = 3 if "--warmup-request-count" in words else 0
    assert arrivals["completed"] == arrivals["sent"] == server.summary()["requests"] - warmup  # type: ignore[attr-defined]
    assert arrivals["never_sent"] == 20_000 - arrivals["sent"]
    assert [path.name for path in tmp_path.glob("*inputs*")] == []  # half a file is none


@pytest.mark.timing  # what it has not written yet is counted in frames of 50 ms
def test_a_killed_worker_loses_at_most_the_frames_not_yet_written(server: object, tmp_path: Path) -> None:
    run = start(server, tmp_path, "--export-level", "raw")
    streaming(server, tmp_path)
    os.kill(child_of(run.pid, "aiperf.worker.process"), signal.SIGKILL)
    _, said = run.communicate(timeout=180)
    assert run.returncode == 1
    assert "Traceback" not in said, said
    assert "worker 0 was killed by SIGKILL" in said

    wait_for(lambda: server.summary()["in_flight"] == 0)  # type: ignore[attr-defined]
    sent = sum(row["chunks"] for row in server.truth()["requests"])  # type: ignore[attr-defined]
    kept = journaled_chunks(tmp_path)
    assert kept >= sent - LOST_FRAMES * STREAMS * (FRAME_STEPS + 1)
    assert kept > STREAMS * 20, "the streams had hardly begun"

    results = json.loads((tmp_path / "profile_export_aiperf.json").read_text())
    assert results["is_complete"] is False
    assert results["measurement"]["arrivals"]["unfinished"] == STREAMS
    assert results["measurement"]["verdict"] == "none", "no stream had ended"


def test_a_killed_worker_of_several_is_replaced_and_its_loss_named(
    server: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AIPERF_WORKERS", "3")
    run = start(server, tmp_path, "--workers-max", "3", tokens=100, requests=5 * STREAMS)
    streaming(server, tmp_path)
    os.kill(child_of(run.pid, "aiperf.worker.process"), signal.SIGKILL)
    _, said = run.communicate(timeout=180)
    assert run.returncode == 1 and "Traceback" not in said, said
    assert "was killed by SIGKILL; what it had in flight is counted as unfinished, and another one goes on" in said

    arrivals = json.loads((tmp_path / "profile_export_aiperf.json").read_text())["measurement"]["arrivals"]
    lost = arrivals["unfinished"]
    assert 0 < lost < STREAMS, "the other two went on"
    assert arrivals["completed"] + lost == arrivals["planned"] == 5 * STREAMS
    truth = server.truth()  # type: ignore[attr-defined]
    outcomes = [row["outcome"] for row in truth["requests"]]
    assert (len(outcomes), outcomes.count("client disconnected")) == (5 * STREAMS, lost)
    assert truth["summary"]["in_flight_max"] <= STREAMS, "the tokens of the dead one came back, and no more"


def test_a_killed_reducer_loses_nothing(server: object, tmp_path: Path) -> None:
    run = start(server, tmp_path, tokens=100, requests=3 * STREAMS)
    streaming(server, tmp_path)
    first = child_of(run.pid, "aiperf.run.reducer_process")
    os.kill(first, signal.SIGKILL)
    wait_for(lambda: server.summary()["requests"] > 2 * STREAMS)  # type: ignore[attr-defined]
    # The one that took over, after it reduced some.
    os.kill(child_of(run.pid, "aiperf.run.reducer_process", but=first), signal.SIGKILL)
    _, said = run.communicate(timeout=180)
    assert run.returncode == 0, said
    results = json.loads((tmp_path / "profile_export_aiperf.json").read_text())
    assert results["request_count"]["avg"] == 3 * STREAMS
    assert results["output_sequence_length"]["sum"] == 3 * STREAMS * 100
    lines = (tmp_path / "profile_export.jsonl").read_text().splitlines()
    assert len({json.loads(line)["metadata"]["x_request_id"] for line in lines}) == len(lines) == 3 * STREAMS


def test_a_killed_parent_loses_nothing_that_was_observed(server: object, tmp_path: Path) -> None:
    run = start(server, tmp_path, tokens=100)
    streaming(server, tmp_path)
    worker, reducer = child_of(run.pid, "aiperf.worker.process"), child_of(run.pid, "aiperf.run.reducer_process")
    run.kill()
    run.communicate()
    # Nobody is left behind: both see their standard input end, the worker after a bounded drain.
    wait_for(lambda: not any(Path(f"/proc/{pid}/cmdline").exists() and Path(f"/proc/{pid}/cmdline").read_bytes()
                             for pid in (worker, reducer)))  # fmt: skip
    code, results = report(tmp_path)
    assert code == 1, "partial results"
    count = results["request_count"]
    assert isinstance(count, dict)
    assert count["avg"] == STREAMS
    assert results["is_complete"] is False, "its main process did not see the end"
    assert results["incomplete_reason"] == "the run did not record its end"
    assert (tmp_path / "profile_export_aiperf.csv").exists()
    assert len((tmp_path / "profile_export.jsonl").read_text().splitlines()) == STREAMS
