"""Calls of any method: what goes out, and what is made of what comes back."""

from __future__ import annotations

from base64 import b64decode
from pathlib import Path
from typing import Any

import pytest
from aiperf import BadResponse, ConfigError, Delta, HttpRequest, Turn
from aiperf.sdk.asking import ASK_S, AskError, Reply
from aiperf.sdk.endpoint import encoded
from aiperf.sdk.model import HIDDEN
from aiperf_endpoint_dynamic_grpc import DynamicGrpc
from aiperf_endpoint_dynamic_grpc.contract import DESCRIPTORS, DynamicGrpcContract
from aiperf_endpoint_dynamic_grpc.options import DynamicGrpcOptions
from aiperf_rpc.methods import read_set
from aiperf_rpc.protos import echo, reflection

ECHO = "aiperf.simulate.Echo"


def endpoint(method: str = "Down", descriptors: Path | None = DESCRIPTORS) -> DynamicGrpc:
    return DynamicGrpc(DynamicGrpcOptions(grpc_method=f"{ECHO}/{method}", grpc_descriptors=descriptors))


def turn(*messages: dict[str, Any], **row: Any) -> Turn:
    row = {"messages": [*messages], "place": "line 3", **row}
    return Turn(extra=row, row_extra=row)


class Reflecting:
    """A server with reflection of the *version*, "" for none, and these files."""

    url, scheme = "grpc://server:1", "grpc"
    models: tuple[str, ...] = ("m",)

    def __init__(self, version: str, files: dict[str, bytes] | None = None) -> None:
        self._version, self._files = version, files or {"echo.proto": DESCRIPTORS.read_bytes()}
        self.paths: list[str] = []

    def __call__(self, request: HttpRequest, *, timeout_s: float = ASK_S) -> Reply:
        self.paths.append(request.path)
        if not self._version or f".{self._version}." not in request.path:
            raise AskError("unknown service", code=501)
        asked = reflection.ServerReflectionRequest.FromString(request.body)
        told = reflection.ServerReflectionResponse()
        if asked.WhichOneof("message_request") == "list_services":
            told.list_services_response.service.add(name=ECHO)
        elif asked.file_containing_symbol == ECHO or asked.file_by_filename in self._files:
            data = self._files[asked.file_by_filename or "echo.proto"]
            told.file_descriptor_response.file_descriptor_proto.append(read_set(data)[0].SerializeToString())
        else:
            told.error_response.error_code = 5
        return Reply(200, messages=(told.SerializeToString(),))


def test_a_message_is_what_its_json_says() -> None:
    said = {"text": "a", "times": 2, "mood": "LOUD", "data": "/w==", "number": "1099511627776", "marks": [{"name": "x"}]}
    request = encoded(endpoint(), turn(said, metadata={"Tenant": "blue", "sum-BIN": "AA=="}))
    assert (request.path, request.content_type) == (f"/{ECHO}/Down", "application/grpc")
    assert request.headers == {"tenant": "blue", "sum-bin": "AA=="}
    assert echo.Said.FromString(request.body) == echo.Said(
        text="a", times=2, mood=echo.LOUD, data=b"\xff", number=2**40, marks=[echo.Mark(name="x")]
    )


def test_several_messages_are_parts_with_their_waits() -> None:
    request = encoded(endpoint("Both"), turn({"text": "a"}, {"text": "b"}, waits_ms=[0, 250]))
    assert [(echo.Said.FromString(part.data).text, part.after_s) for part in request.parts] == [("a", 0.0), ("b", 0.25)]
    assert not encoded(endpoint("Both"), turn({"text": "a"})).parts
    assert [part.after_s for part in encoded(endpoint("Up"), turn({"text": "a"}, waits_ms=[5])).parts] == [0.005]


def test_serialized_messages_are_sent_as_they_are() -> None:
    row = {"raw_messages": ["CgFh", "CgFi"], "place": "line 1"}
    request = encoded(endpoint("Both"), Turn(extra=row, row_extra=row))
    assert [part.data for part in request.parts] == [b"\n\x01a", b"\n\x01b"]
    row["raw_messages"] = ["Cv8="]
    with pytest.raises(ConfigError, match=r"line 1: no aiperf\.simulate\.Said"):
        endpoint("Both").encode(Turn(extra=row, row_extra=row))


def test_extra_inputs_are_fields_of_each_message() -> None:
    row = turn({"text": "a"})
    both = Turn(extra={**row.extra, "times": 3}, row_extra=row.row_extra, run_extra={"times": 3, "text": "x"})
    assert echo.Said.FromString(encoded(endpoint(), both).body) == echo.Said(text="a", times=3)


