"""Files of genai-perf: payloads, and queries paired with passages."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from aiperf import BadDataset, Capabilities, Conversation, DatasetContext
from aiperf.testing import DatasetContract
from aiperf_dataset_genai_perf.contract import PairsContract, PayloadContract
from aiperf_dataset_genai_perf.options import PairsOptions, PayloadOptions
from aiperf_dataset_genai_perf.payload import Payload
from aiperf_dataset_genai_perf.rankings import Pairs
from aiperf_dataset_synthetic.contract import WordTokens

CHAT = Capabilities(system_message=True, multi_turn=True)
RANKS = Capabilities(named=("query", "passages"))


def write(path: Path, *rows: dict[str, Any]) -> Path:
    path.parent.mkdir(exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def payload(path: Path, *rows: dict[str, Any], **given: Any) -> list[Conversation]:
    context = DatasetContext(100, 7, True, WordTokens(), CHAT, write(path / "p.jsonl", *rows), replay=True)
    options = PayloadOptions(**given)
    found = list(Payload(options, context))
    DatasetContract.check_promise(Payload(options, context), found)
    return found


def pairs(folder: Path, can: Capabilities = RANKS) -> list[Conversation]:
    return list(Pairs(PairsOptions(), DatasetContext(100, 7, True, None, can, folder)))


class TestPayloadKeepsTheContract(PayloadContract):
    dataset = Payload


class TestPairsKeepTheContract(PairsContract):
    dataset = Pairs


def test_a_delay_is_waited_after_the_row_that_has_it(tmp_path: Path) -> None:
    (one,) = payload(tmp_path, {"session_id": "s", "text": "a", "delay": 5}, {"session_id": "s", "text": "b"},
                     {"session_id": "s", "text": "c", "delay": 7})  # fmt: skip
    assert [(turn.text, turn.delay_ms) for turn in one.turns] == [("a", None), ("b", 5.0), ("c", None)]
    assert not one.alone


def test_other_keys_go_into_the_body(tmp_path: Path) -> None:
    (one,) = payload(tmp_path, {"text_input": "a", "timestamp": 3, "output_length": 4, "priority": 2, "stop": ["x"]})
    turn = one.turns[0]
    assert (turn.text, turn.timestamp_ms, turn.max_tokens, turn.extra) == ("a", 3.0, 4, {"priority": 2, "stop": ["x"]})


def test_a_row_without_a_text_gets_one_of_its_length(tmp_path: Path) -> None:
    rows = {"input_length": 20, "hash_ids": [1, 2]}, {"input_length": 30, "hash_ids": [1, 2]}, {"timestamp": 5}
    one, two, three = (found.turns[0] for found in payload(tmp_path, *rows, block_size=12))
    assert [one.input_tokens, two.input_tokens, three.input_tokens] == [20, 30, 550]
    assert two.text.startswith(one.text)


@pytest.mark.parametrize(("row", "words"), [
    ({"text": "a", "text_input": "b"}, ":1: text and text_input exclude each other"), ({"text": ""}, ":1: text is empty"),
    ({"text": "a", "delay": -1}, ":1: delay is -1"), ({"text": "a", "timestamp": "x"}, ":1: timestamp is 'x'"),
    ({"input_length": 5, "hash_ids": [1, 2]}, ":1: input_length 5 is too short for 2 hash_ids of 512"),
])  # fmt: skip
def test_a_row_that_breaks_a_rule_is_named_with_its_line(tmp_path: Path, row: dict[str, Any], words: str) -> None:
    with pytest.raises(BadDataset) as caught:
        payload(tmp_path, row)
    assert words in caught.value.message


def test_queries_and_passages_are_paired_by_row(tmp_path: Path) -> None:
    write(tmp_path / "queries.jsonl", {"text": "rain?"}, {"text": "snow?"}, {"text": "hail?"})
    write(tmp_path / "passages.jsonl", {"texts": ["falls", "wets"]}, {"text_input": "melts"})
    found = [one.turns[0] for one in pairs(tmp_path)]
    assert [(turn.texts_of("query"), turn.texts_of("passages")) for turn in found] == [
        (("rain?",), ("falls", "wets")), (("snow?",), ("melts",))
    ]  # fmt: skip


def test_pairs_need_both_files_and_an_endpoint_that_ranks(tmp_path: Path) -> None:
    write(tmp_path / "queries.jsonl", {"text": "rain?"})
    with pytest.raises(BadDataset, match=r"has no file passages\.jsonl or passage\.jsonl"):
        pairs(tmp_path)
    write(tmp_path / "passages.jsonl", {"image": "https://h/a.png"})
    with pytest.raises(BadDataset, match=r"passages\.jsonl:1: the row has no text"):
        pairs(tmp_path)
    with pytest.raises(BadDataset, match="for an endpoint type that ranks"):
        pairs(tmp_path, CHAT)


def test_a_field_that_replaces_what_the_run_makes_is_told_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    file = write(tmp_path / "p.jsonl", {"text": "a", "stream": True}, {"text": "b", "stream": True, "top_p": 1})
    assert len(list(Payload(PayloadOptions(), DatasetContext(100, 7, True, None, CHAT, file)))) == 2
    (message,) = caplog.messages
    assert message.endswith(":1: the row has 'stream', which replaces what the run makes of the row")
