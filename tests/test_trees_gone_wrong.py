"""Trees amid killed workers, a killed run, Ctrl-C and failing branches: the others go on, and each node is in the ledger."""

from __future__ import annotations

import json
import os
import signal
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from aiperf_command_simulate.testing import Simulator, running
from program import Done, Program, Running, wait_for

LIVE = 4
"""Trees at a time."""
TWO_S = ("--benchmark-duration", 2)
SLOW = {"first_token_ms": 5, "decode_ms": 4, "decode_batch_us": 0}
NODES = {"plan", "left", "left on", "right", "right on", "merge"}
"""Last words of the six requests of a tree."""
BEHIND = {"left": "plan", "right": "plan", "left on": "left", "right on": "right", "merge": "left on"}
"""What each of them comes after, by the words."""


def turn(text: str, tokens: int = 10, **more: Any) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": text}], "max_tokens": tokens, **more}


def trees(path: Path, count: int, *, long: Sequence[int] = (), tokens: int = 10) -> Path:
    """Trees of a root that waits for two children of two turns; the left child of those in *long* begins with 600 tokens more.

    *tokens*: of the children's answers.
    """
    rows = list[dict[str, Any]]()
    for n in range(count):
        left = turn("word " * 480 * (n in long) + "left", tokens)
        rows.append({"session_id": f"t{n}", "turns": [turn("plan", spawns=[f"l{n}", f"r{n}"]), turn("merge")]})
        rows.append({"session_id": f"l{n}", "turns": [left, turn("left on", tokens)]})
        rows.append({"session_id": f"r{n}", "turns": [turn("right", tokens), turn("right on", tokens)]})
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def words(simulator: Simulator, file: Path, sessions: int, *more: str | float) -> list[str | float | Path]:
    return [
        "profile", "--model", "m", "--url", simulator.url, "--streaming", "--tokenizer", "builtin", "--ui", "none",
        "--input-file", file, "--dataset-sampling-strategy", "sequential", "--concurrency", LIVE, "--num-sessions", sessions,
        *more,
    ]  # fmt: skip


class Seen:
    """What the server saw, by tree and by the last words of each request."""

    def __init__(self, simulator: Simulator) -> None:
        self.rows = simulator.truth()["requests"]
        self.trees: dict[str, dict[str, dict[str, Any]]] = defaultdict(dict)
        for row in self.rows:
            said = json.loads(row["body"])["messages"][-1]["content"].removeprefix("word " * 480)
            tree = self.trees[row["correlation_id"][-12:]]
            assert said not in tree, "a request was sent twice"
            tree[said] = row

    def judge(self) -> None:
        """Nothing left before what it waits for."""
        for tree in self.trees.values():
            for then, first in [*BEHIND.items(), ("merge", "right on")]:
                if then in tree and first in tree:
                    assert tree[then]["received_mono_ns"] >= (tree[first]["last_mono_ns"] or 0), f"{then} before {first}'s end"

    @property
    def whole(self) -> list[str]:
        """The trees all of whose requests were answered."""
        return [
            name for name, tree in self.trees.items()
            if {said for said, row in tree.items() if row["outcome"] == "completed"} == NODES
        ]  # fmt: skip


def agree(seen: Seen, done: Done) -> list[dict[str, Any]]:
    """The lines of the ledger: one for each request that the server saw, whose answer is no better than the server's.

    A process that is killed may lose the requests that it sent last: their lines are ``unknown``, or say ``never_sent``.
    """
    lines = done.lines("profile_export_arrivals.jsonl")
    by_id = {line["x_request_id"]: line for line in lines if "x_request_id" in line}
    arrivals = done.json()["measurement"]["arrivals"]
    counts = Counter(line["outcome"] for line in lines)
    assert arrivals["planned"] == len(lines) == sum(counts.values())
    names = {"aborted": "aborted_in_flight", "error": "errors"}
    assert {names.get(outcome, outcome): count for outcome, count in counts.items()}.items() <= arrivals.items()
    lost = [row for row in seen.rows if row["request_id"] not in by_id]
    assert len(lost) <= counts["unknown"] + counts["never_sent"]
    answered = {row["request_id"] for row in seen.rows if row["outcome"] == "completed"}
    assert {name for name, line in by_id.items() if line["outcome"] == "completed"} <= answered
    return lines


def check_joins(seen: Seen, done: Done) -> None:
    """The record of each joining turn names the request for whose end it waited last, and no other record names any."""
    records = [line["metadata"] for line in done.lines("profile_export.jsonl")]
    of = {(row["x_correlation_id"], row["turn_index"]): row["x_request_id"] for row in records}
    held = {
        row["x_request_id"]: of[row["held_by_correlation_id"], row["held_by_turn_index"]]
        for row in records if "held_by_turn_index" in row
    }  # fmt: skip
    assert held.keys() == {tree["merge"]["request_id"] for tree in seen.trees.values()}
    for tree in seen.trees.values():
        children = [tree[said] for said in ("left on", "right on", "left") if said in tree]
        last = max(children, key=lambda row: row["last_mono_ns"] or 0)
        assert held[tree["merge"]["request_id"]] in {row["request_id"] for row in children}
        assert last["last_mono_ns"] <= tree["merge"]["received_mono_ns"]


def worker_of(run: Running) -> int:
    return min(pid for pid, words in run.processes().items() if "aiperf.worker.process" in words)


