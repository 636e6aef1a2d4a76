"""Plans one after the other with the same processes: ``aiperf.Run``."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import aiperf
import pytest
from aiperf_command_simulate.testing import Simulator, running
from program import Program, wait_for
from test_strangers import Overlay

PLAN: dict[str, Any] = {
    "model": "m", "tokenizer": "builtin", "isl": 10, "osl": 2, "streaming": True, "request_count": 8, "concurrency": 2,
    "no_server_metrics": True,  # whether a short run has a sample depends on the machine, and so would its files
}  # fmt: skip
STARTED = "Phase profiling (profiling) started"
COUNTER = """
import msgspec
from aiperf import hookimpl

class Thing:
    def __init__(self):
        self.count = 0

    @hookimpl
    def aiperf_request_prepared(self, request, turn):
        self.count += 1
        body = msgspec.json.decode(request.body) | {"user": str(self.count)}
        return msgspec.structs.replace(request, body=msgspec.json.encode(body))
"""
ENGINE = """
from aiperf import LocalProcess, ShardEngine

class Thing(ShardEngine):
    def start(self, start):
        return LocalProcess(start.command, start.log, start.descriptors)
"""
ORPHANS = """
import logging, os, signal, sys
from pathlib import Path
import aiperf

url, folder, moment = sys.argv[1:]

class Death(logging.Handler):
    def emit(self, record):
        if record.getMessage().startswith(moment):
            os.kill(os.getpid(), signal.SIGKILL)

run = aiperf.Run()
plan = dict(model="m", tokenizer="builtin", isl=10, osl=2, url=url, concurrency=2)
run.profile(request_count=4, artifact_dir=folder + "/1", **plan)
print(Path(f"/proc/self/task/{os.getpid()}/children").read_text(), flush=True)
logging.getLogger().addHandler(Death())
logging.getLogger("aiperf").setLevel(logging.INFO)
if moment == "between":
    os.kill(os.getpid(), signal.SIGKILL)
run.profile(benchmark_duration=60, artifact_dir=folder + "/2", **plan)
"""


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("AIPERF_CACHE_DIR", str(tmp_path / "cache"))


@pytest.fixture
def run() -> Iterator[aiperf.Run]:
    with aiperf.Run() as run:
        yield run


@pytest.fixture(scope="module")
def bodies() -> Iterator[Simulator]:
    """A server that keeps the bodies of requests."""
    with running(truth_bodies=True, first_token_ms=5, decode_ms=1, decode_batch_us=0) as simulator:
        yield simulator


def children(role: str = "worker") -> list[int]:
    """Processes of this one, by their ids.  A title is cut where this command line is shorter, so no index is read from it."""
    found = []
    for pid in Path(f"/proc/self/task/{os.getpid()}/children").read_text().split():
        with contextlib.suppress(OSError):
            words = Path(f"/proc/{pid}/cmdline").read_text().split("\0")
            if any(word.startswith(f"aiperf.{role}") or word == f"aiperf.run.{role}_process" for word in words):
                found.append(int(pid))
    return sorted(found)


@contextlib.contextmanager
def when(line: str, call: Callable[[], object]) -> Iterator[None]:
    """Call at a line of the log."""

    class Ears(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if record.getMessage().startswith(line):
                call()

    ears, logger = Ears(), logging.getLogger("aiperf")
    level = logger.level
    logging.getLogger().addHandler(ears)
    logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        logging.getLogger().removeHandler(ears)
        logger.setLevel(level)


def files(folder: Path) -> set[str]:
    """Without those of the server's metrics: on a busy machine a short load is over before their first sample."""
    found = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
    return {name for name in found if not name.startswith(("journal/telemetry", "server_metrics"))}


def sent(simulator: Simulator) -> list[tuple[Any, ...]]:
    """What the server saw, in the order of arrival, and forgets."""
    rows = sorted(simulator.truth()["requests"], key=lambda row: row["received_mono_ns"])
    simulator.reset()
    return [(row["path"], row["model"], row["stream"], row["request_id"], row["body"]) for row in rows]


