"""Message classes, their generation, and the outermost fields of messages."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest
from aiperf_rpc.protos import health, kserve
from aiperf_rpc.wire import WireError, field_numbers

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
