"""An engine in the process: what it is given, what is counted, and how it ends; with a stand-in for the library."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from aiperf import BadResponse, ConfigError, Turn
from aiperf_endpoint_tensorrtllm_engine import TensorrtllmEngine
from aiperf_endpoint_tensorrtllm_engine.contract import EngineContract, EngineTransportContract
from aiperf_endpoint_tensorrtllm_engine.options import EngineOptions
from aiperf_testing.transports import Act


class TestEndpointKeepsTheContract(EngineContract):
    pass


class TestTransportKeepsTheContract(EngineTransportContract):
    def test_the_engine_gets_ids_and_the_librarys_parameters(self) -> None:
        body = (
            b'{"input_ids":[7,8],"input_lengths":[2],"request_output_len":[3],"streaming":true,"min_length":[3],"end_id":[2],'
            b'"temperature":0.5}'
        )

        async def scene(act: Act) -> None:
            act.body = body
            exchange = await act.ask()
            lines = [msgspec.json.decode(piece[0]) for piece in act.ear.chunks[exchange.request]]
            assert [line["output_ids"] for line in lines] == [[7], [8], [7]]
            assert [line["finish"] for line in lines] == [None, None, "length"]
            stamps = [piece[2] for piece in act.ear.chunks[exchange.request]]
            assert stamps == sorted(set(stamps)) and exchange.sent_ns < stamps[0], "each has a read stamp of its own"

        self.act("answer", scene)
        # What the stand-in noted is gone with its directory: the call is checked where it is made, by its own signature.

    @pytest.mark.parametrize(("body", "said"), [
        (b'{"input_ids":[1],"top_x":1}', "SamplingParams has no top_x; it has max_tokens, min_tokens, end_id, pad_id"),
        (b"[]", "no request to an engine"), (b'{"input_ids":["a"]}', "no request to an engine"),
    ])  # fmt: skip
    def test_a_request_that_the_library_does_not_take_is_an_error(self, body: bytes, said: str) -> None:
        async def scene(act: Act) -> None:
            act.body = body
            _, error = await act.fail()
            assert said in error.message and error.type == "BadRequest"

        self.act("answer", scene)


def encoded(options: dict[str, Any], **turn: Any) -> dict[str, Any]:
    made = TensorrtllmEngine(EngineOptions(**options)).encode(Turn(("hi",), model="m", ids=(5, 6, 7), **turn))
    found: dict[str, Any] = msgspec.json.decode(made.body)
    return found


@pytest.mark.parametrize(("options", "turn", "body"), [
    ({}, {}, {"request_output_len": [256]}), ({}, {"max_tokens": 9}, {"request_output_len": [9]}),
    ({"deterministic": True}, {"max_tokens": 9}, {"request_output_len": [9], "min_length": [9]}),
    ({"set_end_id": True}, {"end_id": 2}, {"request_output_len": [256], "end_id": [2]}),
    ({}, {"extra": {"top_k": 1}}, {"request_output_len": [256], "top_k": 1}),
])  # fmt: skip
def test_a_request_is_the_engines_tensors(options: dict[str, Any], turn: dict[str, Any], body: dict[str, Any]) -> None:
    assert encoded(options, **turn) == {"input_ids": [5, 6, 7], "input_lengths": [3], "streaming": True, **body}


@pytest.mark.parametrize(("options", "said"), [
    ({"deterministic": True}, "add --osl"), ({"set_end_id": True}, "the tokenizer doesn't know it"),
])  # fmt: skip
def test_what_cannot_be_asked_is_refused(options: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        encoded(options)
    assert said in "\n".join(caught.value.lines())


def test_a_chat_template_is_asked_of_the_build() -> None:
    assert TensorrtllmEngine(EngineOptions(apply_chat_template=True)).templates_ids
    assert not TensorrtllmEngine(EngineOptions()).templates_ids


def test_tokens_are_ids() -> None:
    reader = TensorrtllmEngine().reader()
    deltas = reader.feed([b'{"output_ids":[1,2]}', b'{"output_ids":[3],"prompt_tokens":4,"finish":"stop"}'], [None, None])
    assert [delta and (delta.items, delta.text, delta.finish) for delta in deltas] == [(2, "", None), (1, "", "stop")]
    assert deltas[0] is not None and deltas[0].usage == {"prompt_tokens": None, "completion_tokens": 2}
    assert deltas[1] is not None and deltas[1].usage == {"prompt_tokens": 4, "completion_tokens": 3, "total_tokens": 7}
    with pytest.raises(BadResponse):
        reader.feed([b"{}"], [None])