def test_a_second_plan_is_that_of_a_fresh_run(bodies: Simulator, run: aiperf.Run, tmp_path: Path) -> None:
    bodies.reset()
    plan = {**PLAN, "url": bodies.url, "random_seed": 7, "request_rate": 40, "request_count": 12, "warmup_request_count": 3}
    fresh = aiperf.profile(**plan, artifact_dir="fresh")
    wanted = sent(bodies)
    other = run.profile(
        **{**PLAN, "streaming": False, "request_count": 30, "concurrency": 3}, url=bodies.url, random_seed=8, workers=2,
        endpoint_type="completions", api_key="first-secret", header="X-First:1", artifact_dir="first",
    )  # fmt: skip
    before, connections = children(), {row["connection"] for row in bodies.truth()["requests"]}
    log = Path("first/logs/aiperf.log").read_bytes()
    assert other.valid == 30 and sent(bodies)[0][0] == "/v1/completions"

    again = run.profile(**plan, artifact_dir="again")
    assert children() == before, "the same processes"
    assert not connections & {row["connection"] for row in bodies.truth()["requests"]}
    got = sent(bodies)
    assert len(got) == 15 and [row[:3] for row in got] == [row[:3] for row in wanted]
    assert sorted(row[4] for row in got) == sorted(row[4] for row in wanted)
    for due in (path for path in Path("fresh/journal").iterdir() if path.name.startswith("due")):
        assert Path("again/journal", due.name).read_bytes() == due.read_bytes()
    assert files(tmp_path / "again") == files(tmp_path / "fresh")
    assert again.results.keys() == fresh.results.keys() and again.valid == fresh.valid == 12
    for tag in ("input_sequence_length", "output_sequence_length"):
        assert again.results[tag].stats["avg"] == fresh.results[tag].stats["avg"]
    for path in (tmp_path / "again").rglob("*"):
        assert path.is_dir() or not any(word in path.read_bytes() for word in (b"first-secret", b"X-First"))
    assert Path("first/logs/aiperf.log").read_bytes() == log, "it belongs to the first plan"


@pytest.mark.long
def test_plans_take_as_many_processes_as_they_need(simulator: Simulator, run: aiperf.Run) -> None:
    plan = {**PLAN, "url": simulator.url, "request_count": 40, "concurrency": 3}
    seen = []
    for number, workers in enumerate((1, 3, 2, 3)):
        summary = run.profile(**plan, workers=workers, record_processors=min(workers, 2), artifact_dir=f"{number}")
        assert summary.valid == 40
        seen.append((children("worker"), children("reducer")))
        server = simulator.summary()
        assert (server["requests"], server["in_flight_max"]) == (40, 3), "the limit counts for all workers together"
        simulator.reset()
        shards = {path.name.split(".")[0] for path in Path(f"{number}/journal").glob("columns-*")}
        assert len(shards) == min(workers, 2)
    assert [len(workers) for workers, _ in seen] == [1, 3, 3, 3] and [len(reducers) for _, reducers in seen] == [1, 2, 2, 2]
    assert seen[1] == seen[2] == seen[3] and seen[0][0] == seen[1][0][:1]


