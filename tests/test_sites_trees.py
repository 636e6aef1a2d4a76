"""Conversations that start others, at sites: what the server sees is what one machine sends."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from aiperf_command_simulate.testing import running
from annex_runs import ROOMS, Annex
from program import Done

TREES = (
    {"session_id": "p", "turns": [{"messages": [{"role": "user", "content": "plan"}], "spawns": ["c"]},
                                  {"messages": [{"role": "user", "content": "merge"}], "delay": 5}]},
    {"session_id": "c", "turns": [{"messages": [{"role": "user", "content": "part"}], "max_tokens": 8},
                                  {"messages": [{"role": "user", "content": "rest"}], "max_tokens": 8}]},
    {"session_id": "r", "turns": [{"messages": [{"role": "user", "content": "base"}], "forks": ["x"], "max_tokens": 6}]},
    {"session_id": "x", "turns": [{"messages": [{"role": "user", "content": "left"}], "max_tokens": 6}]},
    {"session_id": "o", "orchestrator": True, "spawns": ["w"], "rounds": 2, "think_time_ms": 20},
    {"session_id": "w", "turns": [{"messages": [{"role": "user", "content": "work"}], "max_tokens": 6}]},
)  # fmt: skip
SITES = ("--engine", "annex", "--annex-rooms", ",".join(ROOMS))


@pytest.fixture
def annex(tmp_path: Path) -> Iterator[Annex]:
    with running(truth_bodies=True, first_token_ms=10, decode_ms=1, decode_batch_us=0) as simulator:
        yield Annex(tmp_path, simulator)


def words(annex: Annex, name: str = "run") -> list[str | int]:
    return [
        "profile", "--model", "sim", "--url", annex.simulator.url, "--tokenizer", "builtin", "--streaming",
        "--random-seed", 7, "--ui", "none", "--artifact-dir", name,
    ]  # fmt: skip


def here_and_there(annex: Annex, *load: str | int | Path) -> tuple[list[dict[str, Any]], list[dict[str, Any]], Done]:
    """What the server saw of a run on this machine and of one at three sites, and the results of the latter."""
    seen = []
    for name, at in (("here", ()), ("there", SITES)):
        annex.simulator.reset()
        done = annex.aiperf(*words(annex, name), *load, *at)
        assert done.code == 0, done.err
        seen.append(annex.simulator.truth()["requests"])
    return seen[0], seen[1], Done(done.code, done.out, done.err, annex.folder / "there")


def asked(seen: list[dict[str, Any]]) -> Counter[tuple[str, str]]:
    """The stream and tree of each request, behind the run's own part of its id, and what its user says."""
    return Counter((row["correlation_id"][19:], said(row)) for row in seen)


def said(row: dict[str, Any]) -> str:
    return "/".join(str(message["content"]) for message in json.loads(row["body"])["messages"] if message["role"] == "user")


def assert_order(seen: list[dict[str, Any]]) -> None:
    """Children begin behind their turn, and joins wait, in each tree."""
    trees: dict[str, dict[str, dict[str, Any]]] = {}
    for row in seen:
        trees.setdefault(row["correlation_id"][-12:], {})[said(row)] = row
    for tree in trees.values():
        for first, then in (("plan", "part"), ("part/rest", "plan/merge"), ("base", "base/left")):
            if {first, then} <= tree.keys():
                assert tree[then]["received_mono_ns"] >= tree[first]["last_mono_ns"], f"{then} before the end of {first}"


@pytest.mark.parametrize(
    "load",
    [
        ("--concurrency", 6, "--num-sessions", 24),
        pytest.param(("--request-rate", 60, "--num-sessions", 18), marks=pytest.mark.long),
        pytest.param(("--concurrency", 3, "--request-count", 25), marks=pytest.mark.long),
        pytest.param(("--user-centric-rate", 20, "--num-users", 6, "--num-sessions", 12), marks=pytest.mark.long),
    ],
)
def test_trees_at_three_sites_are_those_of_one_machine(annex: Annex, load: tuple[str | int, ...]) -> None:
    path = annex.folder / "trees.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in TREES))
    here, there, done = here_and_there(annex, "--input-file", path, "--dataset-sampling-strategy", "sequential", *load)
    if "--request-count" in load:  # which turns come in the end depends on the answers
        numbers = [row["n"] for row in done.lines("profile_export_arrivals.jsonl") if "n" in row]
        assert len(here) == len(there) == 25 and sorted(numbers) == [*range(25)]
    else:
        assert asked(here) == asked(there)
    assert_order(there)
    assert done.json()["is_complete"] and {row.get("site") for row in done.lines("profile_export_arrivals.jsonl")} >= {*ROOMS}
    checked = annex.aiperf("validate", done.artifacts)
    assert checked.code == 0, checked.out


@pytest.mark.long
def test_a_lost_site_with_trees_is_not_started_again(annex: Annex) -> None:
    path = annex.folder / "trees.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in TREES))
    load = ("--num-sessions", 9, "--concurrency", 6, "--restart-lost-shards")
    done = annex.aiperf(*words(annex), "--input-file", path, *load, *SITES)
    assert done.code == 1 and not annex.simulator.truth()["requests"]
    assert "--restart-lost-shards is not possible with phase profiling: how many requests of its trees" in done.err
