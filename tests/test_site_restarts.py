"""Sites that are lost and started again: no arrival is sent twice, and the report says what is unknown."""

from __future__ import annotations

import json
import os
import re
import signal
import urllib.request
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from aiperf_command_simulate.testing import running
from annex_runs import Annex, ledger
from program import Done, Running, wait_for

pytestmark = pytest.mark.long
AGAIN = "--restart-lost-shards"
PACED = ("--osl", 4, "--tokenizer", "builtin", "--request-rate", 30, "--request-count", 450)


@pytest.fixture
def annex(tmp_path: Path) -> Iterator[Annex]:
    with running(first_token_ms=20, decode_ms=2, decode_batch_us=0) as simulator:
        yield Annex(tmp_path, simulator)


def columns_of(annex: Annex, reducer: int) -> int:
    """Bytes of columns that have come."""
    return sum(path.stat().st_size for path in (annex.folder / "run" / "journal").glob(f"columns-{reducer}.*"))


def kill(annex: Annex, room: str) -> None:
    (site,) = [pid for pid in annex.processes_in(room) if is_site(pid)]
    os.kill(site, signal.SIGKILL)


def is_site(pid: int) -> bool:
    try:
        return b"aiperf.run.site_process" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


def lost_once(annex: Annex, *load: str | int, room: str = "barn", reducer: int = 1) -> Done:
    """A run whose site is killed once some of its columns have come."""
    run = annex.start(*load, AGAIN)
    wait_for(lambda: columns_of(annex, reducer) > 0)
    kill(annex, room)
    return annex.end(run)


def sent(annex: Annex) -> Counter[str]:
    """How often each request came to the server."""
    return Counter(row["request_id"] for row in annex.simulator.truth()["requests"])


def sessions(annex: Annex) -> Counter[str]:
    """How often the server had a request of each session."""
    return Counter(row["correlation_id"] for row in annex.simulator.truth()["requests"])


def site_of(done: Done, name: str) -> dict[str, Any]:
    (site,) = [site for site in done.json()["measurement"]["sites"] if site["name"] == name]
    return dict(site)


def assert_partial(done: Done, said: str) -> None:
    results = done.json()
    assert done.code == 1 and f"results are partial: {results['incomplete_reason']}" in done.last_words
    assert said in results["incomplete_reason"] and results["measurement"]["verdict"] in ("suspect", "partial")


def test_another_site_goes_on_behind_what_the_lost_one_may_have_sent(annex: Annex) -> None:
    done = lost_once(annex, *PACED)
    assert_partial(done, "the site barn was lost and started again once (its command was killed by SIGKILL)")
    rows, seen = ledger(done), sent(annex)
    assert [row["n"] for row in rows] == [*range(450)] and max(seen.values()) == 1
    assert max(sessions(annex).values()) == 1  # an arrival is a session here
    unknown = [row["n"] for row in rows if row["outcome"] == "unknown"]
    assert {row["site"] for row in rows if row["outcome"] == "unknown"} == {"barn"}
    # One stretch of the site's own arrivals, with others of it completed before and behind.
    own = [row["n"] for row in rows if row["site"] == "barn"]
    assert own == [*range(1, 450, 3)] and unknown
    assert [n for n in own if unknown[0] <= n <= unknown[-1]] == unknown and own[0] < unknown[0] and unknown[-1] < own[-1]
    assert {row["outcome"] for row in rows if row["n"] not in unknown} == {"completed"}
    assert {row["x_request_id"] for row in rows if row["outcome"] == "completed"} <= seen.keys()
    (loss,) = site_of(done, "barn")["losses"]
    assert loss["resumed_ns"] > loss["lost_ns"] and "killed by SIGKILL" in loss["why"]
    assert not site_of(done, "attic").get("losses")
    arrivals = done.json()["measurement"]["arrivals"]
    assert arrivals["unknown"] == len(unknown) and arrivals["planned"] == 450
    # Nothing that was due while the site was away leaves in a crowd when it is back.
    assert min(row["due_ns"] for row in rows if row["site"] == "barn" and row["n"] > unknown[-1]) > loss["lost_ns"]
    again = annex.aiperf("report", "run", "--output", "again")
    assert again.code == 1 and Done(1, "", "", annex.folder / "again").json()["measurement"]["arrivals"] == arrivals
    checked = annex.aiperf("validate", "run")
    assert checked.code == 0, checked.out
    assert [list((annex.folder / room).iterdir()) for room in ("attic", "cellar")] == [[], []]


