"""When requests leave, as the server saw it: every mode, limit, ramp and cancellation, compressed in time.

The server's clock is this machine's, and so is the client's: what lies between them is the loopback and two schedulers.
Bounds on single gaps are wide, because tests share their cores; those on counts, orders and limits are exact.  Tests of
gaps are marked ``timing``: nothing else of ours runs beside them.
"""

from __future__ import annotations

import ctypes
import json
import os
import re
import statistics
import struct
from array import array
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from aiperf_command_simulate.testing import Simulator, running
from program import Done, Program, wait_for

MS = 1_000_000
SLACK_MS = 25.0
"""How late a single request may be on a busy machine."""
RELEASE = [*map(int, re.findall(r"\d+", os.uname().release)[:2])]


def profile(
    aiperf: Program, url: str, *words: str, dataset: tuple[str, ...] = ("--isl", "8", "--osl", "3"), seed: int = 7
) -> Done:
    done = aiperf(
        "profile", "--model", "sim", "--url", url, "--tokenizer", "builtin", "--random-seed", seed, "--ui", "none",
        *dataset, *words,
    )  # fmt: skip
    assert done.code == 0, done.err
    return done


def rows(simulator: Simulator) -> list[dict[str, Any]]:
    """The server's log in order of arrival."""
    found: list[dict[str, Any]] = simulator.truth()["requests"]
    return sorted(found, key=lambda row: row["received_mono_ns"])


def starts_ms(found: list[dict[str, Any]]) -> list[float]:
    """Arrivals at the server after the first one, in ms."""
    return [(row["received_mono_ns"] - found[0]["received_mono_ns"]) / MS for row in found]


def gaps_ms(found: list[dict[str, Any]]) -> list[float]:
    return [after - before for before, after in pairwise(starts_ms(found))]


def most_at_once(spans: list[tuple[int, int]]) -> int:
    """The most of the spans that overlap in any instant."""
    events = sorted([(begin, 1) for begin, _ in spans] + [(end, -1) for _, end in spans])
    at_once = most = 0
    for _, step in events:
        at_once += step
        most = max(most, at_once)
    return most


