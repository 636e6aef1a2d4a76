"""Captured chats: bodies in JSON and base64, times, and rows that are none."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from aiperf import BadDataset, Capabilities, Conversation, DatasetContext
from aiperf.testing import DatasetContract
from aiperf_dataset_sagemaker_data_capture.contract import SagemakerDataCaptureContract, captured
from aiperf_dataset_sagemaker_data_capture.dataset import SagemakerDataCapture
from aiperf_dataset_sagemaker_data_capture.options import SagemakerDataCaptureOptions

CHAT = Capabilities(system_message=True, multi_turn=True, verbatim=True)


def read(path: Path, *rows: Any, capabilities: Capabilities = CHAT, **given: Any) -> list[Conversation]:
    if rows:
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    context = DatasetContext(100, 7, True, None, capabilities, path)
    options = SagemakerDataCaptureOptions(**given)
    found = list(SagemakerDataCapture(options, context))
    DatasetContract.check_promise(SagemakerDataCapture(options, context), found)
    return found


class TestSagemakerDataCaptureKeepsTheContract(SagemakerDataCaptureContract):
    pass


def test_requests_come_in_the_order_of_their_times(tmp_path: Path) -> None:
    rows = [captured(7), captured(3, max_tokens=5), captured(9, max_completion_tokens=6, temperature=1), captured(3)]
    turns = [turn for one in read(tmp_path / "c.jsonl", *rows, osl=8) for turn in one.turns]
    assert [(turn.timestamp_ms, turn.text, turn.max_tokens) for turn in turns] == [
        (0, "at 3", 5), (0, "at 3", 8), (4000, "at 7", 8), (6000, "at 9", 6),
    ]  # fmt: skip
    assert [turn.extra for turn in turns] == [{}] * 4, "other fields of the body are left out"
    assert [message.item for message in turns[0].items or ()] == [{"role": "user", "content": "at 3"}]


def test_an_endpoint_without_verbatim_messages_gets_them_as_fields(tmp_path: Path) -> None:
    ((turn,),) = (one.turns for one in read(tmp_path / "c.jsonl", captured(1), capabilities=Capabilities(multi_turn=True)))
    assert (turn.items, turn.extra) == (None, {"messages": [{"role": "user", "content": "at 1"}]})


@pytest.mark.parametrize(("given", "shift_ms"), [
    ("2025-01-01T00:00:02Z", 0), ("2025-01-01T02:00:02.5+02:00", 500), ("2025-01-01T00:00:03", 1000),
    ("2025-01-02T00:00:02Z", 86_400_000),
])  # fmt: skip
def test_times_may_have_a_zone_and_fractions(tmp_path: Path, given: str, shift_ms: float) -> None:
    row = {**captured(2), "eventMetadata": {"eventId": "e1", "inferenceTime": given}}
    assert [one.turns[0].timestamp_ms for one in read(tmp_path / "c.jsonl", captured(2), row)] == [0, shift_ms]


def test_a_body_is_base64_where_nothing_else_is_said(tmp_path: Path) -> None:
    data = base64.b64encode(b'{"messages":[{"role":"user","content":"hi"}]}').decode()
    for given in ({"data": data}, {"data": data, "encoding": "BASE64"}):
        row = {**captured(1), "captureData": {"endpointInput": given, "endpointOutput": {"encoding": "JSON", "data": "{}"}}}
        assert read(tmp_path / "c.jsonl", row)[0].turns[0].text == "hi"


def test_the_captured_count_is_not_the_input_length(tmp_path: Path) -> None:
    row = captured(1)
    row["captureData"]["endpointOutput"] = {"encoding": "JSON", "data": '{"usage": {"prompt_tokens": 3}}'}
    assert read(tmp_path / "c.jsonl", row)[0].turns[0].input_tokens is None


def test_all_files_below_a_directory_are_read(tmp_path: Path) -> None:
    for name, second in (("b/2/x.jsonl", 1), ("a.jsonl", 2)):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(json.dumps(captured(second)))
    assert [one.turns[0].text for one in read(tmp_path)] == ["at 1", "at 2"]
    (tmp_path / "empty").mkdir()
    with pytest.raises(BadDataset, match=r"no \.jsonl files with rows"):
        read(tmp_path / "empty")


def given(**changes: Any) -> dict[str, Any]:
    return {**captured(1), "captureData": {"endpointInput": {"encoding": "JSON", "data": "{}", **changes}}}


@pytest.mark.parametrize(("row", "words"), [
    ({"captureData": {}}, "the row has no eventMetadata"), ({**captured(1), "eventMetadata": 1}, "eventMetadata is 1"),
    ({**captured(1), "eventMetadata": {}}, "inferenceTime is None; it must be a time such as 2025-01-01T00:00:00Z"),
    ({**captured(1), "eventMetadata": {"inferenceTime": "noon"}}, "inferenceTime is 'noon'"),
    ({**captured(1), "captureData": {}}, "the row has no endpointInput"),
    (given(data=None), "data is None; it must be the text of a body"), (given(encoding="CSV"), "encoding is 'CSV'"),
    (given(encoding="BASE64", data="a!"), "it is no base64"), (given(encoding="BASE64", data="YQ=="), "it is no JSON"),
    (given(data="[1]"), "data is [1]; it must be the body of a chat"), (given(), "messages must be a non-empty list"),
    (given(data='{"messages": [{"role": "user"}], "max_tokens": 0}'), "max_tokens is 0"),
])  # fmt: skip
def test_a_row_that_breaks_a_rule_is_named_with_its_line(tmp_path: Path, row: Any, words: str) -> None:
    with pytest.raises(BadDataset) as caught:
        read(tmp_path / "c.jsonl", captured(1), row)
    assert words in caught.value.message
    assert "c.jsonl:2: " in caught.value.message


def test_messages_are_sent_unchanged_or_refused(tmp_path: Path) -> None:
    with pytest.raises(BadDataset, match="the system prompt can't come before them"):
        read(tmp_path / "c.jsonl", captured(1), system_prompt="Be terse.")
    with pytest.raises(BadDataset, match="sends no history"):
        read(tmp_path / "c.jsonl", captured(1), capabilities=Capabilities())


def test_it_knows_its_rows() -> None:
    assert SagemakerDataCapture.recognises(Path("x"), captured(1))
    assert not SagemakerDataCapture.recognises(Path("x"), {"captureData": {}})
    assert not SagemakerDataCapture.recognises(Path("x"), None)
