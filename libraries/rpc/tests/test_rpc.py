"""Message classes, their generation, and the outermost fields of messages."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest
from aiperf_rpc.methods import MethodError, method_of
from aiperf_rpc.protos import echo, health, kserve
from aiperf_rpc.wire import WireError, field_numbers
from google.protobuf.descriptor_pb2 import FileDescriptorProto

HERE = Path(__file__).resolve().parent.parent


def test_the_generated_modules_are_those_of_the_protos(tmp_path: Path) -> None:
    pytest.importorskip("grpc_tools")
    written = runpy.run_path(str(HERE / "tests" / "generate.py"))["generate"](tmp_path)
    here = HERE / "src" / "aiperf_rpc" / "protos"
    assert {path.name: path.read_text() for path in written} == {
        path.name: path.read_text() for path in (*here.glob("*.py"), *here.glob("*.pyi")) if path.stem != "__init__"
    }, "run python libraries/rpc/tests/generate.py"


def test_messages_live_beside_those_of_other_packages() -> None:
    from google.protobuf import descriptor_pool

    request = kserve.ModelInferRequest(model_name="m", raw_input_contents=[b"a"])
    assert kserve.ModelInferRequest.FromString(request.SerializeToString()) == request
    with pytest.raises(KeyError):
        descriptor_pool.Default().FindMessageTypeByName("inference.ModelInferRequest")


def test_the_outermost_fields_are_told() -> None:
    response = kserve.ModelInferResponse(model_name="m", raw_output_contents=[b"x" * 300])
    response.outputs.add(name="a", shape=[1])
    assert [*field_numbers(response.SerializeToString())] == [1, 5, 6]
    streamed = kserve.ModelStreamInferResponse(infer_response=response)
    assert [*field_numbers(streamed.SerializeToString())] == [2]
    status = health.HealthCheckResponse(status=health.HealthCheckResponse.SERVING)
    assert [*field_numbers(status.SerializeToString())] == [1]
    assert [*field_numbers(b"\x09" + bytes(8) + b"\x15" + bytes(4))] == [1, 2]


@pytest.mark.parametrize("message", [b"\x0a\x05abc", b"\x0a", b"\xff" * 11, b"\x02\x01a", b"\x0b", b"\x09\x00", b"\x0a\xff"])
def test_bytes_that_are_no_message_are_told(message: bytes) -> None:
    with pytest.raises(WireError):
        [*field_numbers(message)]


def test_a_method_knows_its_kind_and_its_messages() -> None:
    files = [FileDescriptorProto.FromString(echo.DESCRIPTOR.serialized_pb)]
    kinds = {name: method_of(files, f"aiperf.simulate.Echo/{name}") for name in ("Once", "Down", "Up", "Both")}
    assert {name: (each.several_in, each.several_out) for name, each in kinds.items()} == {
        "Once": (False, False), "Down": (False, True), "Up": (True, False), "Both": (True, True)
    }  # fmt: skip
    once = kinds["Once"]
    assert (once.path, once.asked) == ("/aiperf.simulate.Echo/Once", "aiperf.simulate.Said")
    assert once.text_of(once.encoded({"text": "a", "mood": "LOUD"})) == '{"text": "a", "mood": "LOUD"}'


def test_files_may_stand_in_any_order_and_leave_out_usual_ones() -> None:
    inner = FileDescriptorProto(name="inner.proto", package="a", syntax="proto3")
    inner.dependency.append("google/protobuf/timestamp.proto")
    field = inner.message_type.add(name="Inner").field.add(name="at", number=1, label=1, type=11)
    field.type_name = ".google.protobuf.Timestamp"
    outer = FileDescriptorProto(name="outer.proto", package="a", syntax="proto3", dependency=["inner.proto"])
    outer.service.add(name="S").method.add(name="M", input_type=".a.Inner", output_type=".a.Inner")
    method = method_of([outer, inner], "a.S/M")
    assert method.text_of(method.encoded({"at": "2020-01-01T00:00:00Z"})) == '{"at": "2020-01-01T00:00:00Z"}'
    with pytest.raises(MethodError, match=r"'outer.proto' imports 'inner.proto', which is missing"):
        method_of([outer], "a.S/M")
    inner.message_type[0].name = "Other"
    with pytest.raises(MethodError, match="can't be used"):
        method_of([outer, inner], "a.S/M")
    with pytest.raises(MethodError, match=r"there is no service 'b.S', but a.S"):
        method_of([FileDescriptorProto.FromString(outer.SerializeToString().replace(b"a.Inner", b"a.Other")), inner], "b.S/M")
