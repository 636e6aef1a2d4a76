"""The simulator's calls, as grpcio's client sees them."""

from __future__ import annotations

import queue
import socket
import struct
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pytest
from aiperf_command_simulate.testing import Simulator, running
from aiperf_http2 import frames
from aiperf_rpc.protos import echo, health, kserve, reflection

grpc = pytest.importorskip("grpc")
KSERVE, ECHO = "/inference.GRPCInferenceService", "/aiperf.simulate.Echo"


@pytest.fixture(scope="module")
def simulator() -> Iterator[Simulator]:
    with running(models=["m", "m-decoupled"], first_token_ms=1, decode_ms=0.1) as simulator:
        yield simulator


@pytest.fixture(scope="module")
def channel(simulator: Simulator) -> Iterator[Any]:
    with grpc.insecure_channel(simulator.url.removeprefix("http://")) as channel:
        yield channel


def call(channel: Any, kind: str, path: str, answer: Any) -> Callable[..., Any]:
    """A callable of grpcio for a method."""
    made: Callable[..., Any] = getattr(channel, kind)(
        path, request_serializer=lambda message: message.SerializeToString(), response_deserializer=answer.FromString
    )
    return made


def request(model: str = "m", count: int = 3, text: str = "hello") -> kserve.ModelInferRequest:
    data = text.encode()
    made = kserve.ModelInferRequest(model_name=model, id="r1")
    made.inputs.add(name="text_input", datatype="BYTES", shape=[1])
    made.inputs.add(name="max_tokens", datatype="INT32", shape=[1])
    made.raw_input_contents.extend([struct.pack("<I", len(data)) + data, struct.pack("<i", count)])
    return made


def text_of(response: kserve.ModelInferResponse) -> str:
    return response.raw_output_contents[0][4:].decode()


def infer(channel: Any, asked: kserve.ModelInferRequest, **words: Any) -> kserve.ModelInferResponse:
    made: kserve.ModelInferResponse = call(channel, "unary_unary", f"{KSERVE}/ModelInfer", kserve.ModelInferResponse)(
        asked, timeout=60, **words
    )
    return made


def streamed(channel: Any, *asked: kserve.ModelInferRequest, **words: Any) -> Iterable[kserve.ModelStreamInferResponse]:
    made: Iterable[kserve.ModelStreamInferResponse] = call(
        channel, "stream_stream", f"{KSERVE}/ModelStreamInfer", kserve.ModelStreamInferResponse
    )(iter(asked), **{"timeout": 60, **words})
    return made


def status_of(simulator: Simulator) -> tuple[int, str]:
    row = simulator.truth(last=1)["requests"][0]
    return row["status"], row["outcome"]


def test_an_inference_is_one_message_and_a_row_of_the_truth(channel: Any, simulator: Simulator) -> None:
    simulator.reset()
    response = infer(channel, request())
    assert (response.model_name, response.id, len(text_of(response).split())) == ("m", "r1", 3)
    (row,) = simulator.truth()["requests"]
    assert (row["path"], row["completion_tokens"], row["outcome"]) == (f"{KSERVE}/ModelInfer", 3, "completed")


def test_a_stream_has_a_message_for_each_token_and_each_request(channel: Any, simulator: Simulator) -> None:
    simulator.reset()
    messages = [each.infer_response for each in streamed(channel, request(), request(count=2))]
    assert [each.id for each in messages] == ["r1"] * 5
    assert all(text_of(each).strip() for each in messages)
    assert [row["chunks"] for row in simulator.truth()["requests"]] == [3, 2]


def test_an_unknown_model_is_a_status_and_in_a_stream_a_message(channel: Any) -> None:
    with pytest.raises(grpc.RpcError) as caught:
        infer(channel, request("nosuch"))
    assert (caught.value.code(), "nosuch" in caught.value.details()) == (grpc.StatusCode.NOT_FOUND, True)
    assert ["nosuch" in each.error_message for each in streamed(channel, request("nosuch"))] == [True]


