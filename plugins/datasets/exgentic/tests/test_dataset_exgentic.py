"""Sessions of agents: spans, times, headers, filters, and what a row must have."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from aiperf import BadDataset, Capabilities, Conversation, DatasetContext
from aiperf_dataset_exgentic.contract import ExgenticContract, call, session
from aiperf_dataset_exgentic.dataset import Exgentic, Sessions, source_model
from aiperf_dataset_exgentic.options import ExgenticOptions

CHAT = Capabilities(system_message=True, multi_turn=True, verbatim=True, produces_tokens=True)


def read(path: Path, *given: dict[str, Any], replay: bool = False, **options: Any) -> list[Conversation]:
    (path / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in given))
    context = DatasetContext(100, 7, True, None, CHAT, path / "a.jsonl", replay=replay)
    return list(Exgentic(ExgenticOptions(**options), context))


def filtered(*given: dict[str, Any], **filters: str) -> list[str]:
    sessions = Sessions(CHAT, apart=False, filters=filters)
    found = [name for row in given for name, _ in sessions.of(row, "row")]
    sessions.finish("it")
    return found


class TestExgenticKeepsTheContract(ExgenticContract):
    pass


def test_each_span_sends_its_whole_chat(tmp_path: Path) -> None:
    first = call(5, "b", request__max_tokens=9, request__temperature=0, request__stop_sequences=["x"], request__top_p=0.5,
                 system_instructions="Be terse.",
                 tool__definitions='[{"type": "function", "name": "f"}]')  # fmt: skip
    (one,) = read(tmp_path, session("s", first, call(2, "a")))
    assert ([turn.text for turn in one.turns], one.id, one.alone) == (["a", "Be terse.b"], "s", True)
    assert [(turn.delay_ms, turn.max_tokens) for turn in one.turns] == [(None, 5), (2000.0, 9)]
    turn = one.turns[1]
    assert turn.extra == {"temperature": 0, "stop": ["x"]}
    assert turn.tools == ({"type": "function", "function": {"name": "f", "description": None, "parameters": None}},)
    assert [message.item for message in turn.own] == [
        {"role": "system", "content": "Be terse."}, {"role": "user", "content": "b"}
    ]  # fmt: skip
    assert {turn.headers["x-dynamo-session-id"] for turn in one.turns} == {"s"}


def test_on_a_schedule_each_span_is_by_itself(tmp_path: Path) -> None:
    found = read(tmp_path, session("s", call(5, "b"), call(2, "a")), session("t", call(9)), replay=True)
    assert [(one.id, one.turns[0].timestamp_ms) for one in found] == [("s:1", 0.0), ("s:0", 3000.0), ("t:0", 0.0)]


def test_other_spans_are_skipped_and_counted(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    untyped = call(1, operation__name="chat") | {"type": None}
    spans = [call(0), untyped, call(2) | {"type": "tool"}, call(3) | {"status": {"code": 2}}, call(4, usage__output_tokens=0)]
    (one,) = read(tmp_path, session("s", *spans))
    assert len(one.turns) == 2
    assert "2 requests of 1 sessions; 0 overlap; skipped: 1 failed, 1 other calls than of a model and 1 without tokens" in (
        caplog.text
    )


def test_rows_are_filtered_by_harness_model_and_benchmark() -> None:
    given = session("a", call(0)), session("b", call(0), harness="claude_code", models=["aws/claude-opus-4-5"], benchmark="swe")
    assert filtered(*given, harness="Claude_Code") == ["b"]
    assert filtered(*given, source_model="azure/GPT-4.1") == ["a"]
    assert filtered(*given, benchmark="swe", source_model="claude-opus-4-5") == ["b"]
    with pytest.raises(BadDataset, match=r"it has no session with harness x") as caught:
        filtered(*given, harness="x")
    assert caught.value.hints == ("it has harness/model claude_code/claude-opus-4-5, tool_calling/gpt-4.1",)
    with pytest.raises(BadDataset, match="there is no filter colour"):
        filtered(*given, colour="red")


def test_a_provider_is_no_part_of_a_model() -> None:
    names = ("OpenAI/Azure/gpt-5.2", "gcp/x", "my/x", "x")
    assert [source_model(name) for name in names] == ["gpt-5.2", "x", "my/x", "x"]


@pytest.mark.parametrize(("row", "words"), [
    (session("", call(0)), ":1: the row has no session_id"), (session("s", call(0), harness=None), ":1: the row has no harn"),
    (session("s", call(0), models="m"), ":1: models must be a list of names"), (session("s") | {"spans": 5}, ":1: spans must"),
    (session("s"), "has no span that can be sent"), (session("s", call(0, usage__input_tokens=None)), "must be whole numbers"),
    (session("s", call(0) | {"start_time": "noon"}), "span 0: start_time is 'noon'"),
    (session("s", call(3) | {"end_time": "2025-01-01T00:00:00Z"}), "span 0: it ends before it starts"),
    (session("s", call(0, input__messages='[{"role": "user", "parts": [{"type": "smell"}]}]')), "a part of the type 'smell'"),
    (session("s", call(0, tool__definitions='[{"type": "web"}]')), "a tool has the type 'web'"),
    (session("s", call(0, input__messages=None)), "gen_ai.input.messages has no messages"),
    (session("s", call(0, request__max_tokens=0)), "gen_ai.request.max_tokens is 0"),
])  # fmt: skip
def test_a_row_that_breaks_a_rule_is_named_with_its_line(tmp_path: Path, row: dict[str, Any], words: str) -> None:
    with pytest.raises(BadDataset) as caught:
        read(tmp_path, row)
    assert words in caught.value.message


def test_a_session_may_not_come_twice(tmp_path: Path) -> None:
    with pytest.raises(BadDataset, match=r":2: session_id is 's', which an earlier row has"):
        read(tmp_path, session("s", call(0)), session("s", call(1)))
    with pytest.raises(BadDataset, match="the system prompt can't come before them"):
        read(tmp_path, session("s", call(0)), system_prompt="Be terse.")
