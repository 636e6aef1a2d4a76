"""The same plan on 1, 2 and 5 workers: same inputs, same due times, every arrival once, ceilings kept.  The server judges."""

from __future__ import annotations

import json
from itertools import accumulate
from pathlib import Path
from typing import Any

import pytest
from aiperf.rundir.store import Store
from aiperf_command_simulate.testing import Simulator, running
from program import Done, Program

SHARDS = (1, 2, 5)


ISL = ("--isl", "30", "--osl", "4")


def run(aiperf: Program, simulator: Simulator, workers: int, *words: str, dataset: tuple[str, ...] = ISL) -> Done:
    aiperf.environment["AIPERF_WORKERS"] = str(workers)
    done = aiperf(
        "profile", "--model", "sim", "--url", simulator.url, "--tokenizer", "builtin", *dataset,
        "--random-seed", "7", "--workers-max", "5", "--ui", "none",
        "--artifact-dir", str(aiperf.folder / f"w{workers}"), *words,
    )  # fmt: skip
    assert done.code == 0, done.err
    return done


def ledger(done: Done) -> list[dict[str, Any]]:
    return done.lines("profile_export_arrivals.jsonl")


def bytes_of(done: Done, name: str) -> bytes:
    return (done.artifacts / name).read_bytes()


def test_inputs_and_arrivals_are_the_same_for_any_workers(aiperf: Program, simulator: Simulator) -> None:
    load = ["--request-rate", "300", "--arrival-pattern", "gamma", "--arrival-smoothness", "0.5", "--request-count", "120"]
    found = []
    for workers in SHARDS:
        simulator.reset()
        done = run(aiperf, simulator, workers, *load)
        rows = sorted(ledger(done), key=lambda row: row["n"])
        assert [row["n"] for row in rows] == list(range(120))
        assert {row["worker"] for row in rows} == {f"worker-{i}" for i in range(workers)}
        seen = {row["request_id"] for row in simulator.truth()["requests"]}
        assert seen == {row["x_request_id"] for row in rows}
        found.append((bytes_of(done, "inputs.json"), bytes_of(done, "journal/due-0.bin"), [row["session"] for row in rows]))
    assert found[0] == found[1] == found[2]


def test_a_load_that_begins_before_its_data_is_whole_is_the_same_for_any_workers(
    aiperf: Program, simulator: Simulator
) -> None:
    load, data = ["--request-rate", "100", "--request-count", "60"], ("--isl", "3000", "--osl", "1")
    found = []
    for workers in SHARDS:
        simulator.reset()
        done = run(aiperf, simulator, workers, *load, "--num-dataset-entries", "6000", dataset=data)
        whole_ns = (done.artifacts / "journal" / "dataset.bodies").stat().st_mtime_ns
        assert min(row["received_wall_ns"] for row in simulator.truth()["requests"]) < whole_ns, "all was made before the load"
        rows = sorted(ledger(done), key=lambda row: row["n"])
        prompts = {row["request_id"]: row["prompt_tokens"] for row in simulator.truth()["requests"]}
        sent = json.loads(bytes_of(done, "inputs.json"))["data"][:60]
        assert [row["n"] for row in rows] == list(range(60))
        found.append((sent, bytes_of(done, "journal/due-0.bin"), [prompts[row["x_request_id"]] for row in rows]))
    assert found[0] == found[1] == found[2]


EARLY = {
    "sessions, shuffled behind a warmup": (
        "--dataset-sampling-strategy", "shuffle", "--num-warmup-sessions", "4", "--session-turns-mean", "2",
        "--session-turns-stddev", "1", "--request-rate", "100", "--num-sessions", "30", "--num-dataset-entries", "20000",
    ),
    "users": (
        "--session-turns-mean", "3", "--num-users", "20", "--user-centric-rate", "100", "--request-count", "60",
        "--num-dataset-entries", "20000",
    ),
}  # fmt: skip


@pytest.mark.long
@pytest.mark.parametrize("words", EARLY.values(), ids=EARLY)
def test_early_loads_of_other_orders_are_the_same_for_any_workers(
    aiperf: Program, simulator: Simulator, words: tuple[str, ...]
) -> None:
    found = []
    for workers in SHARDS:
        simulator.reset()
        done = run(aiperf, simulator, workers, *words, dataset=("--isl", "900", "--isl-stddev", "100", "--osl", "1"))
        journal = done.artifacts / "journal"
        store, due = Store(journal), [bytes_of(done, f"journal/{file.name}") for file in sorted(journal.glob("due-*.bin"))]
        assert 0 < len(list(store.readable())) < 20_000
        prompts = {row["request_id"]: row["prompt_tokens"] for row in simulator.truth()["requests"]}
        sent = {
            (about["conversation_id"], about["turn_index"]): prompts[about["x_request_id"]]
            for about in (line["metadata"] for line in done.lines("profile_export.jsonl"))
        }  # fmt: skip
        firsts = {key: tokens for key, tokens in sent.items() if key[1] == 0}  # later prompts repeat answers
        inputs = json.loads(bytes_of(done, "inputs.json"))["data"]
        assert [one["session_id"] for one in inputs] == [store.id(entry) for entry in store.readable()]
        found.append((sorted(sent), firsts, due))
    assert len(found[0][1]) >= 20
    for part in zip(*found, strict=True):
        assert part[0] == part[1] == part[2]


def test_five_workers_together_keep_a_ceiling_of_three(aiperf: Program) -> None:
    with running(first_token_ms=20, decode_ms=2, decode_batch_us=0) as simulator:
        done = run(aiperf, simulator, 5, "--request-rate", "400", "--concurrency", "3", "--request-count", "60")
        assert simulator.summary()["in_flight_max"] == 3
    assert sorted(row["n"] for row in ledger(done)) == list(range(60))


