"""An endpoint of a third party whose requests take several exchanges, against a server that judges."""

from __future__ import annotations

import importlib.util
import json
import threading
from collections import Counter
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise
from time import monotonic

import pytest
from environments import Shelf, suite
from program import Done, Program
from requirements import ROOT

if importlib.util.find_spec("uv_build") is None:
    pytest.skip("the build backend uv_build is not installed, so no wheel can be made", allow_module_level=True)

JOBS, POLLS = 6, 3
Seen = tuple[float, str, str, str | None, str | None]
"""A request: instant, method, path, its id, and its session's."""


class Server(BaseHTTPRequestHandler):
    """A job is done with its third poll.  *broken*: the first answer has no id.

    endless: no job is done, and the third answer to polls of the first one breaks off, until this event.
    file_bytes: length of the file of each result, of which the second one is missing; None makes no files.
    """

    protocol_version = "HTTP/1.1"
    seen: list[Seen]
    endless: threading.Event | None = None
    broken = False
    file_bytes: int | None = None
    lock = threading.Lock()

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        with self.lock:
            number = sum(method == "POST" for _, method, *_ in self.note())
        self.answer(200, {"job": number} if self.broken and number == 1 else {"id": f"j{number}"})

    def do_GET(self) -> None:
        with self.lock:
            polls = sum(path == self.path for _, _, path, *_ in self.note())
        if self.path.startswith("/files/"):
            missing = self.path == "/files/j2"
            self.answer(404 if missing else 200, b"" if missing else b"f" * (self.file_bytes or 0))
        elif self.endless is not None and self.path == "/jobs/j1" and polls == POLLS:
            self.send_response(202)
            self.send_header("Content-Length", "2")
            self.end_headers()
            self.endless.wait(600)
            self.close_connection = True
        elif self.endless is not None or polls < POLLS:
            self.answer(202, {})
        else:
            file = {} if self.file_bytes is None else {"file": self.path.replace("jobs", "files")}
            self.answer(200, {"result": "one two three", **file})

    def note(self) -> list[Seen]:
        headers = self.headers.get("X-Request-ID"), self.headers.get("X-Correlation-ID")
        self.seen.append((monotonic(), self.command, self.path, *headers))
        return self.seen

    def answer(self, status: int, body: dict[str, object] | bytes) -> None:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture(scope="module")
def aiperf(tmp_path_factory: pytest.TempPathFactory) -> Program:
    """The suite with the stranger, installed as a wheel."""
    work = tmp_path_factory.mktemp("jobs")
    shelf = Shelf(work / "shelf", {"acme-jobs": ROOT / "tests" / "strangers" / "jobs"})
    made = Program(work, python=shelf.environment(work / "environment", [*suite(), "acme-jobs"]))
    made.environment["AIPERF_CACHE_DIR"] = str(work / "cache")
    return made


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    Server.seen = []
    made = ThreadingHTTPServer(("127.0.0.1", 0), Server)
    made.daemon_threads = True
    threading.Thread(target=made.serve_forever, args=(0.02,), daemon=True).start()
    yield f"http://127.0.0.1:{made.server_address[1]}"
    made.shutdown()
    made.server_close()


def profile(aiperf: Program, url: str, *words: str | int) -> Done:
    return aiperf(
        "profile", "--model", "m", "--url", url, "--endpoint-type", "jobs", "--tokenizer", "builtin", "--isl", 20,
        "--ui", "none", "--no-server-metrics", *words,
    )  # fmt: skip


@pytest.fixture(scope="module")
def run(aiperf: Program, server: str) -> tuple[Done, list[Seen]]:
    """Six jobs at the same time, and what the server saw."""
    Server.seen = []
    sticky = ("--connection-reuse-strategy", "sticky-user-sessions")
    done = profile(aiperf, server, "--concurrency", JOBS, "--request-count", JOBS, *sticky)
    return done, Server.seen


def test_each_arrival_is_one_job_and_no_poll_follows_its_result(
    run: tuple[Done, list[Seen]],
) -> None:
    done, seen = run
    assert done.code == 0, done.err
    asked = Counter((method, path) for _, method, path, *_ in seen)
    assert asked == {("POST", "/jobs"): JOBS, **{("GET", f"/jobs/j{i + 1}"): POLLS for i in range(JOBS)}}
    assert set(Counter(each[3] for each in seen).values()) == {1 + POLLS}, "one id for all exchanges of a request"
    assert len({each[3:] for each in seen}) == JOBS
    results = done.json()
    assert results["request_count"]["avg"] == JOBS
    assert results["output_sequence_length"]["avg"] == 3


