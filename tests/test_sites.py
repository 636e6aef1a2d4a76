"""Sites in other directories of this machine, by the package of tests/strangers/annex: the load of a local run; bad days."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import ssl
import subprocess
import sys
import urllib.request
from collections import Counter
from collections.abc import Iterator
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any, ClassVar

import pytest
from aiperf_command_simulate.testing import Simulator, running
from aiperf_testing.server import Certificate
from arrivals import ledger, same_due
from program import Done, Program, variables_of, wait_for
from requirements import ROOT
from rogues import install_from

ANNEX = ROOT / "tests" / "strangers" / "annex"
ROOMS = ("attic", "barn", "cellar")
ENV = shutil.which("env")
KEY = "the-key-that-nobody-may-read"
PROMPT = "the prompt that nobody may read"


@pytest.fixture
def aiperf(tmp_path: Path) -> Program:
    """With the stranger's engine, and rooms for its sites."""
    packages = tmp_path / "packages"
    install_from(packages, ANNEX)
    folder = tmp_path / "runs"
    folder.mkdir()
    for room in ROOMS:
        (folder / room).mkdir()
    return Program(folder, site=packages)


@pytest.fixture
def slow() -> Iterator[Simulator]:
    with running(first_token_ms=20, decode_ms=2, decode_batch_us=0) as simulator:
        yield simulator


def words(simulator: Simulator, *more: str | int, name: str = "run") -> list[str | int]:
    return [
        "profile", "--model", "sim", "--url", simulator.url, "--tokenizer", "builtin", "--isl", 30, "--osl", 4, "--streaming",
        "--random-seed", 7, "--ui", "none", "--artifact-dir", name, *more,
    ]  # fmt: skip


def sites(*names: str) -> tuple[str, ...]:
    return "--engine", "annex", "--annex-rooms", ",".join(names)


def run(aiperf: Program, simulator: Simulator, *more: str | int, name: str = "run", code: int = 0) -> Done:
    simulator.reset()
    done = aiperf(*words(simulator, *more, name=name))
    assert done.code == code, done.err
    return Done(done.code, done.out, done.err, aiperf.folder / name)


def numbers(results: dict[str, Any]) -> dict[str, Any]:
    return {tag: value for tag, value in results.items() if isinstance(value, dict) and "unit" in value}


def test_three_sites_send_what_one_machine_sends(aiperf: Program, simulator: Simulator) -> None:
    load = ("--request-rate", 300, "--request-count", 60, "--concurrency", 50)
    here = run(aiperf, simulator, *load, name="here")
    there = run(aiperf, simulator, *load, *sites(*ROOMS), name="there")
    truth = simulator.truth()["requests"]
    assert same_due(here, there)
    assert {row["request_id"] for row in truth} == {row["x_request_id"] for row in ledger(there)} and len(truth) == 60
    assert Counter(row["worker"] for row in ledger(there)) == {"worker-0": 20, "worker-1": 20, "worker-2": 20}
    places = {f"worker-{i}": room for i, room in enumerate(ROOMS)}
    assert all(row["site"] == places[row["worker"]] for row in ledger(there)) and "site" not in ledger(here)[0]
    records = there.lines("profile_export.jsonl")
    assert all(row["metadata"]["site"] == places[row["metadata"]["worker_id"]] for row in records) and len(records) == 60
    assert (here.artifacts / "inputs.json").read_bytes() == (there.artifacts / "inputs.json").read_bytes()
    assert "--concurrency of phase profiling: 50 = 17 + 17 + 16 at the sites attic, barn, cellar" in there.err

    results = there.json()
    assert results["request_count"]["avg"] == 60 and results["is_complete"]
    assert [site["name"] for site in results["measurement"]["sites"]] == [*ROOMS]
    assert all(site["trips"] >= 40 and site["within_ms"] < 100 for site in results["measurement"]["sites"])
    # The clock of this machine is that of its rooms, so that the offset is known: 0.
    assert all(abs(site["ahead_ms"]) <= site["within_ms"] for site in results["measurement"]["sites"])
    again = aiperf("report", "there", "--output", "again")
    assert again.code == 0, again.err
    checked = aiperf("validate", "there")
    assert checked.code == 0, checked.out
    assert numbers(Done(0, "", "", aiperf.folder / "again").json()) == numbers(results)
    assert [list((aiperf.folder / room).iterdir()) for room in ROOMS] == [[], [], []], "the sites left files"