MODES = {
    "a rate with sessions": ("--request-rate", "200", "--num-sessions", "12", "--session-turns-mean", "3"),
    "users": ("--user-centric-rate", "100", "--num-users", "5", "--session-turns-mean", "3", "--request-count", "40"),
    "a recorded trace": ("--input-file", "trace.jsonl", "--custom-dataset-type", "mooncake_trace", "--fixed-schedule"),
    "a shuffled data set": (
        "--request-rate", "300", "--request-count", "45", "--num-dataset-entries", "20",
        "--dataset-sampling-strategy", "shuffle",
    ),
}  # fmt: skip


LONG = {"users", "a shuffled data set"}


@pytest.mark.parametrize("words", [
    pytest.param(words, id=name, marks=[pytest.mark.long] if name in LONG else []) for name, words in MODES.items()
])  # fmt: skip
def test_one_and_five_workers_give_the_same_plan(
    aiperf: Program, simulator: Simulator, words: tuple[str, ...]
) -> None:
    trace = aiperf.folder / "trace.jsonl"
    rows = [{"timestamp": 10 * n, "text_input": f"line {n}", "output_length": 3} for n in range(30)]
    trace.write_text("".join(json.dumps(row) + "\n" for row in rows))
    words = tuple(str(trace) if word == trace.name else word for word in words)
    found = []
    for workers in (1, 5):
        simulator.reset()
        done = run(aiperf, simulator, workers, *words, dataset=() if "--input-file" in words else ISL)
        told = sorted((line["metadata"] for line in done.lines("profile_export.jsonl")), key=lambda about: about["session_num"])
        spoken = {(about["conversation_num"], about["turn_index"]): about["conversation_id"] for about in told}
        arrivals = [row["n"] for row in sorted(ledger(done), key=lambda row: row["n"])]
        assert simulator.summary()["requests"] == len(arrivals) == len(set(arrivals))
        if "--num-sessions" in words:  # which turn takes a tick depends on the answers
            arrivals = [len(arrivals)]
        found.append((bytes_of(done, "inputs.json"), bytes_of(done, "journal/due-0.bin"), arrivals, spoken))
    assert found[0] == found[1]


def test_five_workers_together_let_three_requests_wait_for_their_first_token(aiperf: Program) -> None:
    with running(first_token_ms=40, decode_ms=2, decode_batch_us=0) as simulator:
        load = ("--concurrency", "10", "--prefill-concurrency", "3", "--request-count", "40", "--streaming")
        run(aiperf, simulator, 5, *load, dataset=("--isl", "8", "--osl", "40"))
        waits = [(row["received_mono_ns"], row["first_mono_ns"]) for row in simulator.truth()["requests"]]
        assert simulator.summary()["in_flight_max"] > 3
    edges = sorted([(begun, 1) for begun, _ in waits] + [(ended, -1) for _, ended in waits])
    assert max(accumulate(step for _, step in edges)) == 3


def test_a_burst_on_two_workers_sends_every_index_once(aiperf: Program) -> None:
    with running(first_token_ms=40, decode_ms=1, decode_batch_us=0) as simulator:
        done = run(aiperf, simulator, 2, "--concurrency", "4", "--request-count", "50", "--streaming")
        assert simulator.summary()["in_flight_max"] == 4
        assert simulator.summary()["requests"] == 50
    rows = ledger(done)
    assert sorted(row["n"] for row in rows) == list(range(50))
    assert {row["worker"] for row in rows} == {"worker-0", "worker-1"}
    assert done.json()["request_count"]["avg"] == 50


def test_two_reducers_count_what_one_counts(aiperf: Program, simulator: Simulator) -> None:
    load = ["--concurrency", "4", "--request-count", "40", "--streaming"]
    one = run(aiperf, simulator, 4, *load, "--record-processors", "1")
    counted = one.json()
    aiperf.folder = aiperf.folder / "two"
    aiperf.folder.mkdir()
    two = run(aiperf, simulator, 4, *load, "--record-processors", "2")
    assert len(list((two.artifacts / "journal").glob("columns-*"))) == 2
    for tag in ("request_count", "total_osl", "total_isl"):
        assert two.json()[tag] == counted[tag]
    assert len(two.lines("profile_export.jsonl")) == len(one.lines("profile_export.jsonl")) == 40


@pytest.mark.parametrize("transport", ["kernel", "aiohttp"])
def test_both_transports_deliver_the_same(aiperf: Program, simulator: Simulator, transport: str) -> None:
    load = ["--concurrency", "3", "--request-count", "12", "--streaming"]
    done = run(aiperf, simulator, 1, "--transport", transport, *load, "--export-level", "raw")
    results = done.json()
    assert [line["status"] for line in done.lines("profile_export_raw.jsonl")] == [200] * 12
    assert results["request_count"]["avg"] == 12
    assert results["output_sequence_length"]["avg"] == 4
    assert simulator.summary()["requests"] == 12
    assert simulator.summary()["in_flight_max"] <= 3


def test_the_journal_can_be_reported_again_with_the_same_numbers(aiperf: Program, simulator: Simulator) -> None:
    done = run(aiperf, simulator, 2, "--concurrency", "4", "--request-count", "30", "--streaming")
    before = done.json()
    again = aiperf("report", str(done.artifacts), "--output", str(Path(done.artifacts).with_name("again")))
    assert again.code == 0, again.err
    after = Done(0, "", "", Path(done.artifacts).with_name("again")).json()
    assert {tag: found for tag, found in before.items() if isinstance(found, dict) and "unit" in found} == {
        tag: found for tag, found in after.items() if isinstance(found, dict) and "unit" in found
    }
