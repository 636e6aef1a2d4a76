"""Bodies of a file or a directory, byte for byte."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pytest
from aiperf import BadDataset, Capabilities, Conversation, DatasetContext
from aiperf_dataset_raw_payload import RawPayload
from aiperf_dataset_raw_payload.contract import RawPayloadContract

A = b'{"model":"m1","messages":[{"role":"user","content":"a"}],"max_tokens":4}'
B = b'{"stream": true,  "n": 1e2, "messages": [{"role": "user", "content": [{"type": "text", "text": "b"}]}], "z": 1, "z": 2}'


def read(path: Path | None) -> list[Conversation]:
    return list(RawPayload(None, DatasetContext(100, 7, True, None, Capabilities(), path)))


class TestRawPayloadKeepsTheContract(RawPayloadContract):
    pass


@pytest.mark.parametrize("name", ["bodies.jsonl", "bodies.jsonl.gz"])
def test_a_line_is_sent_byte_for_byte(tmp_path: Path, name: str) -> None:
    data = b"\xef\xbb\xbf" + A + b"\r\n\n  " + B
    (tmp_path / name).write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    found = read(tmp_path / name)
    assert [[turn.payload for turn in each.turns] for each in found] == [[A], [B]]
    assert [each.turns[0].texts for each in found] == [("a",), ("b",)]
    assert [each.id for each in found] == ["session_000000", "session_000001"]


def test_a_directory_has_a_conversation_in_each_file(tmp_path: Path) -> None:
    (tmp_path / "two.jsonl").write_bytes(A + b"\n" + B + b"\n")
    (tmp_path / "one.jsonl").write_bytes(B)
    (tmp_path / "notes.txt").write_text("not read")
    found = read(tmp_path)
    assert [(each.id, each.alone, [turn.payload for turn in each.turns]) for each in found] == [
        ("one", True, [B]), ("two", True, [A, B]),
    ]  # fmt: skip


def test_a_body_of_another_endpoint_is_sent_too(tmp_path: Path) -> None:
    (tmp_path / "bodies.jsonl").write_text('{"input": ["x"]}')
    assert read(tmp_path / "bodies.jsonl")[0].turns[0].payload == b'{"input": ["x"]}'


@pytest.mark.parametrize(("text", "words"), [
    ("{}", "bodies.jsonl:2: the body is empty"), ("[1]", "bodies.jsonl:2: list is no JSON object"),
    ('{"a": ', "bodies.jsonl:2: no JSON"),
])  # fmt: skip
def test_a_bad_line_is_named(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "bodies.jsonl").write_bytes(A + b"\n" + text.encode())
    for path in (tmp_path / "bodies.jsonl", tmp_path):
        with pytest.raises(BadDataset) as caught:
            read(path)
        assert words in caught.value.message


def test_a_directory_without_bodies_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadDataset, match=r"has no \.jsonl files"):
        read(tmp_path)
    (tmp_path / "empty.jsonl").touch()
    with pytest.raises(BadDataset, match=r"empty\.jsonl has no lines"):
        read(tmp_path)
    with pytest.raises(BadDataset, match="the run has none"):
        read(None)


CHAT = [{"role": "user"}]


@pytest.mark.parametrize(("row", "file", "directory"), [
    ({"messages": CHAT, "model": "m"}, True, True), ({"messages": CHAT, "stream": True}, True, True),
    ({"messages": CHAT}, False, True), ({"messages": CHAT, "model": "m", "conversation_id": 1}, False, False),
    ({"messages": CHAT, "model": "m", "data": []}, False, False), ({"messages": "x", "model": "m"}, False, False),
    (None, False, False),
])  # fmt: skip
def test_it_knows_its_rows(tmp_path: Path, row: Any, file: bool, directory: bool) -> None:
    assert RawPayload.recognises(tmp_path / "x.jsonl", row) is file
    assert RawPayload.recognises(tmp_path, row) is directory
