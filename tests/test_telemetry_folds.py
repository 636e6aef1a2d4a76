"""A page of metrics whose truth is known, in real runs: what their series come to, also after bad days."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from collections.abc import Iterator
from datetime import datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from aiperf_command_simulate.testing import Simulator
from program import Done, Program, Running, wait_for
from test_strangers import Overlay

SOURCE = """
import json, math
from aiperf import Options, option
from aiperf.sdk.telemetry import Digest, Histogram, Point, Reading, SeriesDeclaration, SeriesKind, SeriesTable, TelemetrySource

TABLE = SeriesTable(
    SeriesDeclaration("level", "m"), SeriesDeclaration("flow", "m3", SeriesKind.COUNTER, flows=True),
    SeriesDeclaration("wait", "s", SeriesKind.HISTOGRAM, flows=True),
    SeriesDeclaration("gate", kind=SeriesKind.INFO, labels=("side",)),
    SeriesDeclaration("ebb", "s", SeriesKind.SUMMARY, flows=True),
)

class Where(Options):
    url: str = option("--tides-url", default="", help="Where the page is.")

class Thing(TelemetrySource[Where]):
    interval_s = 0.05

    def sample(self):
        fetched = self.context.fetch(self.options.url, 600)
        return Reading([*self.points(json.loads(fetched.body))], fetched.sent_ns, fetched.at_ns)

    def points(self, page):
        for name in ("level", "flow"):
            yield TABLE.point(name, page[name], at_ns=page["at_ns"])
        counts = page["counts"]
        yield TABLE.point("wait", Histogram((1.0, 2.0, math.inf), tuple(counts), 1.5 * counts[-1]), at_ns=page["at_ns"])
        yield TABLE.point("ebb", Digest({0.9: page["level"]}, counts[-1], 3 * counts[-1]), at_ns=page["at_ns"])
        yield TABLE.point("gate", 1, "lee")
"""


MANIFEST = """schema_version: 1
api: ">=1,<2"
plugins:
  - category: telemetry
    name: tides
    summary: How high the water is.
    capabilities: {needs_option: url}
    options_model: "acme_tides:Where"
    options:
      - {field: url, flags: [--tides-url], help: Where the page is., type: str, metavar: TEXT, default: ''}
