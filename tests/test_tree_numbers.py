"""Numbers of trees of a run, against those computed from its lines by code that shares nothing with the metrics."""

from __future__ import annotations

import json
from collections.abc import Iterable
from statistics import fmean, median, quantiles
from typing import Any

import pytest
from aiperf_command_simulate.testing import running
from program import Program

_TREES = 6


def _turn(text: str, tokens: int, **more: Any) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": text}], "max_tokens": tokens, **more}


_ROWS = (
    {"session_id": "q", "turns": [
        _turn("plan", 4, spawns=["a", "b", "c"]), _turn("merge", 6, delay=10), _turn("end", 3, delay=20, forks=["f", "g"]),
    ]},
    {"session_id": "a", "turns": [_turn("one", 12), _turn("two", 9), _turn("three", 5, delay=10)]},
    {"session_id": "b", "turns": [_turn("short", 2)]},
    {"session_id": "c", "turns": [_turn("middle", 20, spawns=["d"])]},
    {"session_id": "d", "turns": [_turn("deep", 60), _turn("deeper", 40)]},
    {"session_id": "f", "turns": [_turn("left", 8)]},
    {"session_id": "g", "turns": [_turn("right", 16)]},
)  # fmt: skip
_Key = tuple[str, int]
_WAITS: dict[_Key, tuple[tuple[_Key, float], ...]] = {
    ("q", 0): (), ("a", 0): ((("q", 0), 0),), ("b", 0): ((("q", 0), 0),), ("c", 0): ((("q", 0), 0),),
    ("a", 1): ((("a", 0), 0),), ("a", 2): ((("a", 1), 10),), ("d", 0): ((("c", 0), 0),), ("d", 1): ((("d", 0), 0),),
    ("q", 1): ((("q", 0), 10), (("a", 2), 0), (("b", 0), 0), (("c", 0), 0)),
    ("q", 2): ((("q", 1), 20),), ("f", 0): ((("q", 2), 0),), ("g", 0): ((("q", 2), 0),),
}  # fmt: skip
"""What each request waits for, with the planned time behind it in ms."""
_Tree = dict[_Key, dict[str, Any]]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Artifacts of a run of six trees: the JSON, and the trees' lines by root, conversation and turn."""
    path = tmp_path_factory.mktemp("numbers")
    (path / "trees.jsonl").write_text("".join(json.dumps(row) + "\n" for row in _ROWS))
    with running(first_token_ms=4, decode_ms=1, decode_batch_us=0) as simulator:
        done = Program(path)(
            "profile", "--model", "m", "--url", simulator.url, "--streaming", "--tokenizer", "builtin", "--ui", "none",
            "--input-file", path / "trees.jsonl", "--concurrency", 2, "--num-sessions", _TREES, "--workers-max", 2,
        )  # fmt: skip
    assert done.code == 0, done.err
    trees: dict[str, _Tree] = {}
    for line in done.lines("profile_export.jsonl"):
        about = line["metadata"]
        trees.setdefault(about["root_correlation_id"], {})[about["conversation_id"], about["turn_index"]] = line
    assert len(trees) == _TREES
    assert all(tree.keys() == _WAITS.keys() for tree in trees.values())
    return done, list(trees.values())


def _start(line: dict[str, Any]) -> float:
    """In ms of the day and a bit more: a float has no ns left for the time since 1970."""
    return float(line["metadata"]["request_start_ns"] % 10**14 / 1e6)


def _end(line: dict[str, Any]) -> float:
    return float(line["metadata"]["request_end_ns"] % 10**14 / 1e6)


def _path(tree: _Tree, key: _Key, *, planned: bool) -> float:
    """The longest chain of requests up to one, in ms; *planned*: with the planned times between, as far as they passed."""
    before = [
        _path(tree, need, planned=planned) + (min(ms, _start(tree[key]) - _end(tree[need])) if planned else 0)
        for need, ms in _WAITS[key]
    ]
    return max(before, default=0) + _end(tree[key]) - _start(tree[key])


def _check(document: dict[str, Any], tag: str, values: Iterable[float], unit: str) -> None:
    found, known = document[tag], sorted(values)
    cuts = quantiles(known, n=100, method="inclusive") if len(known) > 1 else known * 99
    expected = {"avg": fmean(known), "min": known[0], "max": known[-1], "p50": median(known), "p90": cuts[89]}
    assert {name: found[name] for name in expected} == pytest.approx(expected, rel=1e-9, abs=1e-9), tag
    assert (found["count"], found["unit"]) == (len(known), unit), tag


