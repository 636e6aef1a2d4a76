"""Weka traces: their trees, what is refused, and the index that later runs begin with."""

from __future__ import annotations

import errno
import json
import logging
import os
import re
from pathlib import Path
from typing import Any

import pytest
from aiperf import BadDataset, Capabilities, Conversation, DatasetContext
from aiperf.sdk.trees import Branch
from aiperf_dataset_synthetic.contract import WordTokens
from aiperf_dataset_weka_trace import corpus as corpus_module
from aiperf_dataset_weka_trace.contract import WekaTraceContract, sample_trace
from aiperf_dataset_weka_trace.dataset import WekaTrace
from aiperf_dataset_weka_trace.index import IndexWriter
from aiperf_dataset_weka_trace.options import WekaOptions

CHAT = Capabilities(system_message=True, multi_turn=True, verbatim=True, produces_tokens=True)


class TestContract(WekaTraceContract):
    """Of all data sets."""


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIPERF_CACHE_DIR", str(tmp_path / "cache"))


def call(at_s: float, ids: list[int], tokens: int = 0, **more: Any) -> dict[str, Any]:
    return {"t": at_s, "type": "n", "model": "m", "in": tokens or 64 * len(ids), "out": 20, "hash_ids": ids, **more}


def trace(*requests: dict[str, Any], name: str = "t", **more: Any) -> dict[str, Any]:
    return {"id": name, "models": ["m"], "block_size": 64, "hash_id_scope": "local", "requests": list(requests), **more}


def agent(at_s: float, *requests: dict[str, Any], name: str = "a", **more: Any) -> dict[str, Any]:
    fixed = {"type": "subagent", "subagent_type": "Explore", "status": "completed", "models": ["m"]}
    return {"t": at_s, "agent_id": name, "requests": list(requests), **fixed, **more}


def source(tmp_path: Path, *rows: Any) -> Path:
    path = tmp_path / "traces.jsonl"
    path.write_text("".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows))
    return path


def opened(path: Path, models: tuple[str, ...] = ("m",), *, replay: bool = False, **options: Any) -> WekaTrace:
    context = DatasetContext(20, 1, True, WordTokens(), CHAT, path, replay=replay, models=models)
    return WekaTrace(WekaOptions(**options), context)


def read(tmp_path: Path, *rows: Any, **options: Any) -> list[Conversation]:
    return list(opened(source(tmp_path, *rows), **options))


def tokens_of(conversation: Conversation, index: int) -> int:
    return WordTokens().count(" ".join(message.text for message in conversation.messages(index)))


def test_the_example_is_a_tree_with_recorded_times(tmp_path):
    (conversation,) = read(tmp_path, sample_trace("w"))
    root, child = conversation.streams
    assert (root.id, child.id) == ("w", "w::sa:x")
    assert root.branches == (Branch((1,), 0, 1, offsets_ms=(500.0,), start_ms=2000.0),)
    assert [turn.delay_ms for turn in conversation.turns] == [None, 8000.0, None]
    assert [turn.recorded_ms for turn in conversation.turns] == [(0.0, 1000.0), (9000.0, 9000.0), (2500.0, 2500.0)]
    assert conversation.turns[2].source == {
        "source_trace_id": "w", "source_kind": "weka_subagent", "source_outer_idx": 1, "source_inner_idx": 0,
    }  # fmt: skip
    assert [message.role for message in conversation.messages(1)] == ["user", "assistant", "user"]


def test_prompts_have_their_tokens_and_equal_blocks_equal_texts(tmp_path):
    rows = trace(
        call(0, [1, 2], 130), call(5, [1, 2, 3, 4], 300), agent(6, call(6, [1, 2, 9]), call(8, [1, 2, 9, 10], 259)),
        call(20, [1, 2, 3, 4, 5, 6]), call(30, [1, 2, 3]),
    )  # fmt: skip
    (conversation,) = read(tmp_path, rows)
    assert [tokens_of(conversation, index) for index in range(6)] == [130, 300, 384, 192, 192, 259]
    texts = [" ".join(message.text for message in conversation.messages(index)).split(" ") for index in range(6)]
    assert texts[0][:128] == texts[1][:128] == texts[4][:128] != texts[1][128:256]
    assert texts[2][:256] == texts[1][:256] and texts[4][128:192] != texts[1][128:192]