def test_a_decoupled_model_answers_in_streams_alone(channel: Any) -> None:
    with pytest.raises(grpc.RpcError) as caught:
        infer(channel, request("m-decoupled"))
    assert caught.value.code() is grpc.StatusCode.UNIMPLEMENTED
    assert caught.value.details() == "ModelInfer RPC doesn't support models with decoupled transaction policy"
    assert len([*streamed(channel, request("m-decoupled"))]) == 3


@pytest.mark.parametrize(("fault", "code", "outcome"), [
    ("fail=503", "UNAVAILABLE", "failed"),
    ("fail=429", "RESOURCE_EXHAUSTED", "refused"),
    ("fail=502,body=html", "UNAVAILABLE", "failed"),
    ("cut=1", "UNAVAILABLE", "cut"),
    ("reset=1", "INTERNAL", "reset"),
    ("body=html", "UNKNOWN", "error said in-band"),
    ("compressed=identity", "INTERNAL", "completed"),
])  # fmt: skip
def test_a_fault_is_this_status(fault: str, code: str, outcome: str, simulator: Simulator) -> None:
    address = simulator.url.removeprefix("http://")
    with grpc.insecure_channel(address) as channel, pytest.raises(grpc.RpcError) as caught:
        [*streamed(channel, request(), metadata=[("x-simulate", fault)])]
    assert caught.value.code().name == code, caught.value
    assert status_of(simulator)[1] == outcome


def test_a_single_answer_may_be_marked_as_compressed(channel: Any) -> None:
    with pytest.raises(grpc.RpcError) as caught:
        infer(channel, request(), metadata=[("x-simulate", "compressed=identity")])
    assert caught.value.code().name == "INTERNAL" and "content-type" not in caught.value.details()


def test_a_call_may_end_without_status(channel: Any) -> None:
    with pytest.raises(grpc.RpcError) as caught:
        [*streamed(channel, request(), metadata=[("x-simulate", "no_done")])]
    assert caught.value.code() in (grpc.StatusCode.UNKNOWN, grpc.StatusCode.INTERNAL)


def test_gzip_is_read_by_those_who_can(channel: Any) -> None:
    assert len([*streamed(channel, request(), metadata=[("x-simulate", "compressed=gzip")])]) == 3


def test_a_deadline_ends_the_call_on_the_server(channel: Any, simulator: Simulator) -> None:
    with pytest.raises(grpc.RpcError) as caught:
        [*streamed(channel, request(), metadata=[("x-simulate", "silent")], timeout=0.05)]
    assert caught.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED
    while status_of(simulator)[1] not in ("deadline exceeded", "client disconnected"):
        pass


def test_echo_repeats_in_all_four_kinds_of_call(channel: Any, simulator: Simulator) -> None:
    said = echo.Said(text="a b c", mood=echo.LOUD, number=2**40, data=b"\xff")
    once = call(channel, "unary_unary", f"{ECHO}/Once", echo.Said)
    assert once(said, timeout=60) == said
    down = call(channel, "unary_stream", f"{ECHO}/Down", echo.Said)
    assert [each.text for each in down(said, timeout=60)] == ["a", "b", "c"]
    up = call(channel, "stream_unary", f"{ECHO}/Up", echo.Said)
    assert up(iter([echo.Said(text="x"), echo.Said(text="y")]), timeout=60) == echo.Said(text="x y", number=2)
    both = call(channel, "stream_stream", f"{ECHO}/Both", echo.Said)
    simulator.reset()
    heard: queue.Queue[str] = queue.Queue()

    def saying() -> Iterator[echo.Said]:
        for text in ("one", "two", "three"):
            yield echo.Said(text=text)
            assert heard.get(timeout=60) == text  # the answer comes before the next message

    for each in both(saying(), timeout=60):
        heard.put(each.text)
    (row,) = simulator.truth()["requests"]
    assert (row["chunks"], row["outcome"]) == (3, "completed")