@pytest.mark.long
def test_raw_records_of_sites_are_those_of_one_machine(aiperf: Program, simulator: Simulator) -> None:
    load = ("--request-rate", 100, "--request-count", 60, "--export-level", "raw", "--workers", 3)
    shift(aiperf, barn=7000)
    here = run(aiperf, simulator, *load, name="here")
    there = run(aiperf, simulator, *load, *sites(*ROOMS), name="there")
    found = []
    for done in (here, there):
        rows = {row["metadata"]["session_num"]: row for row in done.lines("profile_export_raw.jsonl")}
        assert len(rows) == 60 and all(row["status"] == 200 and words_in(row) for row in rows.values())
        found.append({n: row["payload"] for n, row in rows.items()})
    assert found[0] == found[1]
    starts = [row["start_perf_ns"] for row in sorted(there.lines("profile_export_raw.jsonl"), key=number_of)]
    assert max(starts) - min(starts) < 60e9, "instants of the barn are not on the run's clock"
    ahead = {site["name"]: site for site in there.json()["measurement"]["sites"]}
    for room, planted_ms in (("attic", 0.0), ("barn", 7e6), ("cellar", 0.0)):
        assert abs(ahead[room]["ahead_ms"] - planted_ms) <= ahead[room]["within_ms"] < 100, room
    assert same_due(there, here)
    segments = {path.name for path in (there.artifacts / "journal").glob("shard-*.seg")}
    assert segments >= {"shard-0.0.seg", "shard-1.0.seg", "shard-2.0.seg"}

    raw = (there.artifacts / "profile_export_raw.jsonl").read_bytes()
    for path in (there.artifacts / "journal").glob("columns-1.*"):
        path.unlink()  # a report reads the barn's requests in its segments
    again = aiperf("report", "there", "--output", "again")
    assert again.code == 0, again.err
    again = Done(0, "", "", aiperf.folder / "again")
    assert again.json()["request_count"]["avg"] == 60
    assert (again.artifacts / "profile_export_raw.jsonl").read_bytes().count(b"\n") == raw.count(b"\n") == 60
    assert same_due(again, here)


def shift(aiperf: Program, **rooms: int) -> None:
    """Let monotonic clocks of sites be so many seconds ahead."""
    if not shiftable():
        pytest.skip("this kernel has no time namespaces, or doesn't let us use them")
    unshare = "exec unshare -Ur -T --kill-child --monotonic"
    cases = "\n".join(f'*/{room}) {unshare} {ahead} {ENV} "$@";;' for room, ahead in rooms.items())
    stand_in(aiperf, f'#!/bin/sh\ncase $2 in\n{cases}\nesac\nexec {ENV} "$@"\n')


@cache
def shiftable() -> bool:
    unshare = ("unshare", "-Ur", "-T", "--monotonic", "7", "--kill-child", "true")
    return shutil.which("unshare") is not None and subprocess.run(unshare, capture_output=True, check=False).returncode == 0


def stand_in(aiperf: Program, script: str) -> None:
    """Let the stranger's engine find this in the place of ``env``."""
    program = aiperf.folder / "bin" / "env"
    program.parent.mkdir()
    program.write_text(script)
    program.chmod(0o755)
    aiperf.environment["PATH"] = f"{program.parent}:{aiperf.environment['PATH']}"
    aiperf.program = [sys.executable, "-m", "aiperf"]