def test_durations_and_paths_are_those_of_the_lines(run: Any) -> None:
    done, trees = run
    document = done.json()
    spans = [(min(map(_start, tree.values())), max(map(_end, tree.values()))) for tree in trees]
    durations = [end - start for start, end in spans]
    alone = [max(_path(tree, key, planned=False) for key in tree) for tree in trees]
    planned = [max(_path(tree, key, planned=True) for key in tree) for tree in trees]
    _check(document, "tree_duration", (each / 1e3 for each in durations), "sec")
    _check(document, "tree_critical_path", (each / 1e3 for each in alone), "sec")
    shares = [100 * path / duration for path, duration in zip(planned, durations, strict=True)]
    _check(document, "tree_critical_path_share", shares, "%")
    assert min(shares) > 50, "the path misses requests that waited for each other"
    window_s = document["observation_window"]["avg"]
    assert document["trees_per_hour"]["avg"] == pytest.approx(3600 * _TREES / window_s, rel=1e-6)


def test_sizes_are_those_of_the_lines(run: Any) -> None:
    done, trees = run
    document = done.json()
    _check(document, "tree_requests", [len(_WAITS)] * _TREES, "requests")
    tags = ("input_sequence_length", "output_sequence_length")
    tokens = [sum(each["metrics"][tag]["value"] for each in tree.values() for tag in tags) for tree in trees]
    _check(document, "tree_tokens", tokens, "tokens")
    _check(document, "tree_depth", [2] * _TREES, "count")
    widths = [
        max(sum(_start(each) <= _start(one) < _end(each) for each in tree.values()) for one in tree.values()) for tree in trees
    ]
    _check(document, "tree_width", widths, "requests")
    assert document["tree_outcomes"] == {"ended": _TREES}


def test_joins_and_siblings_are_those_of_the_lines(run: Any) -> None:
    done, trees = run
    document = done.json()
    waits, spreads = [], []
    for tree in trees:
        for children in (("a", "b", "c"), ("f", "g")):
            own = {child: [line for (name, _), line in tree.items() if name == child] for child in children}
            if "a" in own:
                last = max(_end(line) for lines in own.values() for line in lines)
                waits.append(max(0.0, last - _end(tree["q", 0]) - 10))
            times = [max(map(_end, lines)) - min(map(_start, lines)) for lines in own.values()]
            spreads.append(max(times) / median(times))
    _check(document, "tree_join_wait", waits, "ms")
    _check(document, "tree_sibling_spread", spreads, "ratio")
    assert document["branch_stats"] == {
        "children_spawned": 6 * _TREES, "children_completed": 6 * _TREES, "children_errored": 0, "children_truncated": 0,
        "children_delayed": 0, "parents_suspended": _TREES, "parents_resumed": _TREES,
        "parents_failed_due_to_child_error": 0, "joins_suppressed": 0, "graphs_admitted": 0, "graphs_completed_to_end": 0,
    }  # fmt: skip


def test_first_tokens_are_told_apart_by_the_age_of_their_prefix(run: Any) -> None:
    done, trees = run
    document = done.json()
    fresh = [("q", 0), ("a", 0), ("b", 0), ("c", 0), ("d", 0)]
    ttft = {key: [tree[key]["metrics"]["time_to_first_token"]["value"] for tree in trees] for key in _WAITS}
    _check(document, "tree_ttft_prefix_first", (value for key in fresh for value in ttft[key]), "ms")
    _check(document, "tree_ttft_prefix_under_1s", (value for key in ttft if key not in fresh for value in ttft[key]), "ms")


def test_latencies_are_given_by_depth_and_position(run: Any) -> None:
    done, trees = run
    depths = {"q": "0", "d": "2"}
    found = {(group["text"], group["key"]): group["metrics"] for group in done.json()["groups"]}
    for tag in ("time_to_first_token", "request_latency"):
        by: dict[tuple[str, str], list[float]] = {}
        for (name, turn), value in ((key, line["metrics"][tag]["value"]) for tree in trees for key, line in tree.items()):
            place = f"{'root' if name == 'q' else 'child'} {'later' if turn else 'first'}"
            by.setdefault(("depth", depths.get(name, "1")), []).append(value)
            by.setdefault(("position", place), []).append(value)
        assert by.keys() == found.keys()
        for key, values in by.items():
            _check(found[key], tag, values, "ms")


def test_interactivity_is_one_over_the_slow_tail(run: Any) -> None:
    done, trees = run
    per_token = sorted(
        line["metrics"]["request_latency"]["value"] / 1e3 / line["metrics"]["output_sequence_length"]["value"]
        for tree in trees for line in tree.values()
    )  # fmt: skip
    cuts = quantiles(per_token, n=100, method="inclusive")
    for percent in (75, 90):
        found = done.json()[f"e2e_normalized_interactivity_p{percent}"]
        assert found == {"unit": "tokens/sec/user", "avg": pytest.approx(1 / cuts[percent - 1], rel=1e-9)}


def test_the_console_has_a_table_of_trees(run: Any) -> None:
    done, _ = run
    console = (done.artifacts / "profile_export_console.txt").read_text()
    assert ": Trees" in console
    assert "Slowest Sibling over Median" in console
