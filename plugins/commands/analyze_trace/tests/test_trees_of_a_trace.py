"""Conversations that start others, as analyze-trace sees them."""

from __future__ import annotations

import json
from array import array
from pathlib import Path
from typing import Any

import pytest
from aiperf import AiperfError, BadDataset
from aiperf.registry.registry import Registry
from aiperf.sdk.trace import TraceRow
from aiperf_command_analyze_trace import AnalyzeTrace
from aiperf_command_analyze_trace.analysis import TraceReport, analyse
from aiperf_command_analyze_trace.options import AnalyzeTraceOptions

LONG = "one two three four five six seven eight nine ten " * 8


def report_of(rows: list[TraceRow]) -> TraceReport:
    return analyse(rows, 10)[0]


def run(path: Path, **options: Any) -> int:
    command = AnalyzeTrace()
    command.registry = Registry.discover()
    return command.run(AnalyzeTraceOptions(input_file=path, **options), ())


def said(text: str, **more: Any) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": text}], **more}


def dag(path: Path, *rows: Any) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_depth_width_and_context_are_of_each_tree() -> None:
    rows = [
        TraceRow(30, 5, (1, 2, 3), tree=0), TraceRow(20, 5, (1, 7), tree=0, stream=1, depth=1),
        TraceRow(10, 9, (8,), tree=0, stream=2, depth=1), TraceRow(90, 0, (9,), tree=0, stream=3, depth=2),
        TraceRow(40, 2, (1, 2, 3, 4), tree=0), TraceRow(10, 1, (1,), tree=1, scope=2),
    ]  # fmt: skip
    trees = report_of(rows).trees
    assert trees is not None
    assert (trees.trees, trees.with_children, trees.streams) == (2, 1, 5)
    assert (trees.requests_stats.max, trees.requests_stats.min) == (5, 1)
    assert (trees.depth_stats.max, trees.width_stats.max, trees.width_stats.min) == (2, 2, 1)
    assert (trees.peak_context_stats.max, trees.peak_context_stats.min) == (91, 11)
    assert trees.theoretical_prefix_cache_hit == pytest.approx(4 / 12)  # 1 of (1, 7), and 1, 2, 3 of the last in the tree
    assert trees.hit_rate_stats.max == pytest.approx(4 / 11) and trees.hit_rate_stats.min == 0


def test_a_trace_of_single_conversations_has_no_trees() -> None:
    assert report_of([TraceRow(10, 1, (1,))]).trees is None


@pytest.mark.parametrize("kind", [tuple, lambda ids: array("q", ids)])
def test_blocks_of_other_scopes_are_other_blocks(kind: Any) -> None:
    rows = [TraceRow(20, 1, kind((1, 2)), scope=scope) for scope in (0, 1, 1, 2)]
    report = report_of(rows)
    assert (report.distinct_blocks, report.num_prefix_groups) == (6, 1)
    assert report.cache_hit_rate == 0.25


def test_prompts_of_texts_are_counted_in_tokens(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first = said(LONG, spawns=["child"])
    path = dag(tmp_path / "d.jsonl", {"session_id": "p", "turns": [first, said("merge", max_tokens=50)]},
               {"session_id": "child", "turns": [said(LONG, forks=["fork"])]},
               {"session_id": "fork", "turns": [said("go on")]})  # fmt: skip
    assert run(path, as_json=True, block_size=16) == 0
    found = json.loads(capsys.readouterr().out)
    tokens = found["min_isl"]  # of LONG alone
    trees = found["trees"]
    assert tokens > 64 and found["max_isl"] <= tokens + 3 and found["max_osl"] == 50
    assert (trees["trees"], trees["with_children"], trees["streams"]) == (1, 1, 3)
    assert (trees["depth_stats"]["max"], trees["width_stats"]["max"]) == (2, 1)
    assert trees["peak_context_stats"]["max"] > tokens + 50
    # all but the first request begin with the blocks of LONG
    assert found["distinct_blocks"] <= tokens // 16 + 3 and trees["theoretical_prefix_cache_hit"] > 0.7
    assert found["block_size"] == 16


def test_a_person_sees_the_trees(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = dag(tmp_path / "d.jsonl", {"session_id": "p", "turns": [said("plan", spawns=["c"]), said("merge")]},
               {"session_id": "c", "turns": [said("part")]})  # fmt: skip
    assert run(path, block_size=1) == 0
    shown = capsys.readouterr().out
    assert "Trees: 1, of which 1 start others; 2 streams" in shown
    assert "Prefix cache hit: 25.00% of all blocks" in shown and "Peak Context" in shown


def test_a_broken_tree_is_named_with_its_line(tmp_path: Path) -> None:
    path = dag(tmp_path / "d.jsonl", {"session_id": "p", "turns": [said("plan", spawns=["nobody"])]})
    with pytest.raises(BadDataset, match="line 1: session 'p' starts 'nobody'"):
        run(path)


def test_texts_need_the_tokenizer_that_counts_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    find = Registry.find
    path = dag(tmp_path / "d.jsonl", {"session_id": "p", "turns": [said("plan")]})
    monkeypatch.setattr(
        Registry, "find", lambda self, category, name: None if name == "builtin" else find(self, category, name)
    )
    with pytest.raises(AiperfError, match="tokenizer 'builtin' that counts them is not installed"):
        run(path)
