"""KServe's protocol: what goes out, and what is made of what comes back."""

from __future__ import annotations

import struct
from typing import Any

import msgspec
import pytest
from aiperf import BadResponse, ConfigError, Delta, HttpRequest, Turn
from aiperf.sdk.asking import ASK_S, AskError, Reply
from aiperf.sdk.endpoint import encoded
from aiperf_endpoint_kserve import Kserve
from aiperf_endpoint_kserve.asking import SERVICE
from aiperf_endpoint_kserve.contract import KserveContract, KserveJsonContract
from aiperf_endpoint_kserve.options import KserveOptions
from aiperf_endpoint_kserve.proto_form import MessageTexts
from aiperf_endpoint_kserve.tensors import Listed, Tensor, raw, tensor, tensors_of
from aiperf_rpc.protos.kserve import (
    ModelInferRequest,
    ModelInferResponse,
    ModelMetadataResponse,
    ModelStreamInferResponse,
)

TURN = Turn(("hello big world",), model="echo", max_tokens=3)
STREAMED = KserveContract.transcript
VLLM, EXACT = KserveOptions(backend="vllm"), KserveOptions(deterministic=True)


def values(options: KserveOptions | None = None, **turn: Any) -> dict[str, Any]:
    """The tensors of a request, each with its datatype and its values."""
    request = Kserve(options).encode(msgspec.structs.replace(TURN, scheme="http", **turn))
    return {each["name"]: (each["datatype"], *each["data"]) for each in msgspec.json.decode(request.body)["inputs"]}


def test_the_tensors_of_each_backend_are_these() -> None:
    usual = {"text_input": ("BYTES", "hello big world"), "exclude_input_in_output": ("BOOL", True)}
    assert values() == {**usual, "max_tokens": ("INT32", 3)}
    assert values(max_tokens=None)["max_tokens"] == ("INT32", 256)
    assert values(EXACT, stream=True) == {
        **usual, "max_tokens": ("INT32", 3), "stream": ("BOOL", True), "min_length": ("INT32", 3)
    }  # fmt: skip
    extra = {"temperature": 0.5, "seed": 2**40, "stop_words": ["a", "b"], "top": 1, "own": {"a": 1}}
    assert values(extra=extra) == {
        **usual, "max_tokens": ("INT32", 3), "temperature": ("FP32", 0.5), "seed": ("INT64", 2**40), "top": ("INT32", 1),
        "stop_words": ("BYTES", "a", "b"), "own": ("BYTES", '{"a":1}'),
    }  # fmt: skip
    assert values(VLLM) == {**usual, "stream": ("BOOL", False), "sampling_parameters": ("BYTES", '{"max_tokens":"3"}')}
    sampling = '{"max_tokens":"3","min_tokens":"3","top_p":0.5}'
    assert values(KserveOptions(backend="vllm", deterministic=True), extra={"top_p": 0.5})["sampling_parameters"][1] == sampling


def test_several_texts_are_refused() -> None:
    with pytest.raises(ConfigError, match="kserve sends one text with a request, and one has 2"):
        Kserve().encode(Turn(("a", "b"), model="m"))


def test_a_minimum_needs_a_length() -> None:
    with pytest.raises(ConfigError, match="--output-tokens-mean-deterministic needs an output length"):
        Kserve(EXACT).encode(Turn(("Hi",), model="m"))


def test_others_have_the_form_that_the_model_lists() -> None:
    listed = {"text_input": Listed("BYTES", (-1, 1)), "seed": Listed("UINT64", (-1, 1)), "temperature": Listed("FP32", (1,))}
    turn = msgspec.structs.replace(TURN, extra={"temperature": 1, "seed": 7, "other": 1})
    values = tensors_of(turn, "tensorrtllm", deterministic=False)
    assert [tensor(name, value, listed) for name, value in values.items() if name in listed] == [
        Tensor("text_input", "BYTES", ("hello big world",), (1, 1)), Tensor("temperature", "FP32", (1.0,), (1,)),
        Tensor("seed", "UINT64", (7,), (1, 1)),
    ]  # fmt: skip


class Server:
    """Answers each path, in the order of its replies; an exception is raised."""

    url = "http://server:8000"
    models: tuple[str, ...] = ("m",)

    def __init__(self, scheme: str, *replies: Reply | Exception) -> None:
        self.scheme, self._replies = scheme, list(replies)
        self.paths: list[str] = []

    def __call__(self, request: HttpRequest, *, timeout_s: float = ASK_S) -> Reply:
        self.paths.append(request.path)
        reply = self._replies.pop(0)
        if isinstance(reply, Exception):
            raise reply
        return reply


METADATA = {
    "name": "m", "inputs": [{"name": "text_input", "datatype": "BYTES", "shape": [-1, 1]}], "outputs": [{"name": "out"}]
}  # fmt: skip


def told(scheme: str, metadata: dict[str, Any]) -> Reply:
    if scheme == "http":
        return Reply(200, msgspec.json.encode(metadata))
    message = ModelMetadataResponse(name="m")
    for each in metadata["inputs"]:
        message.inputs.add(**each)
    for each in metadata["outputs"]:
        message.outputs.add(**each)
    return Reply(200, messages=(message.SerializeToString(),))


