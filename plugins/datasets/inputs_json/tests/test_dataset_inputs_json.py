"""The file inputs.json of a run, as a data set."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from aiperf import BadDataset, Capabilities, Conversation, DatasetContext
from aiperf.testing import DatasetContract
from aiperf_dataset_inputs_json import InputsJson
from aiperf_dataset_inputs_json.contract import InputsJsonContract

CHAT = {"model": "m1", "messages": [{"role": "user", "content": "a"}]}


def read(path: Path | None) -> list[Conversation]:
    context = DatasetContext(100, 7, True, None, Capabilities(), path)
    found = list(InputsJson(None, context))
    DatasetContract.check_promise(InputsJson(None, context), found)
    return found


def written(path: Path, *sessions: Any, indent: int | None = 2) -> Path:
    path.write_text(json.dumps({"data": sessions}, indent=indent))
    return path


class TestInputsJsonKeepsTheContract(InputsJsonContract):
    pass


@pytest.mark.parametrize("indent", [2, None])
@pytest.mark.parametrize("sessions", [
    [{"session_id": "s0", "payloads": [CHAT]}],
    [{"session_id": "s1", "payloads": [{"model": "e", "input": ["x"]}]}, {"session_id": "s2", "payloads": [{"input": ["y"]}]}],
    [{"session_id": "s3", "payloads": [{"prompt": "one"}, {"prompt": "two"}]}],
])  # fmt: skip
def test_payloads_are_the_turns_of_their_session(tmp_path: Path, sessions: list[Any], indent: int | None) -> None:
    path = written(tmp_path / "inputs.json", *sessions, indent=indent)
    assert InputsJson.recognises(path, None)
    found = read(path)
    assert [{"session_id": one.id, "payloads": [turn.payload for turn in one.turns]} for one in found] == sessions
    assert all(one.alone for one in found)
    assert found[0].turns[0].text in ("a", "one", "")


def test_a_compressed_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "inputs.json.gz"
    path.write_bytes(gzip.compress(json.dumps({"data": [{"session_id": "s", "payloads": [CHAT]}]}).encode()))
    assert InputsJson.recognises(path, None)
    assert read(path)[0].turns[0].payload == CHAT


@pytest.mark.parametrize(("text", "words"), [
    ('{"data": [{"payloads": [{"a": 1}]}]}', "missing required field `session_id` - at `$.data[0]`"),
    ('{"data": [{"session_id": "s"}]}', "missing required field `payloads`"),
    ('{"data": [{"session_id": "s", "payload": {}}]}', "missing required field `payloads`"),
    ('{"data": [{"session_id": "s", "payloads": []}]}', "length >= 1"),
    ('{"data": [{"session_id": "s", "payloads": [{}]}]}', "data[0]: a payload is empty"),
    ('{"data": [{"session_id": "s", "payloads": ["a"]}]}', "Expected `object`, got `str`"),
    ('{"data": [{"session_id": "s", "payloads": [{"a": 1}]}, {"session_id": "s", "payloads": [{"a": 1}]}]}',
     "data[1]: the session id 's' occurs twice"),
    ('{"data": {}}', "Expected `array`, got `object`"), ('{"data": [', "truncated"), ("[]", "Expected `object`"),
])  # fmt: skip
def test_a_file_of_another_shape_is_refused_with_the_place(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "inputs.json").write_text(text)
    with pytest.raises(BadDataset) as caught:
        read(tmp_path / "inputs.json")
    assert words in caught.value.message
    assert "inputs.json:" in caught.value.message


def test_a_run_without_a_file_is_refused() -> None:
    with pytest.raises(BadDataset, match="the run has none"):
        read(None)


@pytest.mark.parametrize("text", ['{"id": "t", "requests": []}', '{"data": [{"payload": {}}]}', "", "{"])
def test_other_files_are_not_recognised(tmp_path: Path, text: str) -> None:
    (tmp_path / "x.json").write_text(text)
    assert not InputsJson.recognises(tmp_path / "x.json", None)
    assert not InputsJson.recognises(tmp_path / "gone.json", None)