def test_a_hook_counts_from_the_start_in_each_plan(
    bodies: Simulator, run: aiperf.Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bodies.reset()
    overlay = Overlay(tmp_path / "overlay")
    overlay.add("acme-counter", "hooks", "counter", code=COUNTER)
    monkeypatch.syspath_prepend(overlay.folder)
    monkeypatch.setenv("PYTHONPATH", str(overlay.folder))
    users = []
    for number, words in enumerate(("", "", "--disable-plugin hooks:counter")):
        run.profile(words, **PLAN, url=bodies.url, artifact_dir=f"{number}")
        users.append({json.loads(row[4]).get("user") for row in sent(bodies)})
    assert users == [set("12345678"), set("12345678"), {None}]


def test_an_idle_process_holds_nothing_of_its_last_plan(simulator: Simulator, run: aiperf.Run) -> None:
    run.profile(**PLAN, url=simulator.url, artifact_dir="first")
    run.profile(**PLAN, url=simulator.url, artifact_dir="second")
    counts = []
    for pid in (*children("worker"), *children("reducer")):
        links = [str(path.readlink()) for path in Path(f"/proc/{pid}/fd").iterdir()]
        held = {Path(link).name for link in links if str(Path.cwd()) in link}
        mapped = [line for line in Path(f"/proc/{pid}/maps").read_text().splitlines() if f"{Path.cwd()}/" in line]
        assert held == {"aiperf.log"} and not mapped
        assert not any("/first/" in link for link in links)
        counts.append(len(links))
    run.profile(**PLAN, url=simulator.url, artifact_dir="third")
    pids = (*children("worker"), *children("reducer"))
    assert [len(list(Path(f"/proc/{pid}/fd").iterdir())) for pid in pids] == counts


def test_dead_processes_are_replaced_between_plans(simulator: Simulator, run: aiperf.Run) -> None:
    plan = {**PLAN, "url": simulator.url, "workers": 2}
    run.profile(**plan, artifact_dir="first")
    worker, other = children("worker")
    (reducer,) = children("reducer")
    for pid in (worker, reducer):
        os.kill(pid, signal.SIGKILL)
    wait_for(lambda: all(") Z " in Path(f"/proc/{pid}/stat").read_text() for pid in (worker, reducer)))
    assert run.profile(**plan, artifact_dir="second").valid == 8
    workers, reducers = set(children("worker")), children("reducer")
    assert len(workers) == 2 and workers & {worker, other} == {other} and len(reducers) == 1 and reducers != [reducer]


def test_a_worker_killed_in_a_plan_costs_that_plan_alone(simulator: Simulator, run: aiperf.Run) -> None:
    plan = {**PLAN, "url": simulator.url}
    with when(STARTED, lambda: os.kill(children()[0], signal.SIGKILL)):
        first = run.profile(**plan, artifact_dir="first")
    assert any("was killed by SIGKILL" in warning for warning in first.warnings)
    replacement = children()
    second = run.profile(**plan, artifact_dir="second")
    assert (second.valid, second.incomplete_reason, children()) == (8, None, replacement)
    assert not any("SIGKILL" in warning for warning in second.warnings)


def test_an_interrupted_plan_leaves_processes_for_the_next_one(simulator: Simulator, run: aiperf.Run) -> None:
    plan = {**PLAN, "url": simulator.url}
    run.profile(**plan, artifact_dir="first")
    pids = children()
    with when(STARTED, lambda: os.kill(os.getpid(), signal.SIGINT)):
        second = run.profile(**{**plan, "request_count": None}, benchmark_duration=60, artifact_dir="second")
    third = run.profile(**plan, artifact_dir="third")
    assert (second.cancelled, third.cancelled, third.valid, children()) == (True, False, 8, pids)


@pytest.mark.long
def test_a_plan_that_fails_leaves_the_next_one_alone(simulator: Simulator, run: aiperf.Run) -> None:
    plan = {**PLAN, "url": simulator.url}
    nobody = {**PLAN, "url": "http://127.0.0.1:9"}
    with pytest.raises(aiperf.AiperfError, match=r"not ready within 0\.2 s"):
        run.profile(**nobody, wait_for_model_timeout=0.2, artifact_dir="first")
    assert run.profile(**plan, artifact_dir="second").valid == 8
    pids = children()
    with pytest.raises(aiperf.UsageError, match="unknown keyword colour"):
        run.profile(**plan, colour="red", artifact_dir="third")
    assert run.profile(**plan, artifact_dir="fourth").valid == 8 and children() == pids
    with pytest.raises(aiperf.AiperfError, match=r"not ready within 0\.2 s"):
        run.profile(**nobody, wait_for_model_timeout=0.2, artifact_dir="fifth")
    assert children() == [] and run.profile(**plan, artifact_dir="sixth").valid == 8


@pytest.mark.long
def test_two_plans_may_have_the_same_directory(simulator: Simulator, run: aiperf.Run) -> None:
    for count in (8, 5):
        run.profile(**{**PLAN, "request_count": count}, url=simulator.url, artifact_dir="same")
    (path,) = Path("same").glob("*aiperf.json")
    assert json.loads(path.read_text())["request_count"]["avg"] == 5
    assert len(Path("same/profile_export.jsonl").read_text().splitlines()) == 5


@pytest.mark.long
def test_processes_are_new_where_they_would_differ(
    simulator: Simulator, run: aiperf.Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = {**PLAN, "url": simulator.url}
    pids = []
    for number, private in enumerate((False, True, False)):
        run.profile(**plan, private=private, artifact_dir=f"{number}")
        pids.append(children())
        (path,) = Path(f"{number}").glob("*aiperf.json")
        assert (path.stat().st_mode & 0o077 == 0) is private
    monkeypatch.setenv("AIPERF_HTTP_IP_VERSION", "4")
    run.profile(**plan, artifact_dir="other")
    assert len({*map(tuple, pids), tuple(children())}) == 4 and len(children()) == 1


@pytest.mark.long
def test_shards_of_an_engine_plugin_are_new_in_each_plan(
    simulator: Simulator, run: aiperf.Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    overlay = Overlay(tmp_path / "overlay")
    overlay.add("acme-shed", "engines", "shed", code=ENGINE)
    monkeypatch.syspath_prepend(overlay.folder)
    monkeypatch.setenv("PYTHONPATH", str(overlay.folder))
    for number, engine in enumerate(("shed", "shed", "local", "shed")):
        summary = run.profile(**PLAN, url=simulator.url, engine=engine, artifact_dir=f"{number}")
        assert (summary.valid, len(children())) == (8, 1 if engine == "local" else 0)


def test_a_second_interrupt_ends_the_plan_and_not_the_next_one(simulator: Simulator, run: aiperf.Run) -> None:
    plan = {**PLAN, "url": simulator.url}
    signal.signal(signal.SIGINT, signal.default_int_handler)  # whoever started the tests may ignore it
    run.profile(**plan, artifact_dir="first")

    def twice() -> None:
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGINT)

    with when(STARTED, twice), pytest.raises(KeyboardInterrupt):
        run.profile(**{**plan, "request_count": None}, benchmark_duration=60, artifact_dir="second")
    assert children() == [] and run.profile(**plan, artifact_dir="third").valid == 8


def test_a_closed_one_runs_nothing(simulator: Simulator) -> None:
    run = aiperf.Run()
    run.close()
    run.close()
    with aiperf.Run() as run:
        run.profile(**PLAN, url=simulator.url, artifact_dir="first")
    assert children() == []
    with pytest.raises(aiperf.AiperfError, match=r"this aiperf\.Run is closed"):
        run.profile(**PLAN, url=simulator.url, artifact_dir="second")


@pytest.mark.long
@pytest.mark.parametrize("moment", ["between", STARTED])
def test_processes_end_with_a_killed_program(simulator: Simulator, tmp_path: Path, moment: str) -> None:
    words = [sys.executable, "-P", "-c", ORPHANS, simulator.url, str(tmp_path), moment]
    done = subprocess.run(
        words, env=Program(tmp_path).environment, capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
    pids = done.stdout.split()
    assert len(pids) >= 3, "worker, reducer, builder; the sampling process has ended where there is nothing to sample"
    wait_for(lambda: not any(_alive(pid) for pid in pids))


def _alive(pid: str) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