"""
"""The load waits for a source that is named."""
NAMES = {"level", "flow", "wait", "gate", "ebb", "ebb_sum", "ebb_count"}


class Tides:
    """A page whose level rises by 1 m/s, whose flow is 5 m3/s, and which observes 40 waits/s, a quarter of them up to 1 s and
    the others up to 2 s.  Each page says at which instant its values hold.  *dry*: no answer comes until it is False."""

    def __init__(self) -> None:
        tides, self.began_ns = self, time.time_ns()
        self.pages = 0
        self._open = threading.Event()
        self._open.set()

        class Page(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                tides._open.wait()
                at_ns = time.time_ns()
                since_s = (at_ns - tides.began_ns) / 1e9
                counts = [10 * since_s, 40 * since_s, 40 * since_s]
                body = json.dumps({"at_ns": at_ns, "level": since_s, "flow": 5 * since_s, "counts": counts}).encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)
                tides.pages += 1

            def log_message(self, *_: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Page)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def dry(self) -> None:
        self._open.clear()

    def close(self) -> None:
        self._open.set()
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture(scope="module")
def shared_tides() -> Iterator[Tides]:
    made = Tides()
    yield made
    made.close()


@pytest.fixture
def tides() -> Iterator[Tides]:
    made = Tides()
    yield made
    made.close()


def program(folder: Path) -> Program:
    """The program in an environment with a source that reads the page."""
    overlay = Overlay(folder / "overlay")
    overlay.add("acme-tides", "telemetry", "tides", code=SOURCE, manifest=MANIFEST)
    made = Program(folder)
    made.environment |= {"PYTHONPATH": str(overlay.folder), "AIPERF_CACHE_DIR": str(folder / "cache")}
    return made


@pytest.fixture
def aiperf(tmp_path: Path) -> Program:
    return program(tmp_path)


@pytest.fixture(scope="module")
def finished(
    shared_tides: Tides, shared_simulator: Simulator, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Program, Done]:
    """A run that nothing disturbed."""
    aiperf = program(tmp_path_factory.mktemp("finished"))
    run = aiperf(*words(shared_simulator, shared_tides, seconds=1.8))
    assert run.code == 0, run.err
    return aiperf, run


def words(simulator: Simulator, tides: Tides, *, seconds: float) -> list[str | float]:
    return [
        "profile", "--model", "m", "--url", simulator.url, "--tokenizer", "builtin", "--isl", 10, "--osl", 4, "--ui", "none",
        "--request-rate", 40, "--benchmark-duration", seconds, "--warmup-request-count", 5, "--slice-duration", 0.5,
        "--tides-url", f"http://127.0.0.1:{tides.server.server_port}/tides",
    ]  # fmt: skip


def source(run: Done) -> dict[str, Any]:
    (found,) = run.json()["telemetry"]
    return dict(found)


def check(series: list[dict[str, Any]], tides: Tides, begin_ns: float, end_ns: float) -> None:
    """The statistics of all series between two instants of the wall clock are those of the page."""
    stats = {row["name"]: row["stats"] for row in series}
    assert NAMES - {"gate"} <= stats.keys() <= NAMES, "a short warmup may lie between two samples, and an info counts samples"
    assert "gate" in stats or end_ns - begin_ns < 3e8
    begin_s, end_s, seconds = (begin_ns - tides.began_ns) / 1e9, (end_ns - tides.began_ns) / 1e9, (end_ns - begin_ns) / 1e9
    level, near = stats["level"], pytest.approx
    assert [level["min"], level["avg"], level["max"]] == near([begin_s, (begin_s + end_s) / 2, end_s], abs=0.002)
    assert level["std"] == near(seconds / 12**0.5, abs=0.002)
    assert level["p50"] == near((begin_s + end_s) / 2, abs=0.2) and level["p1"] <= level["p25"] <= level["p99"]
    assert [stats["flow"]["total"], stats["flow"]["rate"]] == near([5 * seconds, 5], rel=1e-3)
    assert [stats["wait"]["count"], stats["wait"]["sum"]] == near([40 * seconds, 60 * seconds], rel=1e-3)
    assert stats["ebb"] == level and stats["ebb_count"]["rate"] == near(40, rel=1e-3)
    assert stats["ebb_sum"]["total"] == near(120 * seconds, rel=1e-3)
    (buckets,) = (row["buckets"] for row in series if row["name"] == "wait")
    assert [*buckets.values()] == near([10 * seconds, 40 * seconds, 40 * seconds], rel=1e-3)
    assert (stats["wait"]["p50_low"], stats["wait"]["p50_high"]) == (1, 2)


def instant(text: str) -> float:
    return datetime.fromisoformat(text).timestamp() * 1e9


def check_run(run: Done, tides: Tides) -> None:
    """All phases and slices; the last slice may be shorter than the way between two samples."""
    first_ns = min(target["first_fetch_ns"] for target in source(run)["targets"])
    for phase in run.json()["phases"]:
        if instant(phase["start_time"]) < first_ns + 5e7:  # the machine is very busy, and the source came with the load
            continue
        series = [row for row in source(run)["series"] if row["phase"] == phase["index"]]
        check(series, tides, instant(phase["start_time"]), instant(phase["end_time"]))
    slices = json.loads((run.artifacts / "profile_export_aiperf_timeslices.json").read_text())["timeslices"]
    assert len(slices) >= 3
    for part in slices[:-1]:
        check(part["telemetry"], tides, part["start_ns"], part["end_ns"])


def results(run: Done) -> list[str]:
    return [(run.artifacts / f"profile_export_aiperf{end}").read_text() for end in (".json", "_timeslices.json")]


def folds(run: Done) -> Path:
    return run.artifacts / "journal" / "telemetry-0.folds"


def source_process(run: Running) -> int:
    (pid,) = (pid for pid, command in run.processes().items() if "aiperf_companion_telemetry.process" in command)
    return pid


def test_folds_are_the_truth_and_those_of_the_samples(
    finished: tuple[Program, Done], shared_tides: Tides, tmp_path: Path
) -> None:
    aiperf, run = finished[0], finished[1].copy(tmp_path / "run")
    check_run(run, shared_tides)
    assert folds(run).is_file() and not folds(run).with_suffix(".draft").exists()
    whole = results(run)
    checked = aiperf("validate", run.artifacts)
    assert checked.code == 0, checked.out
    for folded in (True, False):  # by the run, and not, as directories of earlier versions
        if not folded:
            folds(run).unlink()
        again = aiperf("report", run.artifacts)
        assert again.code == 0 and results(run) == whole, again.err


@pytest.mark.long
def test_a_report_makes_the_statistics_that_a_run_lacks(aiperf: Program, simulator: Simulator, tides: Tides) -> None:
    run = aiperf(*words(simulator, tides, seconds=1.2), "--disable-plugin", "series:by_time")
    assert run.code == 0, run.err
    assert "telemetry" not in run.json() and not folds(run).exists()
    assert any("no plugin of the category series is in use" in warning for warning in run.json()["warnings"])
    again = aiperf("report", run.artifacts)
    assert again.code == 0, again.err
    check_run(run, tides)


def test_without_its_companion_nothing_is_sampled_and_one_warning_names_it(
    aiperf: Program, simulator: Simulator, tides: Tides
) -> None:
    run = aiperf(*words(simulator, tides, seconds=0.2), "--disable-plugin", "companions:telemetry")
    assert run.code == 0 and "telemetry" not in run.json(), run.err
    (line,) = (line for line in run.err.splitlines() if "telemetry" in line)
    assert line.endswith("pip install aiperf-suite") and " WARNING " in line
    assert not {row["category"] for row in run.json()["plugins"]["used"]} & {"telemetry", "series", "companions"}


def test_validate_compares_folds_with_samples(finished: tuple[Program, Done], tmp_path: Path) -> None:
    aiperf, run = finished[0], finished[1].copy(tmp_path / "run")
    data = folds(run).read_bytes()
    label = data.rindex(b"\xa4rate\xcb")  # of the histogram in the last part
    folds(run).write_bytes(data[: label + 8] + b"\x01" + data[label + 9 :])
    assert aiperf("report", run.artifacts).code == 0
    checked = aiperf("validate", run.artifacts)
    assert checked.code == 1 and "says the journal" in checked.out and "telemetry" in checked.out, checked.out


def test_other_slices_are_folded_from_the_samples(
    finished: tuple[Program, Done], shared_tides: Tides, tmp_path: Path
) -> None:
    aiperf, run = finished[0], finished[1].copy(tmp_path / "run")
    before = source(run)
    again = aiperf("report", run.artifacts, "--slice-duration", 0.3)
    assert again.code == 0 and source(run) == before, "phases are the same"
    check_run(run, shared_tides)


def test_a_killed_source_leaves_what_it_measured(aiperf: Program, simulator: Simulator, tides: Tides) -> None:
    running = aiperf.start(*words(simulator, tides, seconds=3.5))
    wait_for(lambda: tides.pages > 20)
    os.kill(source_process(running), signal.SIGKILL)
    killed_ns = time.time_ns()
    run = running.end()
    assert run.code == 0, run.err
    warnings = "\n".join(run.json()["warnings"])
    assert "its process was killed by SIGKILL; there are no further samples" in warnings
    assert "telemetry tides of acme-tides has no sample at the end of phase profiling" in warnings
    assert "phase warmup" not in warnings and not folds(run).exists() and not folds(run).with_suffix(".draft").exists()
    (main,) = (phase for phase in run.json()["phases"] if phase["kind"] == "profiling")
    series = {row["name"]: row["stats"] for row in source(run)["series"] if row["phase"] == main["index"]}
    begin_s, killed_s = ((at_ns - tides.began_ns) / 1e9 for at_ns in (instant(main["start_time"]), killed_ns))
    assert series["level"]["min"] == pytest.approx(begin_s, abs=0.002)
    assert begin_s + 0.2 < series["level"]["max"] <= killed_s
    assert series["flow"]["rate"] == pytest.approx(5, rel=1e-3)
    assert aiperf("validate", run.artifacts).code == 0


@pytest.mark.long
def test_a_source_that_hangs_costs_its_series_alone(aiperf: Program, simulator: Simulator, tides: Tides) -> None:
    running = aiperf.start(*words(simulator, tides, seconds=2.5))
    wait_for(lambda: tides.pages > 20)
    tides.dry()
    run = running.end()
    assert run.code == 0, run.err
    warnings = "\n".join(run.json()["warnings"])
    assert "has no sample at the end of phase profiling" in warnings
    assert {row["phase"] for row in source(run)["series"]} == {0, 1}
    assert aiperf("validate", run.artifacts).code == 0


SLOW = """
import os, time
from aiperf.sdk.telemetry import Absent, Point, TelemetrySource

