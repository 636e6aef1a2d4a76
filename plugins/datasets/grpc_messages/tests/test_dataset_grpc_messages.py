"""Calls of a file, one a line."""

from __future__ import annotations

from pathlib import Path

import pytest
from aiperf import BadDataset, Capabilities, DatasetContext
from aiperf_dataset_grpc_messages import GrpcMessages
from aiperf_dataset_grpc_messages.contract import GrpcMessagesContract


def read(path: Path) -> list[dict[str, object]]:
    context = DatasetContext(100, 7, True, None, Capabilities(), path)
    return [each.turns[0].extra for each in GrpcMessages(None, context)]


class TestGrpcMessagesKeepsTheContract(GrpcMessagesContract):
    pass


def test_a_line_is_a_call_that_knows_its_place(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    path.write_text('{"messages":[{"a":1}]}\n\n{"messages":[{},{}],"waits_ms":[0,2.5],"metadata":{"x":"y"}}\n')
    assert read(path) == [
        {"messages": [{"a": 1}], "place": "line 1"},
        {"messages": [{}, {}], "waits_ms": [0, 2.5], "metadata": {"x": "y"}, "place": "line 3"},
    ]


@pytest.mark.parametrize(("line", "said"), [
    ('{"messages":[]}', "messages is no list of objects"), ('{"messages":[1]}', "messages is no list of objects"),
    ('{"messages":[{}],"n":1}', "'n' is no field of a call"), ('{"messages":[{}],"metadata":{"x":1}}', "metadata is no object"),
    ('{"messages":[{}],"waits_ms":[1,2]}', "waits_ms is no list of 1 numbers"),
    ('{"data":[{"message_generator":"rm x"}]}', "commands of a file are not run"),
    ('{"messages":[{}],"waits_ms":[-1]}', "waits_ms is no list of 1 numbers"), ("{", "no JSON"),
])  # fmt: skip
def test_a_line_that_is_no_call_is_named(line: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    path.write_text(f'{{"messages":[{{}}]}}\n{line}\n')
    with pytest.raises(BadDataset, match=said) as caught:
        read(path)
    assert f"{path}:2" in caught.value.message


@pytest.mark.parametrize(("row", "known"), [
    ({"messages": [{"a": 1}]}, True), ({"messages": [{"a": 1}], "waits_ms": [1]}, True),
    ({"messages": [{"a": 1}], "model": "m"}, False), ({"turns": []}, False), (None, False),
])  # fmt: skip
def test_rows_are_known_by_their_fields(row: object, known: bool) -> None:
    assert GrpcMessages.recognises(Path("x.jsonl"), row) is known