def test_a_block_in_part_is_whole_in_the_next_prompt(tmp_path):
    (conversation,) = read(tmp_path, trace(call(0, [1, 2, 3], 150), call(5, [1, 2, 3, 4], 256)))
    assert [tokens_of(conversation, index) for index in range(2)] == [150, 256]


def test_a_repeated_request_sends_its_prompt_again(tmp_path):
    (conversation,) = read(tmp_path, trace(call(0, [1], 64), call(5, [1, 2, 3], 200), call(9, [1, 2, 3], 200)))
    assert conversation.messages(2) == conversation.messages(1)
    assert (conversation.turns[2].reset, len(conversation.turns[2].before)) == (True, 2)


def test_traces_with_the_same_ids_have_other_texts(tmp_path):
    one, other = read(tmp_path, trace(call(0, [1])), trace(call(0, [1]), name="u"))
    assert one.turns[0].text != other.turns[0].text


@pytest.mark.parametrize("block", [1, 16, 48, 64, 512])
def test_blocks_have_the_size_of_their_trace(tmp_path, block):
    rows = trace(call(0, [1, 2], 2 * block), call(3, [1, 2, 3], 3 * block, api_time=1), block_size=block)
    (conversation,) = read(tmp_path, rows)
    assert [tokens_of(conversation, index) for index in range(2)] == [2 * block, 3 * block]


def test_a_turn_repeats_only_what_changed(tmp_path):
    rows = trace(call(0, [1], 64), call(5, [1, 2, 3], 202), call(9, [1, 2, 3, 4, 5], 320), call(20, [1], 64))
    turns = read(tmp_path, rows)[0].turns
    assert [(turn.keeps, turn.reset, len(turn.before)) for turn in turns] == [
        (None, False, 0), (None, False, 1), (2, False, 2), (None, True, 0),
    ]  # fmt: skip


def test_tools_and_system_prompt_are_a_system_message(tmp_path):
    (turn,) = read(tmp_path, trace(call(0, [1, 2, 3], 192), tool_tokens=60, system_tokens=60))[0].turns
    lengths = [(message.role, len(message.text.split())) for message in (*turn.before, *turn.own)]
    assert lengths == [("system", 128), ("user", 64)]


@pytest.mark.parametrize(("options", "delays"), [
    ({}, [None, 4000.0, 5000.0]),
    ({"think_time_only": True}, [None, 4000.0, 2500.0]),
    ({"delay_cap_s": 3.0}, [None, 3000.0, 3000.0]),
    ({"ignore_delays": True}, [None, None, None]),
    ({"ignore_delays": True, "replay": True}, [None, 4000.0, 5000.0]),
])  # fmt: skip
def test_pauses_are_those_recorded(tmp_path, options, delays):
    rows = trace(call(0, [1], api_time=1), call(5, [1, 2]), call(10, [1, 2, 3], think_time=2.5))
    turns = read(tmp_path, rows, **options)[0].turns
    assert [turn.delay_ms for turn in turns] == delays
    assert (turns[0].recorded_ms is None) is (delays[1] is None)


def test_ignored_delays_start_children_at_once(tmp_path):
    (conversation,) = read(tmp_path, sample_trace("w"), ignore_delays=True)
    assert conversation.streams[0].branches == (Branch((1,), 0, 1),)


