"""Lanes of recorded agents at sites: what the server sees, and when, is what one machine with as many workers sends."""

from __future__ import annotations

import json
import os
import signal
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from aiperf_command_simulate.testing import running
from annex_runs import ROOMS, Annex
from program import Done, wait_for
from test_agentx_runs import ANY_FILE, R21, check_inferencex, line, of_hub

_BLOCK = 64
FOUR = ("--concurrency", 4, "--workers", 3)
SITES = ("--engine", "annex", "--annex-rooms", ",".join(ROOMS))


@pytest.fixture
def annex(tmp_path: Path) -> Iterator[Annex]:
    with running(truth_bodies=True, first_token_ms=10, decode_ms=1, decode_batch_us=0) as simulator:
        yield Annex(tmp_path, simulator)


def traces(folder: Path, count: int, gap_s: float) -> Path:
    """Recorded agents: a root of four turns, *gap_s* apart, whose second one starts a child that the fourth one joins."""
    folder.mkdir()
    for trace in range(count):
        own = trace * 1000
        rows = [request(gap_s * turn, list(range(own, own + 2 + turn)), 6) for turn in range(4)]
        inner = [request(1.3 * gap_s, [own + 500], 4), request(1.8 * gap_s, [own + 500, own + 501], 4)]
        rows.insert(2, {
            "t": 1.3 * gap_s, "type": "subagent", "agent_id": "a1", "subagent_type": "Explore", "duration_ms": 900 * gap_s,
            "status": "completed", "models": ["m"], "requests": inner,
        })  # fmt: skip
        text = {"id": f"tr{trace}", "models": ["m"], "block_size": _BLOCK, "hash_id_scope": "local", "requests": rows}
        (folder / f"tr{trace:02}.json").write_text(json.dumps(text))
    return folder


def request(at_s: float, blocks: list[int], out: int) -> dict[str, Any]:
    return {"t": at_s, "type": "s", "model": "m", "in": _BLOCK * len(blocks), "out": out, "hash_ids": blocks, "api_time": 0.05}


def words(annex: Annex, data: Path, *more: str | float, name: str) -> list[str | float | Path]:
    return [
        "profile", "--model", "m", "--url", annex.simulator.url, "--streaming", "--tokenizer", "builtin", "--ui", "none",
        "--scheduling-mode", "agentic_replay", "--custom-dataset-type", "weka_trace", "--input-file", data,
        "--random-seed", 42, "--artifact-dir", name, *more,
    ]  # fmt: skip


def lanes(annex: Annex, data: Path, *more: str | float, name: str) -> tuple[list[dict[str, Any]], Done]:
    """What the server saw, and the results."""
    annex.simulator.reset()
    done = annex.aiperf(*words(annex, data, *more, name=name))
    assert done.code == 0, done.err
    checked = annex.aiperf("validate", name)
    assert checked.code == 0, checked.out
    return annex.simulator.truth()["requests"], Done(done.code, done.out, done.err, annex.folder / name)


def asked(seen: list[dict[str, Any]]) -> Counter[tuple[str, str]]:
    """Stream and tree of each request, behind the run's own part of its id, and its messages."""
    return Counter((row["correlation_id"][19:], json.dumps(json.loads(row["body"])["messages"])) for row in seen)


def first_turns(done: Done, phase: int, lanes: int) -> dict[tuple[int, int], tuple[int, int]]:
    """Of each stream of the lanes' first trees its first turn in the phase, and when that was due behind the earliest one."""
    rows = [row for row in done.lines("profile_export_arrivals.jsonl") if row["phase_index"] == phase and row.get("due_ns")]
    firsts: dict[tuple[int, int], tuple[int, int]] = {}
    for row in rows:
        if row["session"] < lanes:
            key, at = (row["session"], row["stream"]), (row["turn"], row["due_ns"])
            firsts[key] = min(at, firsts.get(key, at))
    zero = min(due for _, due in firsts.values())
    return {key: (turn, due - zero) for key, (turn, due) in firsts.items()}


@pytest.mark.parametrize(
    ("count", "load"),
    [
        (4, ("--workers", 3)),
        pytest.param(7, ("--workers", 6, "--prefill-concurrency", 3), marks=pytest.mark.long),
        pytest.param(3, ("--workers", 6, "--burst-phase-starts"), marks=pytest.mark.long),
    ],
)
def test_lanes_at_three_sites_send_what_one_machine_sends(annex: Annex, count: int, load: tuple[str | int, ...]) -> None:
    data, words = traces(annex.folder / "traces", 9, 0.4), ("--num-sessions", 9, "--concurrency", count, *load)
    (here, local), (there, done) = (lanes(annex, data, *words, *at, name=f"r{len(at)}") for at in ((), SITES))
    assert asked(here) == asked(there) and len({tree for tree, _ in asked(there)}) > 9
    assert done.json()["is_complete"]
    records = [row["metadata"] for row in done.lines("profile_export.jsonl")]
    assert {(row["lane"], row["site"]) for row in records} == {(lane, ROOMS[lane % 3]) for lane in range(count)}
    by_tree = defaultdict(set)
    for row in records:
        by_tree[row["conversation_num"]].add(row["worker_id"])
    assert {len(workers) for workers in by_tree.values()} == {1}
    # Primers leave as they were recorded before the cuts, first turns at their distance from them.
    for phase in (0, 1):
        far, near = first_turns(done, phase, count), first_turns(local, phase, count)
        assert {key: turn for key, (turn, _) in far.items()} == {key: turn for key, (turn, _) in near.items()} and len(far) > 3
        # Instants of sites are beside each other as well as their clocks are known.
        assert max(abs(due - near[key][1]) for key, (_, due) in far.items()) < 1e6
    told = [{row["quantity"]: row["value"] for row in each.json()["lanes"]} for each in (local, done)]
    assert told[0] == told[1] and told[0]["trees that ended"] == 9