def number_of(row: dict[str, Any]) -> int:
    number: int = row["metadata"]["session_num"]
    return number


def words_in(row: dict[str, Any]) -> str:
    """What the answer says."""
    pieces = [packet["value"] for answer in row["responses"] for packet in answer["packets"] if packet["name"] == "data"]
    events = [json.loads(piece) for piece in pieces if piece != "[DONE]"]
    return "".join(choice["delta"].get("content") or "" for event in events for choice in event["choices"])


@pytest.mark.long
def test_sites_divide_a_ceiling_and_claim_a_burst_in_blocks(aiperf: Program, slow: Simulator) -> None:
    load = ("--concurrency", 3, "--request-count", 90)
    here = run(aiperf, slow, *load, name="here")
    done = run(aiperf, slow, *load, "--workers", 4, *sites("attic", "barn"))
    assert slow.summary()["in_flight_max"] <= 3 and slow.summary()["requests"] == 90
    assert [row["n"] for row in ledger(done)] == [*range(90)]
    assert {row["worker"] for row in ledger(done)} <= {f"worker-{i}" for i in range(4)}
    sent = Counter(int(row["worker"][-1]) % 2 for row in ledger(done))
    assert 48 <= sent[0] <= 72, "the attic has two of three slots, and both end together"
    assert entries(done) == entries(here) and len(entries(here)) == 90

    sessions = ("--concurrency", 3, "--num-sessions", 14, "--session-turns-mean", 3, "--session-turns-stddev", 1)
    here, there = (run(aiperf, slow, *sessions, *more, name=f"t{len(more)}") for more in ((), sites(*ROOMS)))
    assert [row["n"] for row in ledger(there)] == [row["n"] for row in ledger(here)] == [*range(len(ledger(here)))]
    assert Counter(row["session"] for row in ledger(there)) == Counter(row["session"] for row in ledger(here))
    assert there.json()["is_complete"]


def entries(done: Done) -> dict[int, str]:
    """The conversation of each session."""
    rows = [row["metadata"] for row in done.lines("profile_export.jsonl")]
    return {row["session_num"]: row["conversation_id"] for row in rows}


@pytest.mark.long
def test_bursts_end_by_sessions_with_several_workers_at_a_site(aiperf: Program, slow: Simulator) -> None:
    for count, workers in ((40, 6), (9, 3)):
        load = ("--concurrency", 9, "--num-sessions", count, "--workers", workers)
        done = run(aiperf, slow, *load, *sites(*ROOMS), name=f"sessions{count}")
        assert [row["n"] for row in ledger(done)] == [*range(count)] and done.json()["is_complete"]


@pytest.mark.long
def test_a_site_that_dies_in_a_burst_loses_its_own_block(aiperf: Program, slow: Simulator) -> None:
    slow.reset()
    started = aiperf.start(*words(slow, "--concurrency", 6, "--request-count", 2000, *sites(*ROOMS)))
    wait_for(lambda: slow.summary()["requests"] > 100)
    os.kill(site_in(aiperf, "barn"), signal.SIGKILL)
    ended = started.end()
    done = Done(ended.code, ended.out, ended.err, aiperf.folder / "run")
    assert done.code == 1 and "the site barn was lost" in done.json()["incomplete_reason"]
    rows = ledger(done)
    assert [row["n"] for row in rows] == [*range(2000)]
    assert {row["outcome"] for row in rows if row.get("worker") is None} == {"unknown"}
    seen = Counter(row["request_id"] for row in slow.truth()["requests"])
    assert max(seen.values()) == 1