def test_trees_of_other_workers_go_on_when_one_is_killed(tmp_path: Path) -> None:
    program = Program(tmp_path)
    program.environment["AIPERF_WORKERS"] = "2"
    with running(**SLOW, truth_bodies=True) as simulator:
        run = program.start(*words(simulator, trees(tmp_path / "trees.jsonl", 16), 16, "--workers-max", 2))
        wait_for(lambda: bool(simulator.summary()["requests"] > 3 * LIVE))
        os.kill(worker_of(run), signal.SIGKILL)
        done = run.end()
        seen = Seen(simulator)
    assert done.code == 1
    assert "killed by SIGKILL" in done.err
    seen.judge()
    lines = agree(seen, done)
    assert len(lines) == 16 * len(NODES), "every node has a line"
    assert len(seen.trees) - LIVE <= len(seen.whole) < len(seen.trees)


def test_the_report_of_a_killed_run_has_every_request_of_its_trees(tmp_path: Path) -> None:
    program = Program(tmp_path)
    with running(**SLOW, truth_bodies=True) as simulator:
        run = program.start(*words(simulator, trees(tmp_path / "trees.jsonl", 60), 60))
        wait_for(lambda: bool(simulator.summary()["requests"] > 6 * LIVE))
        os.kill(run.process.pid, signal.SIGKILL)
        run.process.wait()
        wait_for(lambda: not run.survivors())
        seen = Seen(simulator)
    first = program("report", tmp_path / "artifacts")
    assert first.code == 1
    done = Done(1, "", "", tmp_path / "artifacts")
    seen.judge()
    lines = agree(seen, done)
    assert len(lines) == 60 * len(NODES)
    assert sum(line["outcome"] == "completed" for line in lines) >= len(NODES), "a tree had ended"
    kept = done.json()["measurement"]["arrivals"]
    assert program("report", tmp_path / "artifacts").code == 1
    assert (done.json()["measurement"]["arrivals"], done.lines("profile_export_arrivals.jsonl")) == (kept, lines)


def test_ctrl_c_in_a_join_sends_nothing_that_waits(tmp_path: Path) -> None:
    program = Program(tmp_path)
    with running(**SLOW, truth_bodies=True) as simulator:
        file = trees(tmp_path / "trees.jsonl", LIVE, tokens=400)  # 1.6 s
        run = program.start(*words(simulator, file, LIVE))
        wait_for(lambda: bool(simulator.summary()["in_flight"] == 2 * LIVE))
        run.interrupt()
        done = run.end()
        seen = Seen(simulator)
    assert done.code == 130
    assert {frozenset(tree) for tree in seen.trees.values()} == {frozenset({"plan", "left", "right"})}
    outcomes = Counter(line["outcome"] for line in agree(seen, done))
    assert outcomes == {"completed": 3 * LIVE, "never_sent": 3 * LIVE}


def test_a_failing_branch_leaves_the_other_trees_alone(tmp_path: Path) -> None:
    with running(**SLOW, truth_bodies=True, max_context=400, tokens=20) as simulator:
        done = Program(tmp_path)(*words(simulator, trees(tmp_path / "trees.jsonl", 8, long=(1, 4)), 8))
        seen = Seen(simulator)
    seen.judge()
    outcomes = Counter(line["outcome"] for line in agree(seen, done))
    assert outcomes == {"completed": 44, "error": 2, "never_sent": 2}
    assert done.code == 0
    check_joins(seen, done)
    cut = [tree for tree in seen.trees.values() if set(tree) == NODES - {"left on"}]
    assert len(cut) == 2
    assert {tree["left"]["status"] for tree in cut} == {400}
    assert len(seen.whole) == 6


@pytest.mark.long
@pytest.mark.parametrize("limits", [TWO_S, ("--request-count", 50), ("--request-rate", 40, *TWO_S)])
def test_each_turn_of_a_begun_tree_has_a_line(tmp_path: Path, limits: tuple[str | float, ...]) -> None:
    with running(**SLOW, truth_bodies=True, max_context=400, tokens=20) as simulator:
        line = words(simulator, trees(tmp_path / "trees.jsonl", 8, long=(1, 4)), 8)
        at = line.index("--num-sessions")
        done = Program(tmp_path)(*line[:at], *line[at + 2 :], *limits)
        seen = Seen(simulator)
    assert done.code == 0, done.err
    turns = defaultdict(list)
    lines = done.lines("profile_export_arrivals.jsonl")
    for row in lines:
        turns[row["session"]].append((row["stream"], row["turn"]))
    assert all(sorted(tree) == [(0, 0), (0, 1), (1, 0), (1, 1), (2, 0), (2, 1)] for tree in turns.values())
    outcomes = Counter(row["outcome"] for row in lines)
    assert len(seen.rows) == outcomes["completed"] + outcomes["error"]
    assert outcomes["released"] == outcomes["error"] > 0 < outcomes["truncated"], "a failed child leaves its second turn"
    assert Program(tmp_path)("validate", done.artifacts).code == 0


def test_where_all_requests_fail_every_tree_ends(tmp_path: Path) -> None:
    with running(**SLOW, truth_bodies=True, faults=["fail=500"]) as simulator:
        done = Program(tmp_path)(*words(simulator, trees(tmp_path / "trees.jsonl", 8), 8))
        seen = Seen(simulator)
    seen.judge()
    outcomes = Counter(line["outcome"] for line in agree(seen, done))
    assert outcomes == {"error": 32, "never_sent": 16}
    assert done.code == 1
    assert {frozenset(tree) for tree in seen.trees.values()} == {frozenset({"plan", "left", "right", "merge"})}