@pytest.mark.long
def test_all_sites_go_on_behind_the_last_primer_and_their_idle_time_is_capped(annex: Annex) -> None:
    data = traces(annex.folder / "traces", 6, 4.0)
    load = (*FOUR, "--warmup-requests-per-lane", 2, "--system-idle-gap-cap-seconds", 0.5, "--benchmark-duration", 6)
    for name, at in (("here", ()), ("there", SITES)):
        seen, done = lanes(annex, data, *load, *at, name=name)
        warm = [json.loads(row["body"])["max_completion_tokens"] == 1 for row in seen]
        primers = len([row for row in done.lines("profile_export_arrivals.jsonl") if not row["phase_index"]]) - 8
        assert sum(warm) == primers + 8 and all(warm[: sum(warm)]), "each lane has sent two more before anything is measured"
        last_primer = max(row["last_mono_ns"] for row in seen[:primers])
        assert all(row["received_mono_ns"] >= last_primer for row in seen[primers:])
        measured = seen[sum(warm) :]
        ends = [row["last_mono_ns"] for row in measured]
        idle = [row["received_mono_ns"] - max(ends[:n]) for n, row in enumerate(measured) if n]
        assert max(idle) < 0.9e9, f"{name}: {max(idle) / 1e9} s without a request, and the record has seconds"
        told = {row["quantity"]: row["value"] for row in done.json()["lanes"]}
        assert told["idle gaps shortened by the cap of the system"] > 2


@pytest.mark.long
def test_kept_sites_begin_each_plan_with_lanes_of_its_own(annex: Annex) -> None:
    load = (*FOUR, "--num-sessions", 6, "--warmup-requests-per-lane", 1, "--num-profile-runs", 2)
    done = annex.aiperf(*words(annex, traces(annex.folder / "traces", 6, 0.4), *load, *SITES, name="run"))
    assert done.code == 0, done.err
    trees = defaultdict(set)
    for row in annex.simulator.truth()["requests"]:
        trees[row["correlation_id"][:8]].add((row["correlation_id"][19:], row["body"]))
    (one, other) = trees.values()
    assert one == other and len(one) > 12


@pytest.mark.long
def test_inferencex_runs_at_three_sites(annex: Annex) -> None:
    with of_hub(annex.folder) as (program, _):
        program.environment["PYTHONPATH"] = annex.aiperf.environment["PYTHONPATH"]
        load = line(R21, annex.folder, annex.simulator, benchmark_duration=5, concurrency=6)
        done = program(*load, *ANY_FILE, "--unsafe-override", *SITES)
    done = replace(done, artifacts=annex.folder / "artifacts")
    check_inferencex(done, annex.simulator.truth()["requests"])
    records = [row["metadata"] for row in done.lines("profile_export.jsonl")]
    assert {(row["lane"], row["site"]) for row in records} == {(lane, ROOMS[lane % 3]) for lane in range(6)}


@pytest.mark.long
def test_a_lost_site_loses_its_lanes_and_says_so(annex: Annex) -> None:
    data, load = traces(annex.folder / "traces", 9, 0.4), (*FOUR, "--benchmark-duration", 60)
    run = annex.aiperf.start(*words(annex, data, *load, *SITES, name="run"))
    columns = annex.folder / "run" / "journal" / "columns-1.0"
    wait_for(lambda: columns.exists() and columns.stat().st_size > 0 and len(annex.simulator.truth()["requests"]) > 25)
    (site,) = [pid for pid in annex.processes_in("barn") if is_site(pid)]
    os.kill(site, signal.SIGKILL)
    done = annex.end(run)
    assert done.code == 1 and "the site barn was lost" in done.json()["incomplete_reason"]
    seen = {row["request_id"] for row in annex.simulator.truth()["requests"]}
    rows = done.lines("profile_export_arrivals.jsonl")
    assert {row["x_request_id"] for row in rows if row["outcome"] == "completed"} <= seen
    fates: dict[int, set[str]] = defaultdict(set)
    for row in rows:
        fates[row["lane"]].add(row["outcome"])
    assert "unknown" in fates[1] and not any("unknown" in fates[lane] for lane in (0, 2, 3)), fates
    checked = annex.aiperf("validate", "run")
    assert checked.code == 0, checked.out


def is_site(pid: int) -> bool:
    return b"aiperf.run.site_process" in Path(f"/proc/{pid}/cmdline").read_bytes()