class Thing(TelemetrySource):
    def start(self):
        "start" == WHAT and time.sleep(600)
        if WHAT == "absent":
            raise Absent("there is no sea here")

    def sample(self):
        "sample" == WHAT and time.sleep(600)
        return [Point("level", 1.0)]

    def stop(self):
        "stop" == WHAT and time.sleep(600)
"""


def test_sources_that_never_start_answer_or_stop_cost_their_samples_alone(tmp_path: Path, simulator: Simulator) -> None:
    overlay, whats = Overlay(tmp_path / "overlay"), ("start", "sample", "stop", "absent")
    for what in whats:
        overlay.add(f"acme-{what}", "telemetry", what, code=f"WHAT = {what!r}\n{SLOW}")
    aiperf = Program(tmp_path)
    aiperf.environment |= {"PYTHONPATH": str(overlay.folder), "AIPERF_CACHE_DIR": str(tmp_path / "cache")}
    run = aiperf(
        "profile", "--model", "m", "--url", simulator.url, "--tokenizer", "builtin", "--isl", 10, "--osl", 4, "--ui", "none",
        "--request-count", 10, "--request-rate", 20, "--warmup-request-count", 2,
    )  # fmt: skip
    assert run.code == 0, run.err
    assert simulator.summary()["requests"] == 12
    assert {each["source"] for each in run.json().get("telemetry", [])} <= {"stop"}
    log = (run.artifacts / "logs" / "aiperf.log").read_text()
    for what in ("start", "sample"):
        assert f"the plugin telemetry:{what} of acme-{what} 0.9 has given no sample" in log
    assert not [warning for warning in run.json().get("warnings", []) if "telemetry:" in warning], "nobody asked for them"


@pytest.mark.long
def test_a_cancelled_run_has_finished_folds(aiperf: Program, simulator: Simulator, tides: Tides) -> None:
    running = aiperf.start(*words(simulator, tides, seconds=60))
    wait_for(lambda: tides.pages > 40)
    running.interrupt()
    run = running.end()
    assert run.code == 130, run.err
    assert folds(run).is_file()
    check_run(run, tides)
    assert aiperf("validate", run.artifacts).code == 0


def test_a_run_that_was_killed_is_reported_from_its_samples(aiperf: Program, simulator: Simulator, tides: Tides) -> None:
    running = aiperf.start(*words(simulator, tides, seconds=60))
    wait_for(lambda: tides.pages > 40)
    running.signal_all(signal.SIGKILL)
    running.process.communicate()
    wait_for(lambda: not running.survivors())
    assert not [*(running.artifacts / "journal").glob("*.folds")]
    again = aiperf("report", running.artifacts)
    run = Done(again.code, again.out, again.err, running.artifacts)
    assert not run.json()["is_complete"]
    phases = {row["phase"] for row in source(run)["series"]}
    assert phases == {0, 1} and {row["name"] for row in source(run)["series"]} == NAMES
    rates = [row["stats"]["rate"] for row in source(run)["series"] if row["name"] == "flow"]
    assert rates == pytest.approx([5, 5], rel=1e-3)