def sessions(found: list[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """Rows by session, in order of their first arrivals."""
    by: dict[str, list[dict[str, Any]]] = {}
    for row in found:
        by.setdefault(row["correlation_id"], []).append(row)
    return by


def due_ms(done: Done) -> list[float]:
    """What was planned: due times after the phase's start."""
    planned = array("q", (done.artifacts / "journal" / "due-0.bin").read_bytes())
    return [at / MS for at in planned]


@pytest.fixture
def steady(request: pytest.FixtureRequest) -> Iterator[Simulator]:
    """A server that takes as long as the test says, whatever the load."""
    with running(decode_ms=1, decode_batch_us=0, **request.param) as simulator:
        yield simulator


@pytest.mark.parametrize("steady", [{"first_token_ms": 30}], indirect=True)
def test_a_burst_keeps_its_concurrency_on_as_many_connections(aiperf: Program, steady: Simulator) -> None:
    profile(aiperf, steady.url, "--concurrency", "4", "--request-count", "12")
    found = rows(steady)
    assert (len(found), steady.summary()["in_flight_max"], len({row["connection"] for row in found})) == (12, 4, 4)


@pytest.mark.timing
def test_constant_arrivals_are_one_gap_apart_and_begin_with_one(aiperf: Program, simulator: Simulator) -> None:
    done = profile(aiperf, simulator.url, "--request-rate", "50", "--arrival-pattern", "constant", "--request-count", "40")
    gaps = gaps_ms(rows(simulator))
    assert statistics.median(gaps) == pytest.approx(20, abs=1)
    assert sum(gaps) == pytest.approx(39 * 20, abs=SLACK_MS)
    assert due_ms(done)[0] == 20.0


@pytest.mark.timing
@pytest.mark.parametrize(("pattern", "variation"), [
    (["--arrival-pattern", "poisson"], 1.0), (["--arrival-smoothness", "4"], 0.5), (["--arrival-smoothness", "0.25"], 2.0),
])  # fmt: skip
def test_random_arrivals_have_the_mean_and_the_variation_asked_for(
    aiperf: Program, simulator: Simulator, pattern: list[str], variation: float
) -> None:
    # With this seed the first 400 arrivals have both to within 1.5 %; tables of arithmetic test the law itself.
    profile(aiperf, simulator.url, "--request-rate", "120", *pattern, "--request-count", "400", seed=3531)
    found = gaps_ms(rows(simulator))
    assert len(found) == 399
    assert statistics.mean(found) == pytest.approx(1000 / 120, rel=0.03)
    assert statistics.pstdev(found) / statistics.mean(found) == pytest.approx(variation, rel=0.06)


@pytest.mark.timing
@pytest.mark.parametrize("steady", [{"first_token_ms": 20}], indirect=True)
def test_a_session_keeps_its_slot_while_it_thinks(aiperf: Program, steady: Simulator) -> None:
    turns = ["--session-turns-mean", "3", "--session-turn-delay-mean", "150"]
    done = profile(aiperf, steady.url, "--concurrency", "2", "--num-sessions", "4", *turns)
    by = sessions(rows(steady))
    assert [len(each) for each in by.values()] == [3, 3, 3, 3]
    assert most_at_once([(each[0]["received_mono_ns"], each[-1]["ended_mono_ns"]) for each in by.values()]) == 2
    for each in by.values():
        for before, after in pairwise(each):
            assert after["received_mono_ns"] - before["ended_mono_ns"] >= 149 * MS
    arrivals = sorted(done.lines("profile_export_arrivals.jsonl"), key=lambda row: (row["session"], row["turn"]))
    for before, after in pairwise(arrivals):
        if after["turn"]:
            assert after["due_ns"] - before["last_byte_ns"] == pytest.approx(150 * MS, abs=0.1 * MS)
            assert 0 <= after["started_ns"] - after["due_ns"] < SLACK_MS * MS


@pytest.mark.timing
@pytest.mark.parametrize("steady", [{"first_token_ms": 2500}], indirect=True)
def test_a_ramped_concurrency_reaches_each_level_in_its_time(aiperf: Program, steady: Simulator) -> None:
    profile(aiperf, steady.url, "--concurrency", "8", "--concurrency-ramp-duration", "1.4", "--request-count", "8")
    assert starts_ms(rows(steady)) == pytest.approx([200 * k for k in range(8)], abs=SLACK_MS)


@pytest.mark.timing
def test_a_ramped_rate_delivers_its_integral(aiperf: Program, simulator: Simulator) -> None:
    ramp = ["--request-rate", "400", "--request-rate-ramp-duration", "2", "--benchmark-duration", "2"]
    done = profile(aiperf, simulator.url, *ramp, "--arrival-pattern", "constant")
    # From 400 · 0.1 / 2 = 20 to 400 requests/s in 2 s: (20 + 400) / 2 · 2 in all, 20 + 190 / 2 in the first second.
    found = [at + due_ms(done)[0] for at in starts_ms(rows(simulator))]
    assert len(found) == pytest.approx(420, abs=2)
    assert sum(at < 1000 for at in found) == pytest.approx(115, abs=4)


@pytest.mark.timing
def test_users_keep_their_pace_and_follow_each_other(aiperf: Program, simulator: Simulator) -> None:
    profile(aiperf, simulator.url, "--user-centric-rate", "20", "--num-users", "5", "--session-turns-mean", "4",
            "--request-count", "30")  # fmt: skip
    found = rows(simulator)
    assert starts_ms(found) == pytest.approx([50 * k for k in range(30)], abs=SLACK_MS)
    names = {identity: number for number, identity in enumerate(sessions(found))}
    order = [names[row["correlation_id"]] for row in found]
    # Five users with 4, 2, 3, 1 and 2 turns left; each is followed in its place by one with all four.
    assert order[:12] == [0, 1, 2, 3, 4, 0, 1, 2, 5, 4, 0, 6]


@pytest.mark.timing
def test_users_with_conversations_of_any_length_miss_no_slot(aiperf: Program, simulator: Simulator) -> None:
    done = profile(aiperf, simulator.url, "--user-centric-rate", "40", "--num-users", "5", "--session-turns-mean", "5",
                   "--session-turns-stddev", "4", "--request-count", "50")  # fmt: skip
    assert "error_request_count" not in done.json()
    assert starts_ms(rows(simulator)) == pytest.approx([25 * k for k in range(50)], abs=SLACK_MS)


TRACE = [1000, 1200, 1500, 2500]


@pytest.mark.timing
@pytest.mark.parametrize(("words", "due"), [
    ([], [0, 200, 500, 1500]),
    (["--fixed-schedule-start-offset", "1100", "--fixed-schedule-end-offset", "1500"], [100, 400]),
    (["--request-count", "2"], [0, 200]),
])  # fmt: skip
def test_a_trace_is_replayed_at_its_times(aiperf: Program, simulator: Simulator, words: list[str], due: list[float]) -> None:
    file = aiperf.folder / "trace.jsonl"
    file.write_text("".join(json.dumps({"timestamp": at, "text_input": "hi", "output_length": 2}) + "\n" for at in TRACE))
    source = ("--input-file", str(file), "--custom-dataset-type", "mooncake_trace", "--fixed-schedule")
    done = profile(aiperf, simulator.url, *words, dataset=source)
    assert due_ms(done) == due
    assert starts_ms(rows(simulator)) == pytest.approx([at - due[0] for at in due], abs=SLACK_MS)
    assert 0 <= done.json()["replay_sched_lag_p50"]["avg"] <= done.json()["replay_sched_lag_p99"]["avg"] < SLACK_MS
    assert done.json()["replay_sched_degraded"]["avg"] == 0


@pytest.mark.parametrize("words", [["--concurrency", "1"], ["--request-rate", "50"]])
def test_a_phase_of_milliseconds_has_its_lag_and_its_processor_time(
    aiperf: Program, simulator: Simulator, words: list[str]
) -> None:
    done = profile(aiperf, simulator.url, *words, "--request-count", "3", "--workers", "1")
    measured = done.json()["measurement"]
    assert measured["loop_lag_ms"]["max"] >= measured["loop_lag_ms"]["p50"] >= 0
    assert len(measured["worker_cpu_pct"]) == 1
    assert ("turnaround_ms" in measured) is ("--concurrency" in words)  # of a closed loop alone


SECONDS = ["--benchmark-duration", "2"]


@pytest.mark.parametrize(("words", "until"), [
    pytest.param(["--concurrency", "20", "--request-count", "40"], "last answer", marks=pytest.mark.timing),
    (["--concurrency", "20", *SECONDS], "duration"),
    (["--request-rate", "12", "--arrival-pattern", "constant", *SECONDS], "duration"),
    (["--user-centric-rate", "12", "--num-users", "4", "--session-turns-mean", "2", *SECONDS], "duration"),
    pytest.param(
        ["--fixed-schedule", "--custom-dataset-type", "mooncake_trace", "--input-file", "trace.jsonl"], "last arrival",
        marks=pytest.mark.timing,
    ),
])  # fmt: skip
@pytest.mark.parametrize("steady", [{"first_token_ms": 250}], indirect=True)
def test_the_sent_rate_is_the_servers_own_count(aiperf: Program, steady: Simulator, words: list[str], until: str) -> None:
    lines = [{"timestamp": 50 * i, "text_input": "hi", "output_length": 2} for i in range(41)]
    (aiperf.folder / "trace.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    done = profile(aiperf, steady.url, *words, dataset=() if "--input-file" in words else ("--isl", "8", "--osl", "3"))
    rate, found = done.json()["delivered_load"]["sent_rate"], rows(steady)
    if until == "duration":
        assert rate * 2.0 == pytest.approx(len(found), rel=1e-6)
        return
    end_ns = max(row["ended_mono_ns"] if until == "last answer" else row["received_mono_ns"] for row in found)
    assert rate == pytest.approx(len(found) / ((end_ns - found[0]["received_mono_ns"]) / 1e9), rel=0.2)


@pytest.mark.timing
@pytest.mark.parametrize("steady", [{"first_token_ms": 935}], indirect=True)
def test_what_the_grace_period_cuts_is_aborted_and_counted(aiperf: Program, steady: Simulator) -> None:
    timed = ["--benchmark-duration", "1.5", "--benchmark-grace-period", "0.5"]
    done = profile(aiperf, steady.url, "--request-rate", "8", "--arrival-pattern", "constant", *timed)
    found = rows(steady)
    assert len(found) == 11
    counted = done.json()["measurement"]["arrivals"]
    assert (counted["sent"], counted["completed"], counted["aborted_in_flight"], counted["errors"]) == (11, 8, 3, 0)
    assert len(done.lines("profile_export.jsonl")) == 8
    cut = [row for row in found if row["outcome"] == "client disconnected"]
    assert len(cut) == 3
    begun_ns = found[0]["received_mono_ns"] - 125 * MS
    assert all((row["ended_mono_ns"] - begun_ns) / MS == pytest.approx(2000, abs=SLACK_MS) for row in cut)


@pytest.mark.timing
@pytest.mark.parametrize("steady", [{"first_token_ms": 400}], indirect=True)
def test_cancelled_requests_are_cut_off_when_they_were_to_be(aiperf: Program, steady: Simulator) -> None:
    cancelling = ["--request-cancellation-rate", "50", "--request-cancellation-delay", "0.1"]
    done = profile(aiperf, steady.url, "--concurrency", "30", "--request-count", "60", *cancelling)
    cut = [row for row in rows(steady) if row["outcome"] == "client disconnected"]
    assert 18 <= len(cut) <= 42
    assert statistics.median((row["ended_mono_ns"] - row["received_mono_ns"]) / MS for row in cut) == pytest.approx(100, abs=10)
    failed = [line for line in done.lines("profile_export.jsonl") if line["metadata"]["was_cancelled"]]
    assert len(failed) == len(cut)
    assert {(line["error"]["code"], line["error"]["type"]) for line in failed} == {(499, "RequestCancellationError")}
    assert done.json()["request_count"]["avg"] == 60 - len(cut)


@pytest.mark.parametrize("workers", ["1", "3"])
@pytest.mark.parametrize("steady", [{"first_token_ms": 60}], indirect=True)
def test_no_more_requests_than_allowed_wait_for_their_first_token(aiperf: Program, steady: Simulator, workers: str) -> None:
    aiperf.environment["AIPERF_WORKERS"] = workers
    load = ["--concurrency", "6", "--prefill-concurrency", "2", "--request-count", "18", "--streaming", "--osl", "60"]
    profile(aiperf, steady.url, *load, dataset=("--isl", "8"))
    found = rows(steady)
    assert most_at_once([(row["received_mono_ns"], row["first_mono_ns"]) for row in found]) == 2
    assert steady.summary()["in_flight_max"] > 2


@pytest.mark.timing
@pytest.mark.parametrize("steady", [{"first_token_ms": 49}], indirect=True)
def test_under_a_ceiling_an_arrival_leaves_the_moment_a_slot_frees(aiperf: Program, steady: Simulator) -> None:
    load = ["--request-rate", "40", "--arrival-pattern", "constant", "--concurrency", "1", "--request-count", "20"]
    profile(aiperf, steady.url, *load)
    found = rows(steady)
    assert steady.summary()["in_flight_max"] == 1
    # Of the tick grid it would be every 75 ms; an answer takes 51.
    assert statistics.median(gaps_ms(found)) == pytest.approx(52.5, abs=3)


def test_a_warmup_changes_nothing_of_what_profiling_sends(aiperf: Program, simulator: Simulator) -> None:
    asked = []
    for warmup in ([], ["--warmup-request-count", "5"]):
        done = profile(aiperf, simulator.url, "--concurrency", "2", "--request-count", "8", *warmup)
        rows_of = [row for row in done.lines("profile_export_arrivals.jsonl") if row["phase"] == "profiling"]
        bodies = json.loads((done.artifacts / "inputs.json").read_text())["data"]
        asked.append([bodies[row["session"]]["payloads"][0]["messages"] for row in sorted(rows_of, key=lambda row: row["n"])])
    assert asked[0] == asked[1]


@pytest.mark.parametrize("steady", [{"first_token_ms": 1500}], indirect=True)
def test_who_waits_for_a_slow_server_uses_no_processor(aiperf: Program, steady: Simulator) -> None:
    running_ = aiperf.start("profile", "--model", "sim", "--url", steady.url, "--tokenizer", "builtin", "--ui", "none",
                            "--concurrency", "4", "--request-count", "4", "--isl", "8", "--osl", "2")  # fmt: skip
    wait_for(lambda: steady.summary()["in_flight"] == 4)
    before = {pid: ticks(pid) for pid in workers_of(running_.process.pid)}
    wait_for(lambda: steady.summary()["in_flight"] < 4)
    after = {pid: ticks(pid) for pid in workers_of(running_.process.pid)}
    assert before
    used = sum(after[pid] - before[pid] for pid in before if pid in after)
    assert used <= 15, f"{used} ticks of 10 ms in about 1.4 s of waiting"
    assert running_.end().code == 0


@pytest.mark.skipif(os.uname().machine != "x86_64" or RELEASE < [6, 12], reason="slices of one's own came with Linux 6.12")
@pytest.mark.parametrize("steady", [{"first_token_ms": 600_000}], indirect=True)
def test_workers_ask_for_short_slices_of_a_core(aiperf: Program, steady: Simulator) -> None:
    running_ = aiperf.start("profile", "--model", "sim", "--url", steady.url, "--tokenizer", "builtin", "--ui", "none",
                            "--request-count", "1", "--isl", "8", "--osl", "2")  # fmt: skip
    wait_for(lambda: steady.summary()["in_flight"] == 1)
    attributes = ctypes.create_string_buffer(56)  # of sched_getattr(2); the runtime begins at byte 24
    (worker,) = workers_of(running_.process.pid)
    assert ctypes.CDLL(None).syscall(315, worker, attributes, 56, 0) == 0
    assert struct.unpack_from("Q", attributes.raw, 24) == (100_000,)
    running_.interrupt()
    running_.hears("Ctrl-C")
    running_.interrupt()
    assert running_.end().code == 130


def workers_of(session: int) -> list[int]:
    """Worker processes of a run."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if "aiperf.worker.process" in (entry / "cmdline").read_text() and parent(entry) == session:
                found.append(int(entry.name))
        except OSError:  # it has just ended
            continue
    return found


def parent(entry: Path) -> int:
    return int((entry / "stat").read_text().rpartition(")")[2].split()[1])


def ticks(pid: int) -> int:
    """Processor time of a process, in ticks of 10 ms."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])


@pytest.mark.parametrize("steady", [{"first_token_ms": 300}], indirect=True)
def test_one_ctrl_c_leaves_partial_results_that_say_so(aiperf: Program, steady: Simulator) -> None:
    running_ = aiperf.start("profile", "--model", "sim", "--url", steady.url, "--tokenizer", "builtin", "--ui", "none",
                            "--concurrency", "4", "--benchmark-duration", "60", "--benchmark-grace-period", "0",
                            "--isl", "8", "--osl", "2")  # fmt: skip
    wait_for(lambda: steady.summary()["requests"] >= 8)
    running_.interrupt()
    done = running_.end()
    assert done.code == 130
    found = done.json()
    assert (found["was_cancelled"], found["is_complete"]) == (True, False)
    counted = found["measurement"]["arrivals"]
    assert counted["sent"] == steady.summary()["requests"]
    assert counted["aborted_in_flight"] == 4
    assert counted["completed"] == counted["sent"] - 4