@pytest.mark.parametrize(("scheme", "path"), [("http", "/v2/models/m"), ("grpc", f"{SERVICE}/ModelMetadata")])
def test_inputs_that_the_model_does_not_list_are_left_out_and_said_once(
    scheme: str, path: str, caplog: pytest.LogCaptureFixture
) -> None:
    endpoint, server = Kserve(), Server(scheme, told(scheme, METADATA))
    endpoint.prepared = endpoint.prepare(server)
    assert (server.paths, endpoint.prepared) == ([path], {"m": {"text_input": ["BYTES", [-1, 1]]}})
    turn = msgspec.structs.replace(TURN, model="m", scheme="http")
    sent = [msgspec.json.decode(endpoint.encode(turn).body)["inputs"] for _ in range(2)]
    assert sent[0] == sent[1] == [{"name": "text_input", "shape": [1, 1], "datatype": "BYTES", "data": [TURN.text]}]
    said = "the model 'm' has no input max_tokens, exclude_input_in_output: it is left out of the requests"
    assert [record.getMessage() for record in caplog.records] == [said]
    assert len(msgspec.json.decode(endpoint.encode(msgspec.structs.replace(turn, model="other")).body)["inputs"]) == 3


@pytest.mark.parametrize(("scheme", "reply", "sentence"), [
    ("http", Reply(404, b'{"error":"Request for unknown model: \'m\' is not found"}'), "has no model 'm': name one"),
    ("grpc", AskError("no model", code=404), "has no model 'm': name one"),
    ("http", told("http", {**METADATA, "inputs": [{"name": "image"}]}), "has no input 'text_input', but image"),
    ("grpc", told("grpc", METADATA), "has no output 'text', but out"),
])  # fmt: skip
def test_a_model_that_cannot_be_asked_is_refused(scheme: str, reply: Reply | Exception, sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        Kserve(KserveOptions(output_tensor="text")).prepare(Server(scheme, reply))


@pytest.mark.parametrize(("scheme", "reply"), [
    ("http", Reply(404, b"Not Found")), ("http", Reply(500, b"{}")), ("http", Reply(200, b"[]")), ("http", Reply(404, b"{}")),
    ("grpc", AskError("not there", code=501)), ("grpc", Reply(200)), ("grpc", Reply(200, messages=(b"\x0a\xff",))),
])  # fmt: skip
def test_a_server_without_metadata_gets_all_tensors(scheme: str, reply: Reply | Exception) -> None:
    assert Kserve().prepare(Server(scheme, reply)) == {}


def test_a_server_that_is_not_ready_says_so() -> None:
    yes, no = Reply(200, messages=(b"\x08\x01",)), Reply(200, messages=(b"",))
    assert Kserve().unready(Server("grpc", yes, yes)) is None
    assert Kserve().unready(Server("grpc", yes, no)) == "the model 'm' says that it isn't ready"
    assert Kserve().unready(Server("grpc", no)) == "the server says that it isn't ready"
    server = Server("http", Reply(200), Reply(503))
    assert Kserve().unready(server) == "the model 'm' says that it isn't ready"
    assert server.paths == ["/v2/health/ready", "/v2/models/m/ready"]


@pytest.mark.parametrize(("datatype", "value"), [("UINT8", 256), ("FP32", 1e300), ("BOOL", "yes"), ("INT32", 0.5)])
def test_a_value_that_no_input_can_have_is_refused(datatype: str, value: Any) -> None:
    with pytest.raises(ConfigError, match=f"the model's input 'x' is of {datatype}, which can't have"):
        tensor("x", value, {"x": Listed(datatype, (1,))})


def test_the_message_has_raw_contents_in_the_order_of_its_inputs() -> None:
    request = encoded(Kserve(), msgspec.structs.replace(TURN, stream=True, extra={"top_p": [0.5, 1.0]}))
    assert (request.path, request.content_type) == ("/inference.GRPCInferenceService/ModelStreamInfer", "application/grpc")
    message = ModelInferRequest.FromString(request.body)
    assert [(each.name, each.datatype, [*each.shape]) for each in message.inputs] == [
        ("text_input", "BYTES", [1]), ("max_tokens", "INT32", [1]), ("exclude_input_in_output", "BOOL", [1]),
        ("stream", "BOOL", [1]), ("top_p", "FP32", [2]),
    ]  # fmt: skip
    assert [*message.raw_input_contents] == [
        b"\x0f\0\0\0hello big world", b"\3\0\0\0", b"\1", b"\1", struct.pack("<ff", 0.5, 1.0)
    ]
    assert not any(each.HasField("contents") for each in message.inputs)
    counted = Kserve().prompt_of(request)
    assert counted is not None
    assert [*counted.texts] == ["hello big world"]


def test_the_request_of_http_is_that_which_triton_took() -> None:
    request = encoded(Kserve(), msgspec.structs.replace(TURN, scheme="http"))
    assert (request.path, request.content_type) == ("/v2/models/echo/infer", "application/json")
    assert Kserve().prompt_of(request) == Kserve().prompt_of(HttpRequest("", request.body))
    recorded = {"name": "text_input", "shape": [1], "datatype": "BYTES", "data": ["hello big world"]}
    assert msgspec.json.decode(request.body)["inputs"][0] == recorded


def test_numbers_are_little_endian() -> None:
    assert raw(Tensor("x", "UINT16", (258, 1), (2,))) == b"\2\1\1\0"
    assert raw(Tensor("x", "FP64", (1.5,), (1,))) == struct.pack("<d", 1.5)


def test_contents_of_mlserver_are_read_as_raw_ones() -> None:
    plain = bytes.fromhex(
        "0a046563686f1a0272312a370a0b746578745f6f7574707574120542595445531a02010122150a0c636f6e74656e745f7479706512051a037374722a"
        "06420420626967"
    )
    assert Kserve().reader().feed([plain, plain], [None] * 2) == [Delta(" big"), Delta(" big")]


def streamed(text: bytes, **fields: Any) -> bytes:
    response = ModelInferResponse(model_name="echo", raw_output_contents=[struct.pack("<I", len(text)) + text], **fields)
    response.outputs.add(name="text_output", datatype="BYTES", shape=[1])
    return ModelStreamInferResponse(infer_response=response).SerializeToString()


def test_messages_read_by_their_place_are_read_right() -> None:
    texts = ["a", "\u00e9\U0001f600", "", "x" * 40, "y" * 60, "z" * 70, "w" * 300, "2\x05\0\0\0hello", "end"]
    together = MessageTexts(None)
    for text in texts:
        message = streamed(text.encode())
        assert together(message) == MessageTexts(None)(message) == text
    cut = streamed(b"abc" + "\u00e9".encode()[:1])
    assert together(cut) == MessageTexts(None)(cut) == "abc\ufffd"
    other = streamed(b"more", id="r2")
    assert together(other) == "more"


def test_any_change_of_a_byte_is_read_as_by_a_new_reader() -> None:
    message = streamed(b"hello")
    for at in range(len(message)):
        for value in {0, 1, 10, 18, 50, 127, 128, 255, message[at] + 1 & 255, message[at] - 1 & 255}:
            changed = message[:at] + bytes((value,)) + message[at + 1 :]
            seen: list[str | None] = []
            for reader in (MessageTexts(None), MessageTexts(None)):
                if not seen:
                    reader(message)
                else:
                    reader._plain = False  # the kind of the answer is known
                try:
                    seen.append(reader(changed))
                except BadResponse as error:
                    seen.append(str(error))
            assert seen[0] == seen[1], (at, value)


def test_the_output_may_be_named() -> None:
    response = ModelInferResponse(raw_output_contents=[struct.pack("<f", 1), b"\1\0\0\0a", b"\1\0\0\0b"])
    for name, datatype in (("score", "FP32"), ("first", "BYTES"), ("second", "BYTES")):
        response.outputs.add(name=name, datatype=datatype, shape=[1])
    message = response.SerializeToString()

    def text(options: KserveOptions | None = None) -> Any:
        return Kserve(options).reader().feed([message], [None])[0]

    assert text() == Delta("a")
    assert text(KserveOptions(output_tensor="second")) == Delta("b")
    with pytest.raises(BadResponse, match="the answer has no output 'third', but score, first, second"):
        text(KserveOptions(output_tensor="third"))


def test_an_error_of_tritons_stream_is_the_servers_own() -> None:
    recorded = bytes.fromhex(
        "0a305265717565737420666f7220756e6b6e6f776e206d6f64656c3a20276e6f7375636827206973206e6f7420666f756e6412041a027231"
    )
    for before in ((), STREAMED[:1]):
        with pytest.raises(BadResponse, match="Request for unknown model: 'nosuch' is not found") as caught:
            Kserve().reader().feed([*before, recorded], [None] * (len(before) + 1))
        assert caught.value.raw == recorded


@pytest.mark.parametrize(("trailers", "said", "code", "kind"), [
    ({"grpc-status": "5", "grpc-message": "no %27x%27"}, "no 'x'", 404, "NOT_FOUND"),
    ({"grpc-status": "4"}, "the call ended with DEADLINE_EXCEEDED and no message", 504, "DEADLINE_EXCEEDED"),
    ({"grpc-status": "99"}, "the call ended with UNKNOWN and no message", 500, "UNKNOWN"),
])  # fmt: skip
def test_a_bad_status_is_an_error(trailers: dict[str, str], said: str, code: int, kind: str) -> None:
    with pytest.raises(BadResponse) as caught:
        Kserve().trailers(trailers)
    assert (str(caught.value), caught.value.code, caught.value.kind) == (said, code, kind)
    assert Kserve().trailers({"grpc-status": "0"}) is None
    assert Kserve().trailers({"x": "y"}) is None


class TestKserveKeepsTheContract(KserveContract):
    pass


class TestKserveOverHttpKeepsTheContract(KserveJsonContract):
    pass
