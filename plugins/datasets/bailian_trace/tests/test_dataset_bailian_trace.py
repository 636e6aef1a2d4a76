"""Rows of a Bailian trace: chats by their parents, times in seconds, blocks of 16 tokens."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from aiperf import BadDataset, Capabilities, Conversation, DatasetContext
from aiperf.testing import DatasetContract
from aiperf_dataset_bailian_trace.contract import BailianTraceContract
from aiperf_dataset_bailian_trace.dataset import BailianTrace
from aiperf_dataset_bailian_trace.options import BailianTraceOptions
from aiperf_dataset_synthetic.contract import WordTokens

CHAT = Capabilities(system_message=True, multi_turn=True)


def row(chat: int, parent: int = -1, length: int = 10, **others: Any) -> dict[str, Any]:
    return {"chat_id": chat, "parent_chat_id": parent, "timestamp": chat, "input_length": length, "output_length": 3, **others}


def read(path: Path, *rows: dict[str, Any], tokenizer: Any = ..., **given: Any) -> list[Conversation]:
    file = path / "trace.jsonl"
    file.write_text("".join(json.dumps(each) + "\n" for each in rows))
    tokens = WordTokens() if tokenizer is ... else tokenizer
    options, context = BailianTraceOptions(**given), DatasetContext(100, 7, True, tokens, CHAT, file, replay=True)
    found = list(BailianTrace(options, context))
    DatasetContract.check_promise(BailianTrace(options, context), found)
    return found


class TestBailianTraceKeepsTheContract(BailianTraceContract):
    pass


def test_a_chain_whose_rows_are_complete_prompts_is_sent_row_by_row(tmp_path: Path) -> None:
    first = row(7, length=32, timestamp=1.5, output_length=9, type="text", turn=1, hash_ids=[4, 5])
    second = row(8, 7, length=48, timestamp=6.0, output_length=4, type="text", turn=2, hash_ids=[4, 5, 6])
    (one,) = read(tmp_path, first, second)
    assert (one.id, one.alone) == ("7", True)
    assert [(turn.timestamp_ms, turn.max_tokens, turn.input_tokens) for turn in one.turns] == [(1500, 9, 32), (6000, 4, 48)]
    words = [turn.text.split() for turn in one.turns]
    assert words[1][:32] == words[0]


@pytest.mark.parametrize(("ids", "length", "complete"), [
    ([1, 2, 3], 40, True), ([1, 9, 3], 40, True),
    ([8, 9, 3], 40, False), ([1, 2], 20, False), (None, 40, False),
])  # fmt: skip
def test_rows_of_new_tokens_follow_the_servers_answers(tmp_path: Path, ids: Any, length: int, complete: bool) -> None:
    (one,) = read(tmp_path, row(1, length=24, hash_ids=[1, 2]), row(2, 1, length=length, turn=2, hash_ids=ids))
    assert one.alone is complete, "of 24 tokens the second block is partial, and its id may be another"


def test_sessions_are_found_by_their_roots_and_ordered_by_turn(tmp_path: Path) -> None:
    rows = [row(3, 2, turn=3, timestamp=9), row(1, turn=1), row(2, 1, turn=2), row(30, 29, turn=4), row(5, 6), row(6, 5)]
    assert [(one.id, [turn.timestamp_ms for turn in one.turns]) for one in read(tmp_path, *rows)] == [
        ("1", [1000, 2000, 9000]), ("30", [30000]), ("5", [5000, 6000]),
    ]  # fmt: skip


def test_a_long_chain_has_a_root(tmp_path: Path) -> None:
    (one,) = read(tmp_path, *(row(n, n + 1 if n < 1500 else -1, length=1, turn=1501 - n) for n in range(1, 1501)))
    assert (one.id, len(one.turns)) == ("1500", 1500)


def test_the_size_of_a_block_can_be_given(tmp_path: Path) -> None:
    one, other = read(tmp_path, row(1, length=24, hash_ids=[1, 2]), row(2, length=24, hash_ids=[1, 3]), block_size=12)
    words = [each.turns[0].text.split() for each in (one, other)]
    assert words[0][:12] == words[1][:12]
    assert words[0][12:] != words[1][12:]


@pytest.mark.parametrize(("bad", "words"), [
    ({"chat_id": "a"}, "chat_id is 'a'; it must be a whole number"),
    ({"chat_id": 1}, "chat_id is 1, which an earlier row has"),
    ({"parent_chat_id": None}, "parent_chat_id is None; it must be a whole number"),
    ({"timestamp": -1}, "timestamp is -1; it must be a number of seconds, 0 or more"),
    ({"timestamp": "2"}, "timestamp is '2'"),
    ({"input_length": None}, "the row has no input_length; it must be a number of tokens"),
    ({"output_length": 0}, "output_length is 0; it must be a whole number of at least 1"),
    ({"turn": 1.5}, "turn is 1.5; it must be a whole number"),
    ({"type": 1}, "type is 1; it must be a text"),
    ({"hash_ids": "x"}, "hash_ids must be a list of whole numbers"),
    ({"hash_ids": [1, 2]}, "input_length 10 is too short for 2 hash_ids of 16 tokens"),
])  # fmt: skip
def test_a_row_that_breaks_a_rule_is_named_with_its_line(tmp_path: Path, bad: dict[str, Any], words: str) -> None:
    with pytest.raises(BadDataset) as caught:
        read(tmp_path, row(1), {**row(2), **bad})
    assert words in caught.value.message
    assert "trace.jsonl:2:" in caught.value.message


def test_without_a_tokenizer_lengths_mean_nothing(tmp_path: Path) -> None:
    with pytest.raises(BadDataset, match="measured in tokens"):
        read(tmp_path, row(1), tokenizer=None)


@pytest.mark.parametrize(("first", "known"), [
    (row(1), True), ({"timestamp": 0, "input_length": 5, "output_length": 3}, False), ({"chat_id": 1}, False), (None, False),
])  # fmt: skip
def test_it_knows_its_rows(first: Any, known: bool) -> None:
    assert BailianTrace.recognises(Path("x.jsonl"), first) is known


def test_rows_are_scaled_while_they_are_read(tmp_path: Path) -> None:
    chain = [row(1, length=32, hash_ids=[4, 5], timestamp=1.0), row(2, 1, length=48, hash_ids=[4, 5, 6], timestamp=3)]
    (conversation,) = read(tmp_path, *chain, prefix_length=2.0, speedup=2.0)
    assert conversation.alone
    assert [(turn.input_tokens, turn.timestamp_ms, turn.prefix_blocks, turn.prefix_hits) for turn in conversation.turns] == [
        (64, 500.0, 4, 0), (80, 1500.0, 5, 4)]  # fmt: skip
    first, second = (turn.text.split() for turn in conversation.turns)
    assert first == second[:64]


def test_an_unknown_key_is_told_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    read(tmp_path, row(1, extra={"top_p": 1}), row(2, extra={"top_p": 1}))
    (message,) = dict.fromkeys(caplog.messages)
    assert message.endswith(":1: the key 'extra' is unknown, and is not sent")