@pytest.mark.parametrize(("fault", "code", "outcome"), [
    ("fail=503", "UNAVAILABLE", "failed"), ("cut=1", "UNAVAILABLE", "cut"), ("error=1", "INTERNAL", "error said in-band"),
    ("slow_first=0.01,fail=500", "INTERNAL", "failed"), ("nonsense", "INVALID_ARGUMENT", "refused"),
])  # fmt: skip
def test_a_fault_of_echo_is_this_status(fault: str, code: str, outcome: str, simulator: Simulator) -> None:
    address = simulator.url.removeprefix("http://")
    with grpc.insecure_channel(address) as channel, pytest.raises(grpc.RpcError) as caught:
        [*call(channel, "unary_stream", f"{ECHO}/Down", echo.Said)(
            echo.Said(text="a b"), timeout=60, metadata=[("x-simulate", fault)]
        )]  # fmt: skip
    assert caught.value.code().name == code, caught.value
    assert status_of(simulator)[1] == outcome


def test_health_and_metadata_are_told(channel: Any) -> None:
    check = call(channel, "unary_unary", "/grpc.health.v1.Health/Check", health.HealthCheckResponse)
    assert check(health.HealthCheckRequest(), timeout=60).status == health.HealthCheckResponse.SERVING
    ready = call(channel, "unary_unary", f"{KSERVE}/ModelReady", kserve.ModelReadyResponse)
    assert ready(kserve.ModelReadyRequest(name="m"), timeout=60).ready
    metadata = call(channel, "unary_unary", f"{KSERVE}/ModelMetadata", kserve.ModelMetadataResponse)
    told = metadata(kserve.ModelMetadataRequest(name="m"), timeout=60)
    assert [each.name for each in told.inputs][:2] == ["text_input", "max_tokens"]
    with pytest.raises(grpc.RpcError) as caught:
        metadata(kserve.ModelMetadataRequest(name="nosuch"), timeout=60)
    assert caught.value.code() is grpc.StatusCode.NOT_FOUND
    with pytest.raises(grpc.RpcError) as caught:
        call(channel, "unary_unary", f"{KSERVE}/Nothing", echo.Said)(echo.Said(), timeout=60)
    assert caught.value.code() is grpc.StatusCode.UNIMPLEMENTED


@pytest.mark.parametrize("version", ["v1", "v1alpha"])
def test_both_versions_of_reflection_know_the_services(channel: Any, version: str) -> None:
    path = f"/grpc.reflection.{version}.ServerReflection/ServerReflectionInfo"
    ask = call(channel, "stream_stream", path, reflection.ServerReflectionResponse)
    asked = [
        reflection.ServerReflectionRequest(list_services=""),
        reflection.ServerReflectionRequest(file_containing_symbol="aiperf.simulate.Echo"),
        reflection.ServerReflectionRequest(file_containing_symbol="no.Such"),
    ]
    services, file, unknown = ask(iter(asked), timeout=60)
    assert "inference.GRPCInferenceService" in [each.name for each in services.list_services_response.service]
    assert file.file_descriptor_response.file_descriptor_proto[0] == echo.DESCRIPTOR.serialized_pb
    assert unknown.error_response.error_code == 5


def test_http_is_served_beside_calls_on_http2(simulator: Simulator) -> None:
    httpx = pytest.importorskip("httpx")
    pytest.importorskip("h2")
    with httpx.Client(http1=False, http2=True, trust_env=False) as client:
        answer = client.post(f"{simulator.url}/v1/completions", json={"model": "m", "prompt": "Hi", "max_tokens": 3})
        assert (answer.http_version, answer.json()["usage"]["completion_tokens"]) == ("HTTP/2", 3)
        stream = client.post(
            f"{simulator.url}/v1/completions", json={"model": "m", "prompt": "Hi", "max_tokens": 3, "stream": True}
        )
        assert stream.text.rstrip().endswith("data: [DONE]")
        assert client.get(f"{simulator.url}/v1/nothing").status_code == 404


def test_a_client_that_breaks_the_protocol_is_told_and_left(simulator: Simulator) -> None:
    host, port = simulator.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=60) as client:
        client.sendall(frames.PREFACE + frames.settings_frame({}) + frames.frame(frames.DATA, 0, 7, b"x"))
        said = b"".join(iter(lambda: client.recv(1 << 16), b""))
    assert said.endswith(b"DATA on stream 7, which was never opened")