def test_models_are_those_of_the_run_in_the_order_of_the_trace(tmp_path):
    rows = trace(call(0, [1], model="x"), call(2, [1, 2], model="y"), call(4, [1, 3], model="z"))
    (conversation,) = read(tmp_path, rows, models=("a", "b"))
    asked = {turn.timestamp_ms: turn.model for turn in conversation.turns}
    assert asked == {0.0: "a", 2000.0: "b", 4000.0: "a"}
    assert {turn.model for turn in read(tmp_path, rows)[0].turns} == {""}


def test_answers_and_prompts_are_bounded(tmp_path):
    inner = agent(1, call(1, [9], out=500), name="s")
    rows = trace(call(0, [1], out=500), inner, call(5, [1, 2, 3], out=0), call(6, [1, 2], out=3))
    turns = read(tmp_path, rows, max_osl=100, max_isl=150)[0].turns
    assert [(turn.prefix_blocks, turn.max_tokens) for turn in turns] == [(1, 100), (2, 3), (1, 500)]


def test_long_traces_are_left_out(tmp_path):
    long, short = trace(call(0, [1, 2], 128), name="long"), trace(call(0, [1], 64), name="short")
    assert [one.id for one in read(tmp_path, long, short, max_context=100)] == ["short"]
    with pytest.raises(BadDataset, match="--max-context-length 10 leaves no trace: the shortest has a request of 84 tokens"):
        read(tmp_path, long, short, max_context=10)


def test_times_of_subagents_have_one_clock(tmp_path, caplog):
    relative = trace(call(0, [1]), agent(5, call(1, [9]), name="r"), call(20, [1, 2]))
    absolute = trace(call(0, [1]), agent(5, call(5, [9]), name="s"), call(20, [1, 2]), name="u")
    with caplog.at_level(logging.WARNING):
        first, second = read(tmp_path, relative, absolute)
    assert [turn.timestamp_ms for turn in (first.turns[2], second.turns[2])] == [6000.0, 10000.0]
    assert "subagent 'r', request 0: 1 s, its subagent at 5 s" in caplog.text and "it may mix two clocks" in caplog.text
    assert read(tmp_path, absolute, basis="absolute")[0].turns[2].timestamp_ms == 5000.0
    with pytest.raises(BadDataset, match="trace 't', subagent 'r', request 0 is of 1 s, before its subagent at 5 s"):
        read(tmp_path, relative, basis="absolute")


