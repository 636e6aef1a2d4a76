"""The chat API of Ollama: what goes out, and what is made of what comes back."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pytest
from aiperf import BadResponse, Delta, HttpRequest, Media, Message, Metric, RecordBatch, Turn
from aiperf.sdk.sse import MOST_EVENT_BYTES
from aiperf.testing import MetricContract
from aiperf_endpoint_ollama import Ollama
from aiperf_endpoint_ollama.contract import OllamaContract, OllamaVerdictContract, line
from aiperf_endpoint_ollama.metrics import EvalDuration, LoadDuration, PromptEvalDuration, TotalDuration, TruncatedPromptCount
from aiperf_testing.batches import sample_batch

TOOL = {"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}


def body(*texts: str, **turn: Any) -> bytes:
    return Ollama().encode(Turn(texts, model="m1", **turn)).body


@pytest.mark.parametrize(("turn", "wanted"), [
    ({}, b'{"model":"m1","messages":[{"role":"user","content":"Hi"}],"stream":false}'),
    ({"stream": True, "max_tokens": 8, "extra": {"temperature": 0, "think": True, "keep_alive": "5m"}},
     b'{"model":"m1","messages":[{"role":"user","content":"Hi"}],"stream":true,"options":{"num_predict":8,"temperature":0},'
     b'"think":true,"keep_alive":"5m"}'),
    ({"max_tokens": 8, "extra": {"options": {"num_predict": 9}, "num_ctx": 4096}},
     b'{"model":"m1","messages":[{"role":"user","content":"Hi"}],"stream":false,"options":{"num_predict":9,"num_ctx":4096}}'),
    ({"tools": (TOOL,), "history": (Message("system", ("Be terse.",)),)},
     b'{"model":"m1","messages":[{"role":"system","content":"Be terse."},{"role":"user","content":"Hi"}],'
     b'"tools":[{"type":"function","function":{"name":"weather","parameters":{"type":"object"}}}],"stream":false}'),
    ({"media": (Media("image", "data:image/png;base64,iVBO"), Media("image", "AAAA"))},
     b'{"model":"m1","messages":[{"role":"user","content":"Hi","images":["iVBO","AAAA"]}],"stream":false}'),
])  # fmt: skip
def test_the_body_is_exactly_this(turn: dict[str, Any], wanted: bytes) -> None:
    assert body("Hi", **turn) == wanted


def test_a_runs_system_message_joins_the_data_sets() -> None:
    messages = (Message("system", ("Run.",)), Message("system", ("Data.",)))
    sent = msgspec.json.decode(body("Hi", history=messages))["messages"]
    assert sent == [{"role": "system", "content": "Run.\n\nData."}, {"role": "user", "content": "Hi"}]


def test_the_path_is_ollamas() -> None:
    assert Ollama().encode(Turn(("Hi",), stream=True)).path == "/api/chat"


def read(*events: bytes) -> list[Delta | None]:
    return [*Ollama().reader().feed(events, [None] * len(events))]


LINES = {
    "text": (line('{"content":"Cat"}'), Delta("Cat")),
    "thinking beside text": (line('{"content":"Cat","thinking":"hm"}'), Delta("Cat", "hm")),
    "nothing": (line('{"content":""}'), Delta()),
    "two calls": (
        line('{"content":"","tool_calls":[{"function":{"name":"f","arguments":{"a":1}}},{"function":{"name":"g","arguments":"x"}}]}'),
        Delta(tool='f{"a":1}gx'),
    ),
    "no counts": (line('{"content":""}', '"done":true,"done_reason":"stop"'), Delta(finish="stop")),
    "one count": (line("{}", '"done":true,"eval_count":3'), Delta(usage={"completion_tokens": 3})),
    "a count of 0": (line("{}", '"done":true,"prompt_eval_count":0'), Delta(usage={"prompt_tokens": 0})),
    "durations": (line("{}", '"done":true,"load_duration":5,"eval_duration":7'),
                  Delta(extra={"server_load_ns": 5.0, "server_eval_ns": 7.0})),
    "loaded alone": (b'{"model":"m","done":true,"done_reason":"load"}', Delta(finish="load")),
    "a null error": (line('{"content":"Cat"}', '"done":false,"error":null'), Delta("Cat")),
}  # fmt: skip


@pytest.mark.parametrize(("event", "delta"), LINES.values(), ids=LINES.keys())
def test_a_line_means(event: bytes, delta: Delta) -> None:
    assert read(event) == [delta]


@pytest.mark.parametrize("event", [
    b'{"error":"model runner has stopped"}', line('{"content":"x"}', '"error":"model runner has stopped"'),
])  # fmt: skip
def test_an_error_fails_the_request_in_mid_stream_too(event: bytes) -> None:
    for events in ([event], [line('{"content":"Cat"}'), event]):
        with pytest.raises(BadResponse, match=r"^model runner has stopped$") as caught:
            read(*events)
        assert caught.value.raw == event


@pytest.mark.parametrize("event", [b"<html>", b'{"message":7}', b'{"message":{"content":"a', b"[]", b'{"done":"yes"}'])
def test_other_answers_are_bad_responses(event: bytes) -> None:
    with pytest.raises(BadResponse, match=r"^ollama: not ") as caught:
        read(line('{"content":"Cat"}'), event)
    assert caught.value.raw == event


def test_a_line_without_end_is_an_error() -> None:
    framing = Ollama.framing()
    with pytest.raises(BadResponse, match="a line is longer than 16 MiB"):
        framing.feed(b'{"message":{"content":"' + bytes(MOST_EVENT_BYTES))


def replayed(*events: bytes) -> list[Message] | None:
    reader = Ollama().reader()
    reader.feed(events, [None] * len(events))
    reader.close()
    messages = reader.replay()
    return None if messages is None else [*messages]


def test_tool_calls_come_back_as_the_server_sent_them() -> None:
    call = {"function": {"name": "weather", "arguments": {"at": "Lucca"}}, "id": "c1"}
    events = line('{"content":"Let me","thinking":"Hm. "}'), line('{"content":" see.","thinking":"So."}')
    messages = replayed(*events, line(f'{{"content":"","tool_calls":[{msgspec.json.encode(call).decode()}]}}'), line("null"))
    assert messages is not None
    item = {"role": "assistant", "content": "Let me see.", "thinking": "Hm. So.", "tool_calls": [call]}
    assert [message.item for message in messages] == [item]
    result = {"role": "tool", "content": "18", "tool_name": "weather"}
    turn = Turn(items=(Message.of(result),), model="m", history=(Message("user", ("How warm?",)), *messages))
    sent = msgspec.json.decode(Ollama().encode(turn).body)["messages"]
    assert sent == [{"role": "user", "content": "How warm?"}, item, result]


def test_an_answer_without_calls_is_its_text() -> None:
    assert replayed(line('{"content":"tool_calls","thinking":"x"}')) is None


def test_the_input_counts_as_it_was_sent() -> None:
    sent = Ollama().encode(Turn(("Hi",), tools=(TOOL,), history=(Message("system", ("Be terse.",)),)))
    counted = Ollama().prompt_of(HttpRequest("/", sent.body))
    assert counted is not None
    assert [*counted.texts] == ["Be terse.", "Hi", "weather", '{"type":"object"}']


class TestOllamaKeepsTheContract(OllamaContract):
    pass


class TestTheVerdictKeepsTheContract(OllamaVerdictContract):
    pass


METRICS = (TotalDuration(), LoadDuration(), PromptEvalDuration(), EvalDuration(), TruncatedPromptCount())


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.tag)
class TestEachMetricKeepsTheContract(MetricContract):
    metric: Metric = TotalDuration()  # type: ignore[misc]

    @pytest.fixture(autouse=True)
    def of(self, metric: Metric) -> None:
        self.metric = metric


def test_a_prompt_counted_below_ours_was_cut() -> None:
    batch = sample_batch()
    sent, counted = batch["input_tokens"], batch["usage_prompt_tokens"]
    wanted = [np.nan if np.isnan(a) or np.isnan(b) else float(b < a) for a, b in zip(sent, counted, strict=True)]
    assert 1.0 in wanted
    np.testing.assert_array_equal(TruncatedPromptCount().column(batch), wanted)


# Two answers: 2 s in all of which 1.5 s load, 100 ms prompt and 400 ms answer, with a prompt of 20 tokens of which the server
# counts 16; and one without durations whose prompt is whole.
WORKED = {
    "server_timing_total_duration": [2e9, None],
    "server_timing_load_duration": [1.5e9, None],
    "server_timing_prompt_eval_duration": [1e8, None],
    "server_timing_eval_duration": [4e8, None],
    "truncated_prompt_count": [1.0, 0.0],
}


def test_values_are_those_worked_out_by_hand() -> None:
    numbers = {
        "server_total_ns": [2e9, np.nan], "server_load_ns": [1.5e9, np.nan], "server_prompt_eval_ns": [1e8, np.nan],
        "server_eval_ns": [4e8, np.nan], "usage_prompt_tokens": [16.0, 20.0], "input_tokens": [20.0, 20.0],
    }  # fmt: skip
    batch = RecordBatch({name: np.array(values) for name, values in numbers.items()}, np.ones(2, dtype=bool), {})
    found = {each.tag: [None if np.isnan(value) else value for value in each.column(batch)] for each in METRICS}
    assert found == WORKED