@pytest.mark.parametrize(("room", "reducer"), [("barn", 1), ("attic", 0)])
def test_live_counts_of_what_was_reduced_never_fall(annex: Annex, room: str, reducer: int) -> None:
    run = annex.start(*PACED, AGAIN, "--api-port", 0)
    run.hears("/#")
    served = re.search(r"served on http://[^/]+:(\d+)/#", run._said)
    assert served is not None
    seen: list[int] = []

    def reduced() -> int:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{served[1]}/api/progress", timeout=60) as page:
                phases = json.load(page)["phases"].values()  # none before the first
        except OSError:  # the run is over
            return 1 << 40
        seen.append(sum(phase["success_records"] for phase in phases))
        return seen[-1]

    wait_for(lambda: reduced() > 60 and columns_of(annex, reducer) > 0)
    kill(annex, room)
    wait_for(lambda: reduced() > 330)
    done = annex.end(run)
    assert_partial(done, f"the site {room} was lost and started again once")
    assert seen == sorted(seen) and seen[-1] > 330, seen
    assert seen[-1] <= done.json()["request_count"]["avg"] + 5  # columns of the last moment may not have come


def test_sessions_whose_state_is_gone_are_lost_and_none_begins_twice(annex: Annex) -> None:
    load = ("--osl", 4, "--tokenizer", "builtin", "--request-rate", 30, "--num-sessions", 120, "--session-turns-mean", 3)
    done = lost_once(annex, *load)
    assert_partial(done, "the site barn was lost and started again once")
    assert max(sent(annex).values()) == 1
    turns = Counter((row["session"], row["turn"]) for row in ledger(done) if row["outcome"] == "completed")
    assert max(turns.values()) == 1
    run = json.loads((annex.folder / "run" / "journal" / "run.json").read_text())
    first = run["end"]["first_requests"]["1"][0]
    senders: dict[str, set[bool]] = {}
    for row in annex.simulator.truth()["requests"]:
        *_, shard, _, number = row["request_id"].split("-")
        if shard == "8001":
            senders.setdefault(row["correlation_id"], set()).add(int(number, 16) >= first)
    assert {len(each) for each in senders.values()} == {1} and {True} in senders.values() and {False} in senders.values()


def test_a_recorded_schedule_goes_on_with_the_sessions_that_begin_later(annex: Annex) -> None:
    trace = annex.folder / "trace.jsonl"
    lines = [f'{{"timestamp": {40 * n}, "text_input": "line {n}", "output_length": 3}}' for n in range(400)]
    trace.write_text("\n".join(lines))
    data = ("--input-file", "trace.jsonl", "--custom-dataset-type", "mooncake_trace", "--fixed-schedule")
    load = ("--tokenizer", "builtin", *data)
    run = annex.aiperf.start(*[word for word in annex.words(*load, "--workers", 3, AGAIN) if word not in ("--isl", 30)])
    wait_for(lambda: columns_of(annex, 1) > 0)
    kill(annex, "barn")
    done = annex.end(run)
    assert_partial(done, "the site barn was lost and started again once")
    rows = ledger(done)
    assert [row["n"] for row in rows] == [*range(400)] and max(sent(annex).values()) == max(sessions(annex).values()) == 1
    outcomes = [row["outcome"] for row in rows if row["n"] % 3 == 1]
    assert outcomes[0] == outcomes[-1] == "completed" and "unknown" in outcomes
    assert {row["outcome"] for row in rows if row["n"] % 3 != 1} == {"completed"}


@pytest.mark.parametrize("turns", [1, 3])
def test_a_burst_goes_on_with_numbers_that_no_site_had(annex: Annex, turns: int) -> None:
    count = ("--request-count", 2500) if turns == 1 else ("--num-sessions", 900, "--session-turns-mean", turns)
    done = lost_once(annex, "--osl", 30, "--tokenizer", "builtin", "--concurrency", 6, *count)
    assert_partial(done, "the site barn was lost and started again once (its command was killed by SIGKILL)")
    rows, seen = ledger(done), sent(annex)
    assert max(seen.values()) == 1 and len({row["n"] for row in rows}) == len(rows)
    assert {row["x_request_id"] for row in rows if row["outcome"] == "completed"} <= seen.keys()
    assert site_of(done, "barn")["losses"][0]["resumed_ns"] and {row["outcome"] for row in rows} == {"completed", "unknown"}
    if turns == 1:
        assert [row["n"] for row in rows] == [*range(2500)] and max(sessions(annex).values()) == 1
    # Before and behind the gap.
    run = json.loads((annex.folder / "run" / "journal" / "run.json").read_text())
    first = run["end"]["first_requests"]["1"][0]
    numbers = [int(row["x_request_id"][-12:], 16) for row in rows if row.get("worker") == "worker-1"]
    assert min(numbers) < first <= max(numbers)