def test_a_directory_and_a_file_of_one_trace_are_read(tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir()
    for name in "ba":
        (folder / f"{name}.json").write_text(json.dumps(trace(call(0, [1]), name=name), indent=2))
    (folder / "notes.txt").write_text("no trace")
    assert [one.id for one in opened(folder)] == ["a", "b"]
    assert [one.id for one in opened(folder / "b.json")] == ["b"]


def test_a_subagent_before_every_request_is_left_out(tmp_path, caplog):
    with caplog.at_level(logging.WARNING):
        (conversation,) = read(tmp_path, trace(agent(0, call(0, [9])), call(5, [1])))
    assert (len(conversation.turns), conversation.streams) == (1, ())
    assert "no request stands before 1 subagents, which are left out: 'a' of 't'" in caplog.text


GOOD = call(0, [1])
REFUSED = {
    "no JSON": (["{"], "traces.jsonl:1: no JSON"),
    "unknown key of a trace": ([trace(GOOD, more=1)], "traces.jsonl:1: Object contains unknown field `more`"),
    "unknown key of a request": ([trace(GOOD, {**GOOD, "tokens": 1})], "trace 't', request 1: .* unknown field `tokens`"),
    "unknown key of an inner one": (
        [trace(GOOD, agent(1, {**GOOD, "ttft": 1}))], r"trace 't', request 1: .* unknown field `ttft` - at `\$.requests\[0\]`"
    ),
    "another type": ([trace({**GOOD, "type": "x"})], "trace 't', request 0: Invalid value 'x'"),
    "no block size": ([trace(GOOD, block_size=0)], "traces.jsonl:1: Expected `int` >= 1"),
    "another scope": ([trace(GOOD, hash_id_scope="global")], "traces.jsonl:1: Invalid enum value 'global'"),
    "an id twice": ([trace(GOOD), trace(GOOD)], "traces.jsonl:2: the trace id 't' is that of .*traces.jsonl:1, too"),
    "an id of an agent": ([trace(GOOD, name="a::b")], "trace 'a::b' has '::' in its id"),
    "an empty id": ([trace(GOOD, name="")], "traces.jsonl:1: its id is empty"),
    "an agent twice": ([trace(GOOD, agent(1, GOOD), agent(2, GOOD))], "session 't' has two subagents 'a'"),
    "a negative time": ([trace(call(-1, [1]))], "trace 't', request 0 has the time t -1"),
    "an endless time": ([trace(GOOD, agent(1e300, GOOD))], "subagent 'a' has the time t 1e"),
    "a long hash": ([trace(call(0, [1 << 70], 64))], "trace 't', request 0"),
    "a head without blocks": ([trace(GOOD, system_tokens=200)], "session 't', agent 't': its first prompt begins with 200"),
    "a negative length": ([trace({**GOOD, "in": -1})], r"trace 't', request 0: Expected `int` >= 0 - at `\$.in`"),
    "no requests at all": ([trace()], "has no trace whose root has a request"),
    "nothing": (["", ""], "has no traces"),
}
"""Rows, and what is said of them."""


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_wrong_is_named_with_its_place(tmp_path, case):
    rows, sentence = REFUSED[case]
    with pytest.raises(BadDataset, match=sentence):
        read(tmp_path, *rows)


@pytest.mark.parametrize(("row", "keys"), [
    (trace({**GOOD, "x": 1}), r"type, t, model, in, .*, think_time; of the type s also ttft$"),
    (trace(GOOD, agent(1, {**GOOD, "ttft": 1})), r"type, t, model, in, .*, think_time; of the type s also ttft$"),
    (trace(GOOD, agent(1, GOOD, x=1)), r"type, t, agent_id, subagent_type, .*, system_tokens$"),
    (trace(GOOD, x=1), r"id, models, block_size, .*, totals$"),
])  # fmt: skip
def test_an_unknown_key_is_answered_with_the_possible_ones(tmp_path, row, keys):
    with pytest.raises(BadDataset) as caught:
        read(tmp_path, row)
    assert re.match(f"its keys are {keys}", caught.value.hints[0])


def test_a_directory_without_traces_is_refused(tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(BadDataset, match="empty has no traces"):
        list(opened(tmp_path / "empty"))


def test_later_runs_begin_with_the_index(tmp_path, monkeypatch):
    first = read(tmp_path, sample_trace("w"))

    def fail(*_: object) -> None:
        raise AssertionError("the corpus is read again")

    monkeypatch.setattr(corpus_module, "traces", fail)
    assert list(opened(tmp_path / "traces.jsonl")) == first
    with pytest.raises(AssertionError, match="read again"):
        list(opened(source(tmp_path, sample_trace("v"))))
    with pytest.raises(AssertionError, match="read again"):
        list(opened(source(tmp_path, sample_trace("w")), max_isl=999))


def test_a_damaged_index_is_made_again_or_named(tmp_path):
    first = read(tmp_path, sample_trace("w"))
    (index,) = (tmp_path / "cache" / "traces").glob("*.index")
    index.write_bytes(index.read_bytes()[:-3])
    assert read(tmp_path, sample_trace("w")) == first
    content = bytearray(index.read_bytes())
    content[40] ^= 1
    index.write_bytes(content)
    with pytest.raises(BadDataset, match="the index of traces is damaged"):
        read(tmp_path, sample_trace("w"))


def test_a_cache_that_cannot_be_written_costs_time_alone(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("AIPERF_CACHE_DIR", str(tmp_path / "file" / "cache"))
    assert len(read(tmp_path, sample_trace("w"))) == 1


def test_a_cache_that_is_full_costs_time_alone(tmp_path, monkeypatch, caplog):
    finish = IndexWriter.finish

    def full(writer, **more):
        if str(writer._file.name).startswith(str(tmp_path / "cache")):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        finish(writer, **more)

    monkeypatch.setattr(IndexWriter, "finish", full)
    assert len(read(tmp_path, sample_trace("w"))) == 1
    assert "can't be kept in" in caplog.text and "No space left on device" in caplog.text
    assert not list((tmp_path / "cache" / "traces").glob("*.index*"))


def test_a_corpus_that_changes_while_it_is_read_is_refused(tmp_path, monkeypatch):
    finish = IndexWriter.finish

    def changed(writer, **more):
        finish(writer, **more)
        source(tmp_path, sample_trace("another"))

    monkeypatch.setattr(IndexWriter, "finish", changed)
    with pytest.raises(BadDataset, match=r"traces\.jsonl changed while it was read"):
        read(tmp_path, sample_trace("w"))
    monkeypatch.undo()
    monkeypatch.setenv("AIPERF_CACHE_DIR", str(tmp_path / "cache"))
    assert [one.id for one in read(tmp_path, sample_trace("w"))] == ["w"]


def test_drafts_of_killed_runs_vanish(tmp_path):
    read(tmp_path, sample_trace("w"))
    (index,) = (tmp_path / "cache" / "traces").glob("*.index")
    left = index.with_name(f".{index.name}.{1 << 30}.draft")
    index.rename(left)
    read(tmp_path, sample_trace("w"))
    assert index.exists() and not left.exists()


def test_any_order_gives_the_same_conversations(tmp_path):
    rows = [trace(call(0, [number]), name=f"t{number}") for number in range(3)]
    every = read(tmp_path, *rows, sample_trace("w"))
    dataset = opened(tmp_path / "traces.jsonl")
    promise = dataset.promise()
    assert promise is not None and promise.sparing, "texts are made shortly before their use"
    assert promise is not None and (promise.count, promise.trees) == (4, True)
    assert list(dataset.chosen([3, 0])) == [every[3], every[0]]
    alone = opened(source(tmp_path, *rows)).promise()
    assert alone is not None and (alone.trees, alone.outline) == (False, None)


def test_results_of_tools_have_their_form_where_asked_for(tmp_path, monkeypatch):
    monkeypatch.setenv("AIPERF_DATASET_WEKA_TOOL_SHAPED_MESSAGES", "1")
    rows = trace(call(0, [1], stop="tool_use"), call(5, [1, 2, 3], 202), call(9, [1, 2, 3, 4, 5]))
    turns = read(tmp_path, rows)[0].turns
    answer, result = (message.item for message in turns[1].own)
    assert answer is not None and result is not None
    assert (answer["tool_calls"][0]["id"], result["role"], result["tool_call_id"]) == ("call_turn_1", "tool", "call_turn_1")


def test_a_run_without_a_tokenizer_is_refused(tmp_path):
    context = DatasetContext(1, 1, True, None, CHAT, source(tmp_path, sample_trace("w")))
    with pytest.raises(BadDataset, match="measured in tokens"):
        list(WekaTrace(WekaOptions(), context))


def test_what_was_recorded_is_told_without_prompts(tmp_path):
    rows = list(WekaTrace.recorded(source(tmp_path, sample_trace("w"))).rows)
    assert [(row.session, row.stream, row.depth, row.input_tokens) for row in rows] == [
        ("w", 0, 0, 150), ("w::sa:x", 1, 1, 64), ("w", 0, 0, 214),
    ]  # fmt: skip


@pytest.mark.parametrize("inner_s", [5, 1])
def test_rows_have_the_block_size_of_the_corpus_by_either_clock(tmp_path, inner_s):
    rows = trace(call(0, [1], 16), agent(5, call(inner_s, [9], 16)), call(20, [1, 2], 32), block_size=16)
    recorded = WekaTrace.recorded(source(tmp_path, rows))
    assert (recorded.block_tokens, len(list(recorded.rows))) == (16, 3)
