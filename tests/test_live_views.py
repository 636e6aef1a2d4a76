"""Live views: what they see and ask for, and that none of them can harm a run."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import msgspec
import pytest
import rogues
from aiperf.sdk.snapshot import Snapshot
from aiperf_command_simulate.testing import Simulator, running
from aiperf_live_api.board import Board
from aiperf_live_api.documents import metrics, progress
from aiperf_live_api.watching import Watch
from aiperf_testing.live import full_snapshot
from aiperf_ui_dashboard import panels
from program import Done, Program, wait_for
from requirements import ROOT
from test_strangers import Overlay

LOOKOUT = ROOT / "tests" / "strangers" / "lookout"
KEEPER = """
import os
import msgspec
from pathlib import Path
from aiperf import LiveView

AT_FIRST = os.sched_getscheduler(0)

class Thing(LiveView):
    def begin(self, run):
        self.to = Path(run.plan.output.artifacts, "..", "seen.jsonl").resolve()
        apart = os.getsid(0) == os.getpid()
        self.put({"begin": os.getpid(), "key": "sk-live" in repr(run), "apart": apart, "policy": AT_FIRST})

    def show(self, snapshot):
        self.put({"snapshot": snapshot})

    def step(self, step):
        self.put({"step": step.what})

    def log(self, line):
        self.put({"log": line.text, "level": line.level})

    def end(self, end):
        self.put({"end": end.code, "failure": end.failure, "files": len(end.files), "summary": end.summary is not None})

    def close(self):
        self.put({"close": True})

    def put(self, row):
        with self.to.open("ab") as file:
            file.write(msgspec.json.encode(row) + b"\\n")
"""
BAD = """
import os, signal, sys, threading, time
from aiperf import LiveView

class Thing(LiveView):
    def show(self, snapshot):
        ACT
