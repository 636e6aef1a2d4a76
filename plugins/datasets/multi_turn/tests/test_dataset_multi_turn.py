"""Conversations of a file."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pytest
from aiperf import BadDataset, Capabilities, Conversation, DatasetContext
from aiperf.testing import DatasetContract
from aiperf_dataset_multi_turn.contract import MultiTurnContract
from aiperf_dataset_multi_turn.dataset import MultiTurn
from aiperf_dataset_multi_turn.options import MultiTurnOptions

CHAT = Capabilities(system_message=True, multi_turn=True)


def options(**given: Any) -> MultiTurnOptions:
    return MultiTurnOptions(**given)


def read(path: Path, text: str, capabilities: Capabilities = CHAT, **given: Any) -> list[Conversation]:
    file = path / "rows.jsonl"
    file.write_text(text)
    context = DatasetContext(100, 7, True, None, capabilities, file)
    found = list(MultiTurn(options(**given), context))
    DatasetContract.check_promise(MultiTurn(options(**given), context), found)
    return found


class TestMultiTurnKeepsTheContract(MultiTurnContract):
    pass


def test_rows_of_a_session_continue_its_turns(tmp_path: Path) -> None:
    found = read(tmp_path, '{"session_id": "s", "turns": [{"text": "a"}, {"text": "b", "delay": 500}]}\n'
                           '{"session_id": "s", "turns": [{"text": "c", "output_length": 5}]}\n')  # fmt: skip
    assert [(turn.text, turn.delay_ms, turn.max_tokens) for turn in found[0].turns] == [
        ("a", None, None), ("b", 500.0, None), ("c", None, 5),
    ]  # fmt: skip
    assert not found[0].alone


@pytest.mark.parametrize(("turns", "system", "left"), [
    ('{"role": "system", "text": "S"}, {"text": "a"}', "S", 1),
    ('{"role": "system", "text": "S"}', None, 1),
    ('{"role": "system", "text": "S"}, {"role": "system", "text": "T"}', None, 2),
    ('{"role": "system", "text": "S", "output_length": 4}, {"text": "a"}', None, 2),
    ('{"text": "S"}, {"text": "a"}', None, 2),
])  # fmt: skip
def test_a_plain_system_turn_at_the_beginning_is_the_system_prompt(
    tmp_path: Path, turns: str, system: str | None, left: int
) -> None:
    (found,) = read(tmp_path, f'{{"turns": [{turns}]}}')
    assert (found.system, len(found.turns)) == (system, left)


def test_without_system_messages_a_system_turn_stays_a_turn(tmp_path: Path) -> None:
    (found,) = read(tmp_path, '{"turns": [{"role": "system", "text": "S"}, {"text": "a"}]}', Capabilities(multi_turn=True))
    assert (found.system, len(found.turns)) == (None, 2)


def test_the_options_system_prompt_precedes_the_files_own(tmp_path: Path) -> None:
    (found,) = read(tmp_path, '{"turns": [{"role": "system", "text": "S"}, {"text": "a"}]}', system_prompt="Mine")
    assert found.system == "Mine\n\nS"


@pytest.mark.parametrize(("row", "words"), [
    ('{"turns": []}', "turns must be a non-empty list"),
    ("{}", "turns must be a non-empty list"),
    ('{"turns": ["a"]}', "turn 0 is 'a'"),
    ('{"turns": [{"text": "a"}, {}]}', "the turn 1 has none of text"),
])  # fmt: skip
def test_a_row_that_breaks_a_rule_is_named_with_its_line(tmp_path: Path, row: str, words: str) -> None:
    with pytest.raises(BadDataset) as caught:
        read(tmp_path, f'{{"turns": [{{"text": "good"}}]}}\n{row}\n')
    assert words in caught.value.message
    assert "rows.jsonl:2:" in caught.value.message


@pytest.mark.parametrize(("row", "known"), [
    ({"turns": [{"text": "a"}]}, True), ({"turns": []}, False), ({"turns": ["a"]}, False), ({"text": "a"}, False),
    (None, False),
])  # fmt: skip
def test_it_knows_its_rows(row: Any, known: bool) -> None:
    assert MultiTurn.recognises(Path("x.jsonl"), row) is known


def test_conversations_without_sessions_are_counted_and_given_in_any_order(tmp_path: Path) -> None:
    file = tmp_path / "rows.jsonl"
    texts = [f'{{"turns": [{", ".join(f"""{{"text": "{row}.{turn}"}}""" for turn in range(row + 1))}]}}' for row in range(4)]
    file.write_text("\n".join(texts))
    source = MultiTurn(options(), DatasetContext(100, 7, True, None, CHAT, file))
    promise = source.promise()
    assert promise is not None
    assert (promise.count, promise.any_order) == (4, True)
    conversations = list(source)
    assert [len(one.turns) for one in conversations] == [1, 2, 3, 4]
    assert list(source.chosen([3, 0, 2])) == [conversations[number] for number in (3, 0, 2)]


def test_rows_of_one_session_are_counted_as_one_conversation(tmp_path: Path) -> None:
    file, context = tmp_path / "rows.jsonl", DatasetContext(100, 7, True, None, CHAT, tmp_path / "rows.jsonl")
    row = '{"session_id": "%s", "turns": [{"text": "%s"}, {"text": "and then"}]}'
    file.write_text("\n".join(row % pair for pair in (("a", "one"), ("b", "two"), ("a", "three"))))
    source = MultiTurn(options(), context)
    promise = source.promise()
    assert promise is not None
    assert (promise.count, promise.any_order) == (2, True)
    conversations = list(source)
    assert [(one.id, len(one.turns)) for one in conversations] == [("a", 4), ("b", 2)]
    assert list(source.chosen([1, 0])) == conversations[::-1]
    assert conversations == list(MultiTurn(options(), context))


def test_turns_are_counted_where_they_are_asked_for(tmp_path: Path) -> None:
    draw = Random(4)
    prompts = [{"role": "system", "text": "be brief"}, {"role": "system", "text": "x", "output_length": 3}, {"text": "a"},
               {"role": "", "text": "b"}, {"role": "assistant", "text": "c"}]  # fmt: skip
    for _ in range(200):
        rows = [
            {"session_id": draw.choice([None, "s", 7]), "turns": draw.choices(prompts, k=draw.randrange(1, 4))}
            for _ in range(draw.randrange(1, 6))
        ]
        file = tmp_path / "rows.jsonl"
        file.write_text("".join(json.dumps(row) + "\n" for row in rows))
        capabilities = msgspec.structs.replace(CHAT, system_message=draw.choice([False, True]))
        context = DatasetContext(100, 7, True, None, capabilities, file)
        promise = MultiTurn(options(), context).promise()
        assert promise is not None
        assert callable(promise.turns)
        assert [promise.turns(number) for number in range(promise.count)] == [
            len(one.turns) for one in MultiTurn(options(), context)
        ], rows


@pytest.mark.parametrize("row", ['{"turns": []}', '{"turns": 7}', "{}"])
def test_a_row_without_turns_is_told_where_they_are_counted(tmp_path: Path, row: str) -> None:
    file = tmp_path / "rows.jsonl"
    file.write_text(f'{{"turns": [{{"text": "a"}}]}}\n\n{row}\n')
    promise = MultiTurn(options(), DatasetContext(100, 7, True, None, CHAT, file)).promise()
    assert promise is not None
    assert callable(promise.turns)
    with pytest.raises(BadDataset, match=r"rows\.jsonl:3: turns must be a non-empty list"):
        promise.turns(0)


def test_an_unknown_key_of_a_row_or_a_turn_is_told_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    row = json.dumps({"turns": [{"text": "a", "max_tokens": 1}, {"text": "b", "extra": {"messages": []}}], "modle": "m"}) + "\n"
    (file := tmp_path / "rows.jsonl").write_text(row * 2)
    assert len(list(MultiTurn(options(), DatasetContext(100, 7, True, None, CHAT, file)))) == 2
    assert [message.partition(":1: ")[2] for message in caplog.messages] == [
        "the key 'modle' is unknown, and is not sent: fields of the body stand below the 'extra' of a turn",
        "the key 'max_tokens' is unknown, and is not sent: fields of the body stand below 'extra'",
        "extra has 'messages', which replaces what the run makes of the row",
    ]