def test_polls_are_not_in_lockstep(run: tuple[Done, list[Seen]]) -> None:
    done, _ = run
    legs = [line["legs"] for line in done.lines("profile_export_arrivals.jsonl")]
    waits = [[later["started_ns"] - earlier["ended_ns"] for earlier, later in pairwise(row)] for row in legs]
    flat = [wait for row in waits for wait in row]
    assert min(flat) >= 0.05e9, "half of the interval"
    assert len({round(wait / 1e6) for wait in flat}) > JOBS, "each wait is its own"


def test_a_request_is_one_row_with_its_legs(run: tuple[Done, list[Seen]]) -> None:
    done, _ = run
    arrivals, records = done.lines("profile_export_arrivals.jsonl"), done.lines("profile_export.jsonl")
    assert len(arrivals) == len(records) == JOBS
    gaps = []
    for line in arrivals:
        legs = line["legs"]
        assert [leg["status"] for leg in legs] == [200, 202, 202, 200]
        assert [leg.get("polled", False) for leg in legs] == [False, True, True, True]
        stamps = [leg[name] for leg in legs for name in ("started_ns", "first_byte_ns", "ended_ns")]
        assert stamps == sorted(stamps)
        assert (legs[0]["started_ns"], legs[-1]["ended_ns"]) == (line["started_ns"], line["last_byte_ns"])
        record = records[line["record_line"] - 1]["metrics"]["request_latency"]["value"]
        assert record == pytest.approx((legs[-1]["ended_ns"] - legs[0]["started_ns"]) / 1e6)
        gaps.append((legs[-1]["started_ns"] - legs[-2]["started_ns"]) / 1e6)
    measured = done.json()["measurement"]
    assert measured["poll_gap_ms"]["max"] == pytest.approx(max(gaps))
    assert [each["numbers"].keys() for each in measured["findings"] if each["kind"] == "polled_answers"] == [
        {"poll_gap_p50_ms", "poll_gap_p99_ms"}
    ]
    assert "known by polling" in " ".join(done.out.split())


def test_the_timeout_covers_all_exchanges(aiperf: Program, server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    over = threading.Event()
    monkeypatch.setattr(Server, "endless", over)
    Server.seen = []
    done = profile(aiperf, server, "--concurrency", 2, "--request-count", 2, "--request-timeout-seconds", 3)
    over.set()
    assert done.code == 1
    lines = done.lines("profile_export_arrivals.jsonl")
    assert [line["outcome"] for line in lines] == ["error", "error"], "whether a poll or a wait ends is chance"
    assert sorted(len(line["legs"]) > POLLS + 1 for line in lines) == [False, True], "one stands in its third poll"
    errors = [record["error"]["type"] for record in done.lines("profile_export.jsonl")]
    assert errors == ["TimeoutError", "TimeoutError"]


def test_an_exception_of_follow_fails_its_request_alone(aiperf: Program, server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Server, "broken", True)
    Server.seen = []
    done = profile(aiperf, server, "--request-count", 3)
    outcomes = [line["outcome"] for line in done.lines("profile_export_arrivals.jsonl")]
    assert sorted(outcomes) == ["completed", "completed", "error"]
    assert "can't follow the answer" in next(
        record["error"]["message"] for record in done.lines("profile_export.jsonl") if record.get("error")
    )
    assert "acme-jobs 0.1.0" in " ".join(done.json()["warnings"])


def test_a_file_is_counted_and_not_kept(aiperf: Program, server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Server, "file_bytes", 3_000_000)
    Server.seen = []
    done = profile(aiperf, server, "--request-count", 3, "--export-level", "raw")
    assert done.code == 0, done.err
    records = done.lines("profile_export.jsonl")
    assert [record["metrics"]["output_sequence_length"]["value"] for record in records if not record.get("error")] == [3, 3]
    (error,) = [record["error"] for record in records if record.get("error")]
    assert (error["type"], error["code"]) == ("FileError", 404)
    for line in (each for each in done.lines("profile_export_arrivals.jsonl") if each["outcome"] == "completed"):
        leg = line["legs"][-1]
        assert not leg.get("polled") and line["last_byte_ns"] == leg["ended_ns"], "the latency ends with the file"
    journal = done.artifacts / "journal"
    assert sum(file.stat().st_size for file in journal.iterdir()) < 1_000_000, "nothing of the files is in the journal"


def test_the_package_has_no_fault(aiperf: Program) -> None:
    done = aiperf("plugins", "validate", "acme-jobs", "--json")
    assert done.code == 0 and json.loads(done.out)["faults"] == [], done.out
