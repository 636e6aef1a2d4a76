"""Files of agents, of each format: recognised, checked by validate, and counted by analyze-trace as a run counts them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from aiperf import BadDataset, Capabilities, DatasetContext
from aiperf.registry.registry import Registry
from aiperf_command_analyze_trace import AnalyzeTrace
from aiperf_command_analyze_trace.options import AnalyzeTraceOptions
from aiperf_command_validate.dataset import read
from aiperf_dataset_synthetic.contract import WordTokens
from aiperf_dataset_tracelab.contract import sample_rounds
from aiperf_dataset_weka_trace.contract import sample_trace

CHAT = Capabilities(system_message=True, multi_turn=True, verbatim=True, produces_tokens=True)


@pytest.fixture(scope="module")
def registry() -> Registry:
    return Registry.discover()


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIPERF_CACHE_DIR", str(tmp_path / "cache"))


def lines(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def dag(folder: Path) -> Path:
    said = [{"messages": [{"role": "user", "content": text}]} for text in ("plan", "merge", "part")]
    rows: list[list[dict[str, Any]]] = [[{"session_id": f"r{n}", "turns": [{**said[0], "spawns": [f"c{n}"]}, said[1]]},
             {"session_id": f"c{n}", "turns": [said[2]]}] for n in range(2)]  # fmt: skip
    return lines(folder / "trees.jsonl", [row for pair in rows for row in pair])


def weka_lines(folder: Path) -> Path:
    return lines(folder / "traces.jsonl", [sample_trace(f"w{number}") for number in range(2)])


def weka_file(folder: Path) -> Path:
    path = folder / "trace.json"
    path.write_text(json.dumps(sample_trace("w"), indent=2))
    return path


def weka_folder(folder: Path) -> Path:
    (folder / "traces").mkdir()
    for number in range(2):
        (folder / "traces" / f"{number}.json").write_text(json.dumps(sample_trace(f"w{number}"), indent=2))
    return folder / "traces"


def tracelab(folder: Path) -> Path:
    return lines(folder / "rounds.jsonl", [row for number in range(2) for row in sample_rounds(f"s{number}")])


@pytest.mark.parametrize(
    ("make", "form", "trees"),
    [
        (dag, "dag_jsonl", 2),
        (weka_lines, "weka_trace", 2),
        (weka_file, "weka_trace", 1),
        (weka_folder, "weka_trace", 2),
        (tracelab, "tracelab", 2),
    ],
)
def test_a_file_is_known_checked_and_counted(
    make: Callable[[Path], Path], form: str, trees: int, tmp_path: Path, registry: Registry, capsys: pytest.CaptureFixture[str]
) -> None:
    path = make(tmp_path)
    done = read(path, "dataset", registry)
    assert (done.format, done.fault, done.conversations, done.started, done.turns) == (form, None, trees, trees, 3 * trees)
    command = AnalyzeTrace()
    command.registry = registry
    assert command.run(AnalyzeTraceOptions(input_file=path, as_json=True), ()) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["total_requests"], found["trees"]["trees"], found["trees"]["with_children"]) == (3 * trees, trees, trees)
    assert (found["trees"]["depth_stats"]["max"], found["trees"]["width_stats"]["max"]) == (1, 1)


@pytest.mark.parametrize(("make", "form"), [(weka_lines, "weka_trace"), (tracelab, "tracelab")])
def test_analyze_trace_counts_the_hits_that_a_run_reports(
    make: Callable[[Path], Path], form: str, tmp_path: Path, registry: Registry, capsys: pytest.CaptureFixture[str]
) -> None:
    path = make(tmp_path)
    command = AnalyzeTrace()
    command.registry = registry
    command.run(AnalyzeTraceOptions(input_file=path, as_json=True), ())
    trees = json.loads(capsys.readouterr().out)["trees"]
    options = registry.load_options_model(registry.descriptor("datasets", form))
    assert options is not None
    context = DatasetContext(9, 1, True, WordTokens(), CHAT, path, models=("m",))
    turns = [turn for tree in registry.load("datasets", form)(options(), context) for turn in tree.turns]
    hits, blocks = sum(turn.prefix_hits for turn in turns), sum(turn.prefix_blocks for turn in turns)
    assert 0 < hits < blocks and trees["theoretical_prefix_cache_hit"] == pytest.approx(hits / blocks)


def test_a_bad_file_is_told_with_its_place(tmp_path: Path, registry: Registry) -> None:
    path = lines(tmp_path / "rounds.jsonl", [*sample_rounds("s"), sample_rounds("t")[0] | {"input_tokens_total": -5}])
    done = read(path, "tracelab", registry)
    assert done.fault is not None and ":4: input_tokens_total" in done.fault
    command = AnalyzeTrace()
    command.registry = registry
    with pytest.raises(BadDataset, match=":4: input_tokens_total"):
        command.run(AnalyzeTraceOptions(input_file=path), ())
