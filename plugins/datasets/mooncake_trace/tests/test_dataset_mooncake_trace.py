"""Rows of a trace: times, lengths, and prompts that share what their hash ids share."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
from aiperf import BadDataset, Capabilities, Conversation, DatasetContext
from aiperf.testing import DatasetContract
from aiperf_dataset_mooncake_trace.contract import MooncakeTraceContract
from aiperf_dataset_mooncake_trace.dataset import MooncakeTrace
from aiperf_dataset_mooncake_trace.options import MooncakeTraceOptions
from aiperf_dataset_synthetic.contract import WordTokens
from aiperf_testing.journals import Words

CHAT = Capabilities(system_message=True, multi_turn=True)


class Pieces(Words):
    """A token is a word with the space before it; a long word without one is two."""

    name = "pieces"

    def __init__(self) -> None:
        super().__init__()
        self._ids: dict[str, int] = {}

    def encode(self, text: str) -> list[int]:
        words = re.findall(r"\s*\S+|\s+$", text)
        parts = [part for word in words for part in ([word] if word[0].isspace() or len(word) < 5 else [word[:2], word[2:]])]
        return [self._ids.setdefault(part, len(self._ids)) for part in parts]

    def decode(self, ids: Sequence[int]) -> str:
        parts = list(self._ids)
        return "".join(parts[each] for each in ids)

    def count(self, text: str) -> int:
        return len(self.encode(text))


def options(**given: Any) -> MooncakeTraceOptions:
    return MooncakeTraceOptions(**given)


def context(file: Path, seed: int = 7, tokenizer: Any = ...) -> DatasetContext:
    return DatasetContext(100, seed, True, WordTokens() if tokenizer is ... else tokenizer, CHAT, file)


def read(path: Path, text: str, *, seed: int = 7, tokenizer: Any = ..., **given: Any) -> list[Conversation]:
    file = path / "trace.jsonl"
    file.write_text(text)
    replayed = msgspec.structs.replace(context(file, seed, tokenizer), replay=True)
    found = list(MooncakeTrace(options(**given), replayed))
    DatasetContract.check_promise(MooncakeTrace(options(**given), replayed), found)
    return found


class TestMooncakeTraceKeepsTheContract(MooncakeTraceContract):
    pass


BLOCKS = """{"timestamp": 0, "input_length": 24, "output_length": 30, "hash_ids": [1, 2]}
{"timestamp": 40, "input_length": 20, "hash_ids": [1, 9]}
{"timestamp": 41.5, "input_length": 30, "hash_ids": [1, 2]}
{"timestamp": 50, "input_length": 15, "hash_ids": [2, 1]}
"""


def test_prompts_share_the_blocks_that_their_ids_share(tmp_path: Path) -> None:
    words = [each.turns[0].text.split() for each in read(tmp_path, BLOCKS, block_size=12)]
    assert [len(each) for each in words] == [24, 20, 30, 15]
    assert words[0][:12] == words[1][:12]
    assert words[0][12:20] != words[1][12:]
    assert words[2][:24] == words[0], "what is over the blocks is its own"
    assert words[3][:12] == words[0][12:]
    assert words[3][12:] == words[0][:3], "a shorter use is the block's beginning"


def test_blocks_are_as_long_together_as_they_are_alone(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    lengths = {length: [number % 7, number, *range(100, 100 + number % 5)] for number, length in enumerate(range(40, 140))}
    rows = [{"input_length": len(ids) * 12 - length % 12, "hash_ids": ids} for length, ids in lengths.items()]
    found = read(tmp_path, "\n".join(map(json.dumps, rows)), tokenizer=Pieces(), block_size=12)
    counts = [Pieces().count(each.turns[0].text) for each in found]
    assert counts == [row["input_length"] for row in rows] == [each.turns[0].input_tokens for each in found]
    assert "not of the length" not in caplog.text


def test_times_and_lengths_are_those_of_the_row(tmp_path: Path) -> None:
    turns = [each.turns[0] for each in read(tmp_path, BLOCKS, block_size=12)]
    assert [turn.timestamp_ms for turn in turns] == [0.0, 40.0, 41.5, 50.0]
    assert [turn.max_tokens for turn in turns] == [30, None, None, None]
    assert [turn.input_tokens for turn in turns] == [24, 20, 30, 15]


def test_another_seed_or_another_file_has_other_blocks(tmp_path: Path) -> None:
    row = '{"input_length": 12, "hash_ids": [1]}\n'
    first = read(tmp_path, row, block_size=12)[0].turns[0].text
    assert read(tmp_path, row, block_size=12)[0].turns[0].text == first
    assert read(tmp_path, row, block_size=12, seed=8)[0].turns[0].text != first
    assert read(tmp_path, row + row, block_size=12)[0].turns[0].text != first


def test_a_session_goes_on_with_new_tokens(tmp_path: Path) -> None:
    (one,) = read(tmp_path, '{"session_id": "a", "timestamp": 0, "text_input": "start", "output_length": 8}\n'
                            '{"session_id": "a", "delay": 250, "input_length": 5}\n')  # fmt: skip
    assert [turn.delay_ms for turn in one.turns] == [None, 250.0]
    assert [len(turn.text.split()) for turn in one.turns] == [1, 5]
    assert not one.alone


def test_chats_and_bodies_are_sent_as_they_are(tmp_path: Path) -> None:
    chat, body = read(tmp_path, '{"messages": [{"role": "user", "content": "hey"}], "tools": [{"type": "function"}]}\n'
                                '{"payload": {"prompt": "x", "max_tokens": 3}}\n', osl=4)  # fmt: skip
    assert chat.turns[0].extra == {"messages": [{"role": "user", "content": "hey"}], "tools": [{"type": "function"}]}
    assert (chat.turns[0].texts, chat.turns[0].max_tokens, chat.alone) == (("hey",), 4, True)
    assert (body.turns[0].payload, body.turns[0].max_tokens) == ({"prompt": "x", "max_tokens": 3}, None)


@pytest.mark.parametrize(("row", "tools", "extra"), [
    ('"tools": [{"type": "function"}]', ({"type": "function"},), {}),
    ('"tools": [], "extra": {"seed": 1}', None, {"tools": [], "seed": 1}),
    ('"timestamp": 0', None, {}),
])  # fmt: skip
def test_an_endpoint_with_verbatim_messages_gets_a_chat_as_such(tmp_path: Path, row: str, tools: Any, extra: Any) -> None:
    file = tmp_path / "trace.jsonl"
    file.write_text('{"messages": [{"role": "user", "content": "hey", "name": "n"}], ' + row + "}")
    able = msgspec.structs.replace(context(file), capabilities=msgspec.structs.replace(CHAT, verbatim=True))
    ((turn,),) = (conversation.turns for conversation in MooncakeTrace(options(), able))
    assert turn.items is not None
    assert [message.item for message in turn.items] == [{"role": "user", "content": "hey", "name": "n"}]
    assert (turn.tools, turn.extra, turn.texts) == (tools, extra, ("hey",))


@pytest.mark.parametrize(("text", "words"), [
    ('{"timestamp": 0}', "exactly one of"), ('{"input_length": 5, "text_input": "a"}', "input_length and text_input"),
    ('{"input_length": 12, "hash_ids": [1, 2]}', "too short for 2 hash_ids of 12"),
    ('{"input_length": -1}', "input_length is -1"),
    ('{"input_length": 5, "hash_ids": ["a"]}', "hash_ids"), ('{"messages": [{}]}', "messages"),
    ('{"payload": {}}', "payload is empty"),
    ('{"text_input": "a", "hash_ids": [1]}', "hash_ids belongs to input_length"),
    ('{"payload": {"a": 1}, "tools": []}', "tools belongs to messages"),
    ('{"session_id": "s", "payload": {"a": 1}}\n{"session_id": "s", "input_length": 5}', "mixes input_length and payload"),
])  # fmt: skip
def test_a_row_that_breaks_a_rule_is_named_with_its_line(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(BadDataset) as caught:
        read(tmp_path, text, block_size=12)
    assert words in caught.value.message
    assert "trace.jsonl:" in caught.value.message


@pytest.mark.parametrize("row", ['{"messages": [{"role": "user", "content": "hey"}]}', '{"payload": {"prompt": "x"}}'])
def test_unchanged_rows_refuse_a_system_prompt_of_the_options(tmp_path: Path, row: str) -> None:
    with pytest.raises(BadDataset, match=r"trace\.jsonl:1: .* is sent unchanged: the system prompt can't come before it"):
        read(tmp_path, row, system_prompt="Be terse.")


def test_a_chat_needs_an_endpoint_with_a_history(tmp_path: Path) -> None:
    file = tmp_path / "trace.jsonl"
    file.write_text('{"messages": [{"role": "user", "content": "hey"}]}')
    with pytest.raises(BadDataset, match="sends no history"):
        list(MooncakeTrace(options(), DatasetContext(100, 7, True, None, Capabilities(), file)))


def test_without_a_tokenizer_lengths_mean_nothing(tmp_path: Path) -> None:
    with pytest.raises(BadDataset, match="measured in tokens"):
        read(tmp_path, '{"input_length": 5}', tokenizer=None)
    assert read(tmp_path, '{"text_input": "a"}', tokenizer=None)[0].turns[0].text == "a"


@pytest.mark.parametrize(("row", "known"), [
    ({"timestamp": 0, "input_length": 5}, True), ({"messages": [{"role": "user"}]}, True),
    ({"text_input": "a", "timestamp": 1}, True),
    ({"messages": [{"role": "user"}], "model": "m"}, False),
    ({"text_input": "a"}, False), ({"text": "a", "input_length": 5}, False), ({"turns": []}, False), (None, False),
])  # fmt: skip
def test_it_knows_its_rows(row: Any, known: bool) -> None:
    assert MooncakeTrace.recognises(Path("x.jsonl"), row) is known


def test_turns_know_what_a_cache_without_end_would_have(tmp_path: Path) -> None:
    far = 2**40
    rows = [
        {"input_length": 1300, "hash_ids": [1, 2, 3]},
        {"input_length": 1300, "hash_ids": [1, 2, far], "session_id": "s"},
        {"input_length": 9},
        {"input_length": 1300, "hash_ids": [far, 3, 2]},
        {"input_length": 600, "hash_ids": [1, far], "session_id": "s"},
        {"text_input": "a", "timestamp": 4},
    ]
    found = read(tmp_path, "".join(json.dumps(row) + "\n" for row in rows))
    hits = [[(turn.prefix_blocks, turn.prefix_hits) for turn in conversation.turns] for conversation in found]
    assert hits == [[(3, 0)], [(3, 2), (2, 2)], [(0, 0)], [(3, 3)], [(0, 0)]]


def test_rows_are_scaled_while_they_are_read(tmp_path: Path) -> None:
    rows = [{"timestamp": 100, "input_length": 24, "output_length": 10, "hash_ids": [1, 2, n]} for n in (3, 4)]
    text = "".join(json.dumps(row) + "\n" for row in [*rows, {"timestamp": 5, "input_length": 99}])
    scaled = read(tmp_path, text, block_size=8, prefix_length=1.5, output_length=2.0, max_isl=40, speedup=4.0)
    turns = [conversation.turns[0] for conversation in scaled]
    assert [(turn.input_tokens, turn.max_tokens, turn.timestamp_ms) for turn in turns] == [(32, 20, 25.0)] * 2
    first, second = (turn.text.split() for turn in turns)
    assert first[:24] == second[:24] and first[24:] != second[24:]


def test_a_scaled_trace_names_its_bad_rows(tmp_path: Path) -> None:
    text = '{"input_length": 9}\n{"input_length": "9"}\n'
    with pytest.raises(BadDataset, match=r"trace.jsonl:2: input_length is '9'"):
        read(tmp_path, text, speedup=2.0)


def test_times_are_promised_for_a_replay_of_rows_without_sessions(tmp_path: Path) -> None:
    file = tmp_path / "trace.jsonl"
    file.write_text(BLOCKS)

    def trace(**given: Any) -> MooncakeTrace:
        return MooncakeTrace(options(block_size=12, **given), msgspec.structs.replace(context(file), replay=True))

    early = trace()
    promise = early.promise()
    assert promise is not None
    assert promise.timestamp_ms is not None
    assert [promise.timestamp_ms(number) for number in range(promise.count)] == [0.0, 40.0, 41.5, 50.0]
    assert (promise.turns, promise.any_order) == (1, True)
    assert list(early) == list(trace())
    for given in (
        {"speedup": 3.0}, {"speedup": 2.0, "prompt_length": 1.5, "prefix_roots": 2}, {"output_length": 2.0},
        {"max_isl": 20, "speedup": 3.0},
    ):  # fmt: skip
        early = trace(**given)
        promise = early.promise()
        assert promise is not None
        assert promise.timestamp_ms is not None
        assert not promise.any_order
        conversations = list(early)
        assert conversations == list(trace(**given))
        times = [promise.timestamp_ms(number) for number in range(promise.count)]
        assert times == [one.turns[0].timestamp_ms for one in conversations]


def test_times_are_promised_for_each_turn_of_a_session(tmp_path: Path) -> None:
    file = tmp_path / "trace.jsonl"
    rows = [
        {"session_id": "a", "timestamp": 0, "input_length": 30, "hash_ids": [1, 2, 3]}, {"timestamp": 5, "input_length": 9},
        {"session_id": "a", "timestamp": 60, "input_length": 9}, {"session_id": "a", "delay": 5, "input_length": 9},
        {"timestamp": 70, "input_length": 24, "hash_ids": [1, 2]},
    ]  # fmt: skip
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    replayed = msgspec.structs.replace(context(file), replay=True)
    early = MooncakeTrace(options(block_size=12), replayed)
    promise = early.promise()
    assert promise is not None
    assert callable(promise.turns)
    assert promise.turn_timestamp_ms is not None
    assert [promise.turns(number) for number in range(promise.count)] == [3, 1, 1]
    assert [promise.turn_timestamp_ms(0, turn) for turn in range(3)] == [0.0, 60.0, None]
    assert (promise.turn_timestamp_ms(2, 0), promise.timestamp_ms, promise.any_order) == (70.0, None, True)
    conversations = list(early)
    assert conversations == list(MooncakeTrace(options(block_size=12), replayed))
    assert conversations[2].turns[0].prefix_hits == 2
    assert list(early.chosen([2, 0])) == [conversations[2], conversations[0]]