"""
ACTS = {
    "killed": "os.kill(os.getpid(), signal.SIGKILL)",
    "stopped": "os.kill(os.getpid(), signal.SIGSTOP)",
    "raising": "raise ZeroDivisionError('nothing to divide')",
    "telling": "snapshot.last and self.tell('a secret word')",
    "printing": "print('a word of a view'); print('\\\\x1b[2Jan error of a view', file=sys.stderr)",
    "flooding": "[self.say(f'word {at}') for at in range(3000)]; self.answer('no reply of the contract')",
    "looping": "\n        while True: pass",
}
WORDS = (
    "--model", "m", "--streaming", "--tokenizer", "builtin", "--isl", 10, "--osl", 4, "--ui", "none", "--api-key", "sk-live",
)  # fmt: skip
WARMUP = ("--warmup-request-rate", 20, "--warmup-duration", 60)
LONG = ("--request-rate", 20, "--benchmark-duration", 120)


@pytest.fixture(scope="module")
def simulator() -> Iterator[Simulator]:
    with running(first_token_ms=5, decode_ms=1, decode_batch_us=0) as server:
        yield server


@pytest.fixture
def aiperf(tmp_path: Path) -> Program:
    made = Program(tmp_path)
    made.environment |= {"PYTHONPATH": str(tmp_path / "overlay"), "AIPERF_CACHE_DIR": str(tmp_path / "cache")}
    Overlay(tmp_path / "overlay").add("acme-keeper", "live", "keeper", code=KEEPER)
    return made


@pytest.fixture
def lookout(aiperf: Program) -> Program:
    rogues.install_from(aiperf.folder / "overlay", LOOKOUT)
    return aiperf


def seen(aiperf: Program, what: str) -> list[dict[str, Any]]:
    path = aiperf.folder / "seen.jsonl"
    rows = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    return [row for row in rows if what in row]


def snapshots(aiperf: Program) -> list[Snapshot]:
    return [msgspec.convert(row["snapshot"], Snapshot) for row in seen(aiperf, "snapshot")]


def check_whole(done: Done, requests: int) -> None:
    assert done.code == 0, done.err
    assert done.json()["request_count"]["avg"] == requests
    assert len(done.lines("profile_export.jsonl")) >= requests, "of the warmup, too"


def test_a_view_sees_a_run_from_its_begin_to_its_end(aiperf: Program, simulator: Simulator) -> None:
    paced = ("--request-count", 60, "--request-rate", 40, "--warmup-request-count", 5)
    done = aiperf("profile", "--url", simulator.url, *WORDS, *paced)
    check_whole(done, 60)
    (begin,), (end,), (close,) = seen(aiperf, "begin"), seen(aiperf, "end"), seen(aiperf, "close")
    assert not begin["key"] and begin["apart"], "it knows no key, and has a session of its own"
    assert (end["end"], end["failure"], end["summary"], close) == (0, "", True, {"close": True}) and end["files"] >= 3
    shown = snapshots(aiperf)
    assert [each.number for each in shown] == sorted({each.number for each in shown})
    last = shown[-1]
    assert last.last and last.status == "Complete" and (last.completed, last.in_flight) == (60, 0)
    assert [(each.name, each.completed) for each in last.phases] == [("warmup", 5), ("profiling", 60)]
    results = {tag: told for tag, told in done.json().items() if isinstance(told, dict) and "unit" in told}
    assert results.keys() - {"observation_window"} <= {metric.tag for metric in last.metrics}, "analyses, too"
    for metric in last.metrics:
        told = results.get(metric.tag, {})
        exact = 0.002 if "interactivity" in metric.tag else 1e-12  # it is made of a percentile
        for name, off in (*dict.fromkeys(("avg", "min", "max", "count"), exact).items(), ("p50", 0.002), ("p99", 0.002)):
            if name in told:
                assert getattr(metric.so_far, name) == pytest.approx(told[name], rel=off), (metric.tag, name)
    assert last.metric("time_to_first_token") is not None and "effective_concurrency" in results
    assert any("Phase profiling" in row["log"] and row["level"] == 20 for row in seen(aiperf, "log"))


@pytest.mark.skipif(sys.platform != "linux", reason="other systems give no priority back")
def test_a_view_is_idle_once_the_load_begins(aiperf: Program) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    waiting = ("--wait-for-model-timeout", 600, "--wait-for-model-interval", 0.1)
    run = aiperf.start("profile", "--url", f"http://127.0.0.1:{port}", *WORDS, *waiting, *LONG)
    wait_for(lambda: seen(aiperf, "begin") != [])
    (begin,) = seen(aiperf, "begin")
    assert begin["policy"] == os.SCHED_OTHER, "it has imported before the load"

    def policies() -> set[int]:
        return {os.sched_getscheduler(int(task.name)) for task in Path(f"/proc/{begin['begin']}/task").iterdir()}

    def nice() -> list[str]:
        group = Path(f"/proc/{begin['begin']}/autogroup")
        return group.read_text().split()[-1:] if group.exists() else []

    with running(port=port, first_token_ms=5) as server:
        wait_for(lambda: server.summary()["requests"] > 4)
        assert policies() == {os.SCHED_IDLE}
        wait_for(lambda: nice() in ([], ["19"]))  # the system may put that off
        run.interrupt()
        assert run.end().code == 130


def test_no_bad_view_harms_a_run(aiperf: Program, simulator: Simulator) -> None:
    overlay = Overlay(aiperf.folder / "overlay")
    for name, act in ACTS.items():
        overlay.add(f"acme-{name}", "live", name, code=BAD.replace("ACT", act))
    overlay.add("acme-unmade", "live", "unmade", code=f"import {'missing_module'}\n")
    done = aiperf("profile", "--url", simulator.url, *WORDS, "--request-count", 60, "--request-rate", 40)
    check_whole(done, 60)
    assert snapshots(aiperf)[-1].last, "the good view has seen all"
    for name, why in (
        ("killed", "its process was killed by SIGKILL"), ("raising", "ZeroDivisionError: nothing to divide"),
        ("unmade", "can't be imported"),
    ):  # fmt: skip
        said = [line for line in done.err.splitlines() if f"live:{name} " in line]
        assert len(said) == 1 and why in said[0], done.err
    assert done.err.count("live:flooding of acme-flooding 0.9: word") <= 20
    assert "word of a view" not in done.err + done.out
    log = (done.artifacts / "logs" / "aiperf.log").read_text()
    assert done.err.count("a secret word") == 1 and "a secret word" not in log
    assert "a word of a view" in log and "an error of a view" in log


@pytest.mark.parametrize(("words", "kind"), [((), "profiling"), (WARMUP, "warmup")])
def test_a_view_stops_a_run(aiperf: Program, simulator: Simulator, words: tuple[object, ...], kind: str) -> None:
    code = BAD.replace("ACT", "snapshot.completed > 8 and self.ask_stop('it has seen enough')")
    Overlay(aiperf.folder / "overlay").add("acme-stopper", "live", "stopper", code=code)
    done = aiperf("profile", "--url", simulator.url, *WORDS, *LONG, *words)  # type: ignore[arg-type]
    assert done.code == 130
    reason = "the plugin live:stopper of acme-stopper 0.9 stopped the run: it has seen enough"
    assert done.err.count(f"aiperf: {reason}") == 1
    assert seen(aiperf, "end")[0]["end"] == 130 and snapshots(aiperf)[0].kind == kind
    results = done.json()
    assert results["incomplete_reason"].startswith(reason) and results["was_cancelled"]


def test_a_view_cancels_a_run(aiperf: Program) -> None:
    code = BAD.replace("ACT", "snapshot.sent and self.ask_cancel('now')")
    Overlay(aiperf.folder / "overlay").add("acme-canceller", "live", "canceller", code=code)
    with running(first_token_ms=600_000) as silent:
        done = aiperf("profile", "--url", silent.url, *WORDS, "--concurrency", 2, "--request-count", 4)
    assert done.code == 130
    assert "live:canceller of acme-canceller 0.9 cancelled the run: now" in done.err
    assert aiperf("report", done.artifacts).code in (0, 1)
    assert done.json()["incomplete_reason"].startswith("the plugin live:canceller of acme-canceller 0.9 cancelled the run: now")


def test_a_stop_behind_the_load_changes_nothing(aiperf: Program, simulator: Simulator) -> None:
    code = BAD.replace("ACT", "snapshot.last and self.ask_stop('too late')")
    code += "\n    def end(self, end):\n        self.ask_stop()\n"
    Overlay(aiperf.folder / "overlay").add("acme-late", "live", "late", code=code)
    done = aiperf("profile", "--url", simulator.url, *WORDS, "--request-count", 10)
    check_whole(done, 10)
    assert "stopped the run" not in done.err


def test_a_stranger_stops_a_run_whose_first_tokens_are_late(lookout: Program, simulator: Simulator) -> None:
    done = lookout("profile", "--url", simulator.url, *WORDS, *LONG, "--brake-ttft-p99", 1)
    assert done.code == 130
    assert "passed 1 ms" in done.json()["incomplete_reason"]


class Mailbox(BaseHTTPRequestHandler):
    got: list[Any] = []

    def do_POST(self) -> None:
        self.got.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        self.send_response(200)
        self.end_headers()

    def log_message(self, *words: object) -> None:
        pass


def test_a_stranger_posts_the_end_to_a_url(lookout: Program, simulator: Simulator) -> None:
    with HTTPServer(("127.0.0.1", 0), Mailbox) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        done = lookout(
            "profile", "--url", simulator.url, *WORDS, "--request-count", 12, "--messenger-url", f"http://127.0.0.1:{server.server_port}/"
        )
        server.shutdown()
    check_whole(done, 12)
    (posted,) = Mailbox.got
    assert (posted["code"], posted["requests"], posted["last"]["done"], posted["last"]["last"]) == (0, 12, 12, True)
    assert str(done.artifacts / "profile_export.jsonl") in posted["files"]


CALLER = """
import json, logging, sys, threading
import aiperf