@pytest.mark.long
def test_limits_rise_at_sites_as_on_one_machine(aiperf: Program, slow: Simulator) -> None:
    load = ("--concurrency", 8, "--concurrency-ramp-duration", 3, "--request-count", 200, "--workers", 3)
    done = run(aiperf, slow, *load, *sites(*ROOMS))
    assert slow.summary()["in_flight_max"] <= 8 and slow.summary()["requests"] == 200
    rows = done.lines("profile_export.jsonl")
    begin = min(row["metadata"]["request_start_ns"] for row in rows)
    spans = [(row["metadata"]["request_start_ns"] - begin, row["metadata"]["request_end_ns"] - begin) for row in rows]
    for at, _ in spans:
        in_flight = sum(start <= at < end for start, end in spans)
        assert in_flight <= 1 + 7 * (at + 20e6) / 3e9, f"{in_flight} requests {at / 1e9:.3f} s after the first"
    both = ("--request-rate", 100, "--prefill-concurrency", 6, "--prefill-concurrency-ramp-duration", 1, "--concurrency", 20)
    done = run(aiperf, slow, *both, "--concurrency-ramp-duration", 1, "--request-count", 60, *sites(*ROOMS), name="both")
    assert [row["n"] for row in ledger(done)] == [*range(60)] and slow.summary()["requests"] == 60


@pytest.mark.long
def test_sessions_and_a_recorded_trace_are_whole_at_sites(aiperf: Program, simulator: Simulator) -> None:
    sessions = ("--request-rate", 200, "--num-sessions", 12, "--session-turns-mean", 3)
    here, there = (run(aiperf, simulator, *sessions, *more, name=f"s{len(more)}") for more in ((), sites(*ROOMS)))
    assert len(ledger(here)) == len(ledger(there)) and there.json()["is_complete"]
    trace = aiperf.folder / "trace.jsonl"
    rows = [{"timestamp": 10 * n, "text_input": f"line {n}", "output_length": 3} for n in range(30)]
    trace.write_text("".join(json.dumps(row) + "\n" for row in rows))
    replay = ("--input-file", trace.name, "--custom-dataset-type", "mooncake_trace", "--fixed-schedule")
    plain = [word for word in words(simulator) if word not in ("--isl", 30, "--osl", 4)]
    found = []
    for name, more in (("here", ()), ("there", sites(*ROOMS))):
        done = aiperf(*plain[:-1], name, *replay, *more)
        assert done.code == 0, done.err
        found.append(Done(0, "", "", aiperf.folder / name))
    assert same_due(found[0], found[1], count=30)


@pytest.mark.long
def test_a_site_that_dies_is_named_and_what_came_of_it_counts(aiperf: Program, simulator: Simulator) -> None:
    simulator.reset()
    started = aiperf.start(*words(simulator, "--request-rate", 40, "--request-count", 400, *sites(*ROOMS)))
    columns = aiperf.folder / "run" / "journal" / "columns-1.0"
    wait_for(lambda: columns.exists() and columns.stat().st_size > 0)
    os.kill(site_in(aiperf, "barn"), signal.SIGKILL)
    done = started.end()
    done = Done(done.code, done.out, done.err, aiperf.folder / "run")
    assert done.code == 1
    rest = "what came of it counts, and the rest of its arrivals is unknown"
    lost = f"the site barn was lost: its command was killed by SIGKILL; {rest}"
    assert lost in done.json()["incomplete_reason"] and f"results are partial: {lost}" in done.last_words
    rows = Counter((row.get("worker"), row["outcome"]) for row in ledger(done))
    assert sum(rows.values()) == 400 and rows["worker-1", "completed"] > 0 and rows[None, "unknown"] > 0
    assert {row["site"] for row in ledger(done) if row["n"] % 3 == 1} == {"barn"}
    assert done.json()["measurement"]["verdict"] == "suspect"
    seen = {row["request_id"] for row in simulator.truth()["requests"]}
    assert {row["x_request_id"] for row in ledger(done) if row["outcome"] == "completed"} <= seen
    (barn,) = [site for site in done.json()["measurement"]["sites"] if "lost" in site]
    assert barn["name"] == "barn"


