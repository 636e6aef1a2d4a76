"""Calls of a file, one a line."""

from __future__ import annotations

import json
import struct
import sys
from pathlib import Path

import pytest
from aiperf import BadDataset, Capabilities, DatasetContext
from aiperf_dataset_grpc_messages import GrpcMessages
from aiperf_dataset_grpc_messages.contract import GrpcMessagesContract
from aiperf_dataset_grpc_messages.options import GrpcMessagesOptions


def read(path: Path, *, allowed: bool = False) -> list[dict[str, object]]:
    context = DatasetContext(100, 7, True, None, Capabilities(), path)
    return [each.turns[0].extra for each in GrpcMessages(GrpcMessagesOptions(allow_commands=allowed), context)]


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


def program(tmp_path: Path, output: bytes, code: str = "") -> str:
    script = tmp_path / "make.py"
    script.write_text(f"import sys\n{code}\nsys.stdout.buffer.write({output!r})\n")
    return f"{sys.executable} '{script}'"


@pytest.mark.parametrize("form", ["data", "text"])
def test_a_command_makes_messages_where_it_may(form: str, tmp_path: Path) -> None:
    command = program(tmp_path, struct.pack("=I", 2) + b"\x0a\x00" + struct.pack("=I", 0))
    path = tmp_path / "calls.jsonl"
    row = {"text": command} if form == "text" else {"data": [{"message_generator": command}]}
    path.write_text(json.dumps(row))
    assert read(path, allowed=True) == [{"raw_messages": ["CgA=", ""], "place": "line 1"}]
    with pytest.raises(BadDataset, match="commands of a file are not run"):
        read(path)


@pytest.mark.parametrize(("output", "code", "said"), [
    (b"\x01", "", "the last message of the command is cut"), (struct.pack("=I", 9) + b"abc", "", "the last message"),
    (b"", "", "the command makes no message"), (b"", "sys.exit('broken')", "the command ended with 1: broken"),
])  # fmt: skip
def test_a_command_that_makes_none_is_named(output: bytes, code: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    path.write_text(json.dumps({"data": [{"message_generator": program(tmp_path, output, code)}]}))
    with pytest.raises(BadDataset, match=said):
        read(path, allowed=True)
    path.write_text(json.dumps({"data": [{"message_generator": "/no/such/program; rm"}]}))
    with pytest.raises(BadDataset, match="can't be run"):
        read(path, allowed=True)


@pytest.mark.parametrize(("row", "known"), [
    ({"messages": [{"a": 1}]}, True), ({"messages": [{"a": 1}], "waits_ms": [1]}, True),
    ({"messages": [{"a": 1}], "model": "m"}, False), ({"turns": []}, False), (None, False),
])  # fmt: skip
def test_rows_are_known_by_their_fields(row: object, known: bool) -> None:
    assert GrpcMessages.recognises(Path("x.jsonl"), row) is known