url, folder = sys.argv[1:]


class Ears(logging.Handler):
    def emit(self, record):
        if "profiling) started" in record.getMessage() and first is not None:
            threading.Thread(target=lambda: print("asked", run.stop("a thread had enough"))).start()


first = None
logging.getLogger().addHandler(Ears())
logging.getLogger("aiperf").setLevel(logging.INFO)
common = dict(model="m", url=url, streaming=True, tokenizer="builtin", isl=10, osl=4, server_metrics=False)
with aiperf.Run() as run:
    first = run.profile(request_count=10, artifact_dir=f"{folder}/first", **common)
    idle = run.stop("nothing runs")
    second = run.profile(request_rate=20, benchmark_duration=120, artifact_dir=f"{folder}/second", **common)
print(json.dumps([first.complete, idle, second.cancelled, second.incomplete_reason]))
"""


def test_a_program_stops_a_run_from_a_thread_and_views_see_both(aiperf: Program, simulator: Simulator) -> None:
    done = subprocess.run(
        [sys.executable, "-c", CALLER, simulator.url, str(aiperf.folder)], env=aiperf.environment, capture_output=True,
        text=True, check=True, timeout=600, cwd=aiperf.folder,
    )  # fmt: skip
    asked, told = done.stdout.splitlines()
    assert asked == "asked True"
    *states, reason = json.loads(told)
    assert states == [True, False, True] and reason.startswith("the program stopped the run: a thread had enough")
    assert len({row["begin"] for row in seen(aiperf, "begin")}) == 1, "one process served both plans"
    assert [row["end"] for row in seen(aiperf, "end")] == [0, 130] and len(seen(aiperf, "close")) == 1


def test_a_view_ends_with_a_killed_run(aiperf: Program, simulator: Simulator) -> None:
    run = aiperf.start("profile", "--url", simulator.url, *WORDS, *LONG)
    wait_for(lambda: bool(snapshots(aiperf)))
    pid = int(seen(aiperf, "begin")[0]["begin"])
    run.process.send_signal(signal.SIGKILL)
    run.process.communicate()
    wait_for(lambda: not Path(f"/proc/{pid}").exists())


def test_progress_lines_are_in_the_log_without_escapes(aiperf: Program, simulator: Simulator) -> None:
    done = aiperf(
        "profile", "--url", simulator.url, *WORDS, "--request-count", 100, "--request-rate", 25, "--stats-interval", 0.5,
        "--goodput", "time_to_first_token:5000",
    )  # fmt: skip
    check_whole(done, 100)
    lines = [line.partition(" INFO    ")[2] for line in done.err.splitlines()]
    counts = [line for line in lines if line.startswith("profiling ")]
    assert counts and all(" due  " in line and " sent  " in line and line.endswith(" failed") for line in counts), done.err
    rates = [line for line in lines if " requests/s (so far " in line]
    assert any("TTFT p50 " in line and "ITL p50 " in line and " good (100.0%)" in line for line in rates), done.err
    assert "\x1b" not in done.err
    of_views = {each.lines()[0] for each in snapshots(aiperf)}
    assert of_views.intersection(counts), "views and lines have the same snapshots"


def test_screen_lines_and_api_have_the_same_numbers() -> None:
    told, board = full_snapshot(), Board(live=True)
    Watch(board).show(told)
    counts, numbers = told.lines()[1:]
    shown = panels.metrics(told, 200) + panels.progress(told, 200)
    screen = "\n".join("".join(text for text, _ in line) for line in shown)
    of_api, phase = metrics(board), progress(board)["phases"]["profiling"]
    ttft = of_api["metrics"]["time_to_first_token"]
    for name in ("p50", "p99"):
        assert f"{ttft[name]:,.2f}" in numbers and f"{ttft['recent'][name]:,.2f}" in numbers and f"{ttft[name]:.2f}" in screen
    for field, word in (("due", "due"), ("requests_sent", "sent"), ("requests_completed", "done"), ("in_flight", "in flight")):
        assert f"{phase[field]:,} {word}" in counts and f"{phase[field]:,}" in screen
    assert f"{phase['error_records']:,} failed" in counts and of_api["failures"][0]["count"] == told.failures[0].count
    assert f"{of_api['good']['met']:,} of {of_api['good']['judged']:,} good" in numbers


def test_an_interval_of_zero_logs_no_progress(aiperf: Program, simulator: Simulator) -> None:
    aiperf.environment["AIPERF_UI_REALTIME_METRICS_INTERVAL"] = "0.5"
    done = aiperf("profile", "--url", simulator.url, *WORDS, "--request-count", 40, "--request-rate", 20, "--stats-interval", 0)
    assert "requests/s (so far" not in done.err
    told = aiperf("profile", "--url", simulator.url, *WORDS, "--request-count", 40, "--request-rate", 20)
    assert "requests/s (so far" in told.err, "the variable alone sets the interval"