def site_in(aiperf: Program, room: str) -> int:
    """The process of a site."""
    place = f"TMPDIR={(aiperf.folder / room).absolute()}".encode()
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if b"aiperf.run.site_process" in (entry / "cmdline").read_bytes() and place in variables_of(int(entry.name)):
                return int(entry.name)
        except OSError:
            continue
    raise AssertionError(f"no site is in {room}")


@pytest.mark.long
def test_a_worker_that_dies_at_a_site_is_replaced_there(aiperf: Program, simulator: Simulator) -> None:
    started = aiperf.start(*words(simulator, "--request-rate", 40, "--request-count", 200, *sites("attic", "barn")))
    columns = aiperf.folder / "run" / "journal" / "columns-1.0"
    wait_for(lambda: columns.exists() and columns.stat().st_size > 0)
    for pid, command in started.processes().items():
        if re.search(r"aiperf\.worker\.process .* 1 ", f"{command} "):
            os.kill(pid, signal.SIGKILL)
    done = started.end()
    done = Done(done.code, done.out, done.err, aiperf.folder / "run")
    assert "worker 1 was killed by SIGKILL at the site barn" in done.err
    rows = ledger(done)
    assert [row["n"] for row in rows] == [*range(200)]
    assert {row["outcome"] for row in rows if row.get("worker") != "worker-1"} <= {"completed", "unknown"}
    assert sum(row["outcome"] == "completed" for row in rows) > 150


@pytest.mark.long
def test_a_running_view_names_the_site_of_each_worker(aiperf: Program, simulator: Simulator) -> None:
    load = ("--request-rate", 40, "--benchmark-duration", 60, "--api-port", 0)
    started = aiperf.start(*words(simulator, *load, *sites("attic", "barn")))
    started.hears("/#")  # before the token
    served = re.search(r"served on http://[^/]+:(\d+)/#", started._said)
    assert served is not None
    port = int(served[1])

    def workers() -> list[dict[str, Any]]:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/api/workers", timeout=60) as answer:
            return list(json.load(answer)["workers"].values())

    wait_for(lambda: len(workers()) == 2 and all((each["health"] or {}).get("cpu_usage") is not None for each in workers()))
    assert [each["site"] for each in workers()] == ["attic", "barn"]
    pids = started.processes()
    assert all(each["health"]["pid"] in pids and each["health"]["memory_usage"] > 1 << 20 for each in workers())
    started.interrupt()
    assert started.end().code == 130


@pytest.mark.long
def test_an_interrupt_reaches_every_site(aiperf: Program, simulator: Simulator) -> None:
    started = aiperf.start(*words(simulator, "--request-rate", 40, "--request-count", 4000, *sites(*ROOMS)))
    started.hears("Phase profiling (profiling) started")
    wait_for(lambda: simulator.summary()["requests"] > 20)
    started.interrupt()
    done = started.end()
    done = Done(done.code, done.out, done.err, aiperf.folder / "run")
    sent = simulator.summary()["requests"]
    assert done.code == 130 and started.survivors() == []
    outcomes = Counter(row["outcome"] for row in ledger(done))
    assert outcomes["never_sent"] + sent == 4000 and outcomes["unknown"] == 0
    assert done.json()["request_count"]["avg"] == sent


@pytest.mark.long
def test_neither_key_nor_prompt_stands_where_others_read(aiperf: Program, simulator: Simulator) -> None:
    data = aiperf.folder / "data.jsonl"
    data.write_text(json.dumps({"text": PROMPT}) + "\n")
    load = ("--request-rate", 20, "--request-count", 60, "--api-key", KEY, "--input-file", data.name)
    plain = [word for word in words(simulator) if word not in ("--isl", 30)]
    started = aiperf.start(*plain, "--custom-dataset-type", "single_turn", *load, *sites("attic"))
    started.hears("Phase profiling (profiling) started")
    own = started.process.pid
    for pid in set(started.processes()) - {own}:
        told = b"\n".join(variables_of(pid)) + Path(f"/proc/{pid}/cmdline").read_bytes()
        assert KEY.encode() not in told and PROMPT.encode() not in told
    assert started.end().code == 0
    assert {row["authorized"] for row in simulator.truth()["requests"] if "authorized" in row} <= {True}
    logs = [path.read_text() for path in (aiperf.folder / "run" / "logs").iterdir()]
    assert logs and not any(KEY in log or PROMPT in log for log in logs)