@pytest.mark.parametrize("workers", [1, 2])
def test_a_burst_of_one_site_goes_on_behind_what_was_dealt(annex: Annex, workers: int) -> None:
    load = ("--osl", 30, "--tokenizer", "builtin", "--concurrency", 6, "--request-count", 2500, "--workers", workers)
    run = annex.start(*load, AGAIN, rooms=("barn",))
    wait_for(lambda: columns_of(annex, 0) > 0)
    kill(annex, "barn")
    done = annex.end(run)
    assert_partial(done, "the site barn was lost and started again once (its command was killed by SIGKILL)")
    rows, seen = ledger(done), sent(annex)
    assert [row["n"] for row in rows] == [*range(2500)] and max(seen.values()) == max(sessions(annex).values()) == 1
    assert annex.simulator.summary()["in_flight_max"] <= 6
    assert {row["outcome"] for row in rows} == {"completed", "unknown"} and rows[-1]["outcome"] == "completed"
    assert {row["x_request_id"] for row in rows if row["outcome"] == "completed"} <= seen.keys()


def test_a_site_that_dies_again_and_again_ends_the_load(annex: Annex) -> None:
    run = annex.start(*PACED[:-1], 3000, AGAIN)
    wait_for(lambda: columns_of(annex, 1) > 0)
    killed = set[int]()

    def dead() -> bool:
        for pid in annex.processes_in("barn"):
            if is_site(pid) and pid not in killed:
                killed.add(pid)
                os.kill(pid, signal.SIGKILL)
        return len(killed) == 4

    wait_for(dead)
    done = annex.end(run)
    assert_partial(done, "the site barn was lost, having been started again 3 times")
    assert "it was started again 3 times already" in done.json()["incomplete_reason"]
    assert max(sent(annex).values()) == 1 and run.survivors() == []


def test_ctrl_c_ends_a_run_while_a_site_comes_back(annex: Annex) -> None:
    run = annex.start(*PACED[:-1], 3000, AGAIN)
    wait_for(lambda: columns_of(annex, 1) > 0)
    kill(annex, "barn")
    hears_restart(run)
    run.interrupt()
    done = annex.end(run)
    assert done.code == 130 and run.survivors() == []
    outcomes = Counter(row["outcome"] for row in ledger(done))
    assert sum(outcomes.values()) == 3000 and outcomes["completed"] > 0 and max(sent(annex).values()) == 1


def hears_restart(run: Running) -> None:
    run.hears("another one is started in its place")


def test_an_engine_that_cannot_start_it_again_ends_the_load(annex: Annex) -> None:
    annex.enter_through('[ -e "$place/over" ] && { echo the room is shut >&2; exit 5; }; exec "$@"')
    run = annex.start(*PACED[:-1], 3000, AGAIN)
    wait_for(lambda: columns_of(annex, 1) > 0)
    (annex.folder / "barn" / "over").touch()
    kill(annex, "barn")
    done = annex.end(run)
    assert_partial(done, "its command exited with 5 (the room is shut)")
    assert max(sent(annex).values()) == 1 and run.survivors() == []


def test_a_run_that_is_killed_leaves_no_process_of_a_site_that_came_back(annex: Annex) -> None:
    run = annex.start(*PACED[:-1], 3000, AGAIN)
    wait_for(lambda: columns_of(annex, 1) > 0)
    kill(annex, "barn")
    hears_restart(run)
    run.process.kill()
    wait_for(lambda: not run.survivors())
    assert max(sent(annex).values()) == 1


def test_what_cannot_be_gone_on_with_is_said(annex: Annex) -> None:
    raw = annex(*PACED, AGAIN, "--export-level", "raw")
    assert raw.code == 1 and f"{AGAIN} is not possible with --export-level raw" in raw.err
    here = annex.aiperf(*annex.words(*PACED, AGAIN)[:-4])
    assert here.code == 1 and f"{AGAIN} is for a run with sites" in here.err