@pytest.mark.parametrize(("method", "messages", "said"), [
    ("Down", [{"txet": "a"}], 'line 3: no aiperf.simulate.Said: Message type "aiperf.simulate.Said" has no field named "txet"'),
    ("Down", [{"times": "many"}], "line 3: no aiperf.simulate.Said: "),
    ("Down", [{"mood": "SAD"}], "line 3: no aiperf.simulate.Said: "),
    ("Down", [{}, {}], "line 3: the row has 2 messages, and aiperf.simulate.Echo/Down takes one"),
])  # fmt: skip
def test_a_row_that_is_no_call_of_the_method_is_named(method: str, messages: list[dict[str, Any]], said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        endpoint(method).encode(turn(*messages))
    assert caught.value.message.startswith(said)


def test_a_run_without_messages_or_without_a_method_is_refused() -> None:
    with pytest.raises(ConfigError, match="dynamic_grpc sends the messages of a file"):
        endpoint().encode(Turn(("Hi",)))
    with pytest.raises(ConfigError, match="dynamic_grpc calls a method, and none is given"):
        DynamicGrpc().prepare(Reflecting("v1"))


@pytest.mark.parametrize(("version", "calls"), [("v1", 1), ("v1alpha", 2)])
def test_a_server_describes_its_service(version: str, calls: int) -> None:
    server, asking = Reflecting(version), endpoint(descriptors=None)
    asking.prepared = asking.prepare(server)
    assert len(server.paths) == calls
    assert asking.prepared is not None
    assert [file.name for file in read_set(b64decode(asking.prepared["descriptors"]))] == ["echo.proto"]
    assert encoded(asking, turn({"text": "a"})) == encoded(endpoint(), turn({"text": "a"}))


def test_a_server_without_reflection_needs_descriptors() -> None:
    with pytest.raises(ConfigError, match="its reflection is off, in v1 and in v1alpha") as caught:
        endpoint(descriptors=None).prepare(Reflecting(""))
    assert "--grpc-descriptors FILE" in caught.value.hints[0]
    with pytest.raises(ConfigError, match="the server isn't asked"):
        endpoint(descriptors=None).method()


@pytest.mark.parametrize(("name", "said"), [
    ("aiperf.simulate.Ecko/Once", "there is no service 'aiperf.simulate.Ecko', but aiperf.simulate.Echo"),
    (f"{ECHO}/once", f"the service '{ECHO}' has no method 'once', but Once, Down"),
])  # fmt: skip
@pytest.mark.parametrize("descriptors", [None, DESCRIPTORS])
def test_an_unknown_method_is_refused_with_near_misses(name: str, said: str, descriptors: Path | None) -> None:
    asking = DynamicGrpc(DynamicGrpcOptions(grpc_method=name, grpc_descriptors=descriptors))
    with pytest.raises(ConfigError) as caught:
        asking.prepare(Reflecting("v1"))
    assert caught.value.message == f"--grpc-method {name}: {said}"


@pytest.mark.parametrize(("data", "said"), [
    (None, "can't be read: No such file"), (b"\xff", "it is no serialized FileDescriptorSet"), (b"", "it has no descriptors"),
])  # fmt: skip
def test_a_file_without_descriptors_is_refused(data: bytes | None, said: str, tmp_path: Path) -> None:
    path = tmp_path / "set"
    if data is not None:
        path.write_bytes(data)
    with pytest.raises(ConfigError, match=said):
        endpoint(descriptors=path).prepare(Reflecting("v1"))


@pytest.mark.parametrize(("reply", "reason"), [
    (Reply(200, messages=(b"\x08\x01",)), None), (AskError("no such service", code=501), None),
    (Reply(200, messages=(b"\x08\x02",)), "its health check says NOT_SERVING"),
    (Reply(200, messages=(b"\x08",)), "its health check gives another message"),
])  # fmt: skip
def test_a_server_is_ready_as_its_health_check_says(reply: Reply | AskError, reason: str | None) -> None:
    class Checked(Reflecting):
        def __call__(self, request: HttpRequest, *, timeout_s: float = ASK_S) -> Reply:
            if isinstance(reply, AskError):
                raise reply
            return reply

    assert endpoint().unready(Checked("v1")) == reason


def test_each_answer_is_content_and_a_call_without_any_is_good() -> None:
    reader = endpoint().reader()
    assert reader.feed([echo.Said(text="a").SerializeToString(), b""], [None] * 2) == [
        Delta('{"text": "a"}\n', items=1), Delta("{}\n", items=1)
    ]  # fmt: skip
    assert reader.close() is None
    assert endpoint().reader().close() == Delta(reasoning=HIDDEN)
    long = echo.Said(text="a" * 70_000).SerializeToString()
    assert endpoint().reader().feed([long], [None]) == [Delta(items=1)]


def test_answers_of_another_type_are_bad() -> None:
    with pytest.raises(BadResponse, match=r"dynamic_grpc: no aiperf\.simulate\.Said"):
        endpoint().reader().feed([b"\x0a\xff"], [None])


def test_the_descriptors_of_the_contract_are_those_of_the_service() -> None:
    assert read_set(DESCRIPTORS.read_bytes())[0].SerializeToString() == echo.DESCRIPTOR.serialized_pb


class TestDynamicGrpcKeepsTheContract(DynamicGrpcContract):
    pass