class Chat(BaseHTTPRequestHandler):
    """A server's answers; it counts those to clients with a certificate."""

    protocol_version = "HTTP/1.1"
    known: ClassVar[list[str]] = []

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        assert isinstance(self.connection, ssl.SSLSocket)
        if self.connection.getpeercert():
            self.known.append(self.headers["X-Request-ID"])
        body = b'{"choices": [{"message": {"role": "assistant", "content": "yes"}, "finish_reason": "stop"}]}'
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.mark.long
@pytest.mark.skipif(shutil.which("openssl") is None, reason="needs openssl to make a certificate")
def test_sites_show_the_clients_certificate_and_keep_no_key(aiperf: Program, tmp_path: Path) -> None:
    made, Chat.known = Certificate.made(tmp_path), []
    wanting = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=made.cert)
    wanting.verify_mode = ssl.CERT_REQUIRED
    wanting.load_cert_chain(made.cert, made.key)
    with ThreadingHTTPServer(("127.0.0.1", 0), Chat) as server:
        server.socket = wanting.wrap_socket(server.socket, server_side=True)
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            done = aiperf(
                "profile", "--model", "sim", "--url", f"https://127.0.0.1:{server.server_port}", "--tokenizer", "builtin",
                "--isl", 30, "--osl", 4, "--ui", "none", "--artifact-dir", "run", "--request-rate", 30, "--request-count", 12,
                "--ca-file", made.cert, "--client-cert", made.cert, "--client-key", made.key, *sites("attic", "barn"),
            )  # fmt: skip
        finally:
            server.shutdown()
            thread.join()
    assert done.code == 0, done.err
    assert len(Chat.known) == 12
    secret = made.key.read_bytes().splitlines()[1]
    left = [path for path in aiperf.folder.rglob("*") if path.is_file() and secret in path.read_bytes()]
    assert left == [] and [list((aiperf.folder / room).iterdir()) for room in ROOMS] == [[], [], []]


PACED = ("--request-rate", 9, "--request-count", 9)
REFUSED = [
    (("--concurrency", 2, "--request-count", 9), ROOMS, "--concurrency 2 of phase profiling can't be divided among 3 sites"),
    ((*PACED, "--workers", 4), ROOMS, "--workers 4 can't be divided among 3 sites"),
    (PACED, ("attic", "moon"), "--annex-rooms: moon is no directory"),
    (PACED, ("attic", "barn", "attic"), "has attic, barn, attic"),
]


@pytest.mark.parametrize(("load", "rooms", "said"), REFUSED, ids=[case[2][:30] for case in REFUSED])
def test_what_sites_cannot_do_is_refused(
    aiperf: Program, simulator: Simulator, load: tuple[str | int, ...], rooms: tuple[str, ...], said: str
) -> None:
    done = run(aiperf, simulator, *load, *sites(*rooms), code=1)
    assert said in done.err and simulator.summary()["requests"] == 0


@pytest.mark.long
@pytest.mark.parametrize(("stands", "said"), [
    ("#!/bin/sh\nexit 3\n", "error: site attic: its command exited with 3"),
    ("#!/bin/sh\necho no room for you >&2; exit 1\n", "error: site attic: its command exited with 1 (no room for you)"),
])  # fmt: skip
def test_a_site_that_does_not_start_ends_the_run_before_the_load(
    aiperf: Program, simulator: Simulator, stands: str, said: str
) -> None:
    stand_in(aiperf, stands)
    done = run(aiperf, simulator, *PACED, *sites("attic"), code=1)
    assert said in done.err and simulator.summary()["requests"] == 0
