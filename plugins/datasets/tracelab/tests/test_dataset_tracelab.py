"""Trees of recorded coding agents: turns, joins, times, and what analyze-trace and results are told."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import pytest
from aiperf import BadDataset, Capabilities, Conversation, DatasetContext
from aiperf.sdk.model import Answers
from aiperf.sdk.trees import faults
from aiperf_dataset_synthetic.contract import WordTokens
from aiperf_dataset_tracelab.contract import TracelabContract, sample_round, sample_rounds
from aiperf_dataset_tracelab.dataset import Tracelab
from aiperf_dataset_tracelab.options import TracelabOptions
from aiperf_traces.settings import settings

_CHAT = Capabilities(system_message=True, multi_turn=True, verbatim=True, produces_tokens=True)


class TestContract(TracelabContract):
    """Of all data sets."""


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIPERF_CACHE_DIR", str(tmp_path / "cache"))


def made(tmp_path: Path, *rows: dict[str, Any], models: tuple[str, ...] = ("m",), **options: Any) -> Tracelab:
    path = tmp_path / "rounds.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    context = DatasetContext(9, 1, True, WordTokens(), _CHAT, path, models=models)
    return Tracelab(TracelabOptions(**options), context)


def trees(tmp_path: Path, *rows: dict[str, Any], **options: Any) -> list[Conversation]:
    return list(made(tmp_path, *rows, **options))


def test_a_subagent_is_a_stream_that_the_next_turn_joins(tmp_path: Path) -> None:
    (tree,) = trees(tmp_path, *sample_rounds("w"))
    assert [(one.id, one.first, one.turns, one.depth) for one in tree.streams] == [("w", 0, 2, 0), ("w::sa:w-x", 2, 1, 1)]
    (branch,) = tree.streams[0].branches
    assert (branch.children, branch.after, branch.joins, branch.start_ms, branch.offsets_ms) == ((1,), 0, 1, 1000.0, (1000.0,))
    assert [turn.recorded_ms for turn in tree.turns] == [(0.0, 1000.0), (25000.0, 26000.0), (2000.0, 3000.0)]
    assert [turn.delay_ms for turn in tree.turns] == [None, 24000.0, None]
    assert tree.answers is Answers.AUTHORED and not list(faults(tree.streams, len(tree.turns)))


def test_prompts_have_their_tokens_and_what_the_server_had(tmp_path: Path) -> None:
    (tree,) = trees(tmp_path, *sample_rounds("w"))
    prompts = [tree.messages(place) for place in range(3)]
    assert [sum(WordTokens().count(one.text) for one in prompt) for prompt in prompts] == [150, 250, 64]
    words = [" ".join(one.text for one in prompt).split() for prompt in prompts]
    assert words[1][:128] == words[0][:128]  # two whole blocks of 64
    assert words[1][128:150] != words[0][128:]
    assert [(turn.prefix_blocks, turn.prefix_hits) for turn in tree.turns] == [(2, 0), (3, 2), (1, 0)]
    assert [turn.max_tokens for turn in tree.turns] == [1, 1, 1]


def test_records_know_the_round_that_a_turn_is_of(tmp_path: Path) -> None:
    (tree,) = trees(tmp_path, *sample_rounds("w"))
    assert [turn.source for turn in tree.turns] == [
        {"source_trace_id": "w", "source_kind": "weka_main", "source_outer_idx": 0},
        {"source_trace_id": "w", "source_kind": "weka_main", "source_outer_idx": 2},
        {"source_trace_id": "w", "source_kind": "weka_subagent", "source_outer_idx": 1, "source_inner_idx": 0},
    ]


def test_models_of_the_run_stand_for_those_of_the_file(tmp_path: Path) -> None:
    rows = [sample_round("a", second, 64 * at, 64 * at, model=name) for at, (second, name) in enumerate(
        ((0, "x"), (5, "y"), (9, "x")), 1)]  # fmt: skip
    (tree,) = trees(tmp_path, *rows, models=("one", "two"))
    # a request to another model is an agent of its own
    assert {turn.model for turn in tree.turns} == {"one", "two"}


@pytest.mark.parametrize(
    ("options", "delays"),
    [
        ({"ignore_delays": True}, [None, None, None]),
        ({"delay_cap_s": 3}, [None, 3000.0, None]),
        ({"think_time_only": True}, [None, 24000.0, None]),
    ],
)
def test_options_say_how_long_turns_wait(tmp_path: Path, options: dict[str, Any], delays: list[float | None]) -> None:
    (tree,) = trees(tmp_path, *sample_rounds("w"), **options)
    assert [turn.delay_ms for turn in tree.turns] == delays


def test_a_block_may_have_another_length(tmp_path: Path) -> None:
    (tree,) = trees(tmp_path, *sample_rounds("w"), block_size=32)
    assert [(turn.prefix_blocks, turn.prefix_hits) for turn in tree.turns] == [(4, 0), (7, 4), (2, 0)]


def test_long_contexts_are_left_out_before_anything_is_taken(tmp_path: Path) -> None:
    rows = [sample_round("long", 0, 500), sample_round("short", 0, 90)]
    assert [tree.id for tree in trees(tmp_path, *rows, max_context=100)] == ["short"]
    with pytest.raises(BadDataset, match="--max-context-length 50 leaves no trace: the shortest has a request of 91 tokens"):
        trees(tmp_path, *rows, max_context=50)


def test_long_prompts_are_left_out(tmp_path: Path) -> None:
    rows = [sample_round("a", 0, 90), sample_round("a", 5, 500, 90), sample_round("a", 9, 510, 500)]
    (tree,) = trees(tmp_path, *rows, max_isl=505)
    assert [turn.prefix_blocks for turn in tree.turns] == [1, 7]


def test_answers_are_cut(tmp_path: Path) -> None:
    (tree,) = trees(tmp_path, sample_round("a", 0, 90, output_tokens=300), max_osl=7)
    assert [turn.max_tokens for turn in tree.turns] == [7]


def test_a_worker_at_the_time_of_its_answer_is_joined_later(tmp_path: Path) -> None:
    rows = [sample_round("a", second, tokens, prefix, model=model) for second, tokens, prefix, model in (
        (0, 640, 0, "m"), (5, 700, 640, "m"), (5, 100, 0, "other"), (5, 800, 700, "m"), (9, 900, 800, "m"))]  # fmt: skip
    for row in rows[1:4]:
        row["timing_events"] = row["timing_events"][:1]  # answered at once
    (tree,) = trees(tmp_path, *rows)
    assert not list(faults(tree.streams, len(tree.turns)))
    assert all(branch.joins is None or branch.joins > (branch.after or 0) for branch in tree.streams[0].branches)
    assert len(tree.streams) > 1


def test_results_tell_what_was_found_also_from_the_index(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    undated = {**sample_round("w", 7, 64), "timing_events": []}
    rows = [*sample_rounds("w"), undated, {**sample_round("", 0, 1), "session_id": None}]
    for _ in range(2):
        dataset = made(tmp_path, *rows)
        caplog.clear()
        with caplog.at_level(logging.WARNING):
            assert len(list(dataset)) == 1
        facts = dataset.source_facts()
        assert facts == {
            "spawn_windows": 1, "subagents": 1, "ambiguous_subagents": 0, "subagents_of_subagents": 0,
            "rounds_without_times": 1, "rows_without_session": 1, "traces_read": 1, "traces": 1,
        }  # fmt: skip
        assert "rounds without times are left out: 1" in caplog.text


def test_a_file_without_times_is_refused(tmp_path: Path) -> None:
    undated = {**sample_round("w", 7, 64), "timing_events": []}
    with pytest.raises(BadDataset, match="has no traces"):
        trees(tmp_path, undated)
    with pytest.raises(BadDataset, match="no round has a time"):
        list(Tracelab.recorded(tmp_path / "rounds.jsonl").rows)


def test_a_first_row_tells_the_format() -> None:
    row = sample_round("a", 0, 64)
    assert Tracelab.recognises(Path("any"), row)
    assert not any(Tracelab.recognises(Path("any"), {key: row[key] for key in row if key != gone}) for gone in row)
    assert not Tracelab.recognises(Path("any"), None)


def test_rows_of_a_trace_have_times_of_one_clock(tmp_path: Path) -> None:
    later = [{**row, "session_id": f"l{row['session_id']}", "user": "v"} for row in sample_rounds("w")]
    made(tmp_path, *later, *sample_rounds("w"))
    trace = Tracelab.recorded(tmp_path / "rounds.jsonl")
    rows = list(trace.rows)
    assert trace.block_tokens == 64 and [row.tree for row in rows] == [0, 0, 0, 1, 1, 1]
    assert [row.stream for row in rows[:3]] == [0, 1, 0] and [row.depth for row in rows[:3]] == [0, 1, 0]
    begin_ms = 1767225600000.0  # 2026-01-01
    assert [(row.timestamp_ms or 0) - begin_ms for row in rows[:3]] == [0, 2000, 25000]
    assert {row.scope for row in rows} == {1, 2} and settings().workers.split
