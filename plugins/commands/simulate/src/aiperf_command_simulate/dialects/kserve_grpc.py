"""KServe's inference protocol, version 2, over gRPC, as Triton speaks it; with health checks and reflection beside it."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any, ClassVar

from aiperf_http2.grpc import framed
from aiperf_rpc.pool import DecodeError
from aiperf_rpc.protos import kserve

from aiperf_command_simulate.dialect import Ask, AskError, Dialect, Opened, Page, Piece, Reply, Usage, Writer
from aiperf_command_simulate.dialects.kserve import DECOUPLED, DECOUPLED_REFUSAL, INPUTS, OUTPUT, asked_of
from aiperf_command_simulate.grpc_frames import GrpcFrames
from aiperf_command_simulate.http1 import Request

if TYPE_CHECKING:
    from aiperf_command_simulate.server import Server

SERVICE = "/inference.GRPCInferenceService"
_CONTENTS = {"BYTES": "bytes_contents", "INT32": "int_contents", "BOOL": "bool_contents"}
_FORMS = {"INT32": "<i", "BOOL": "?"}


def _value(tensor: kserve.ModelInferRequest.InferInputTensor, contents: bytes | None) -> Any:
    """The first value of a tensor.

    Raises:
        AskError: It has none.
    """
    datatype = INPUTS.get(tensor.name, tensor.datatype)
    if tensor.datatype != datatype:
        raise AskError(f"the input {tensor.name!r} is of {tensor.datatype}, and must be of {datatype}")
    if datatype not in _CONTENTS:
        return None
    if contents is None:
        values = list(getattr(tensor.contents, _CONTENTS[datatype]))
        if not values:
            raise AskError(f"the input {tensor.name!r} has no contents")
        return values[0].decode("utf-8", "replace") if datatype == "BYTES" else values[0]
    try:
        if datatype == "BYTES":
            (size,) = struct.unpack_from("<I", contents)
            if len(contents) != size + 4:
                raise AskError(f"the input {tensor.name!r} has {len(contents)} bytes, and its text {size}")
            return contents[4:].decode("utf-8", "replace")
        return struct.unpack(_FORMS[datatype], contents)[0]
    except struct.error as error:
        raise AskError(f"the contents of the input {tensor.name!r} are no {datatype}") from error


class _CallWriter(Writer):
    def _response(self, text: str, *, final: bool) -> kserve.ModelInferResponse:
        opened, data = self.opened, text.encode()
        response = kserve.ModelInferResponse(
            model_name=opened.model, model_version="1", id=opened.ask.own,
            raw_output_contents=[struct.pack("<I", len(data)) + data],
        )  # fmt: skip
        response.parameters["triton_final_response"].bool_param = final
        response.outputs.add(name=OUTPUT, datatype="BYTES", shape=[1])
        return response

    def event(self, piece: Piece, usage: Usage | None) -> bytes:
        streamed = kserve.ModelStreamInferResponse(infer_response=self._response(piece.text, final=False))
        return self.frame(streamed.SerializeToString())

    def whole(self, pieces: list[Piece], usage: Usage | None) -> bytes:
        response = self._response("".join(piece.text for piece in pieces), final=True)
        return self.frame(response.SerializeToString())


class InferCall(Dialect):
    paths: ClassVar[tuple[str, ...]] = (f"{SERVICE}/ModelInfer",)
    done = None
    framing = GrpcFrames
    in_band = False
    stream: ClassVar[bool] = False

    def read(self, request: Request) -> Ask:
        try:
            asked = kserve.ModelInferRequest.FromString(request.body)
        except DecodeError as error:
            raise AskError("the message is no ModelInferRequest") from error
        if len(request.messages) != 1:
            raise AskError(f"the call has {len(request.messages)} messages, and takes one")
        if asked.model_name.endswith(DECOUPLED) and not self.stream:
            raise AskError(f"ModelInfer RPC {DECOUPLED_REFUSAL}", status=501)
        raw: list[bytes | None] = [*asked.raw_input_contents] or [None] * len(asked.inputs)
        if len(raw) != len(asked.inputs):
            raise AskError(f"the request has {len(asked.inputs)} inputs, and raw contents of {len(raw)}")
        values = {each.name: _value(each, contents) for each, contents in zip(asked.inputs, raw, strict=True)}
        return asked_of(asked.model_name, values, stream=self.stream, own=asked.id)

    def writer(self, opened: Opened) -> Writer:
        return _CallWriter(opened)

    def refusal(self, message: str, kind: str, status: int) -> bytes:
        return message.encode()

    def error(self, message: str, kind: str, status: int) -> bytes:
        return message.encode()


class StreamInferCall(InferCall):
    """A stream of requests; each is answered by itself, in turn."""

    paths: ClassVar[tuple[str, ...]] = (f"{SERVICE}/ModelStreamInfer",)
    each = True
    stream = True
    said_in_stream = frozenset(("NotFoundError", "BadRequestError"))

    def error(self, message: str, kind: str, status: int) -> bytes:
        return kserve.ModelStreamInferResponse(error_message=message).SerializeToString()


class _CallPage(Page):
    method = "POST"

    def message(self, data: bytes, server: Server) -> bytes:
        raise NotImplementedError

    def answer(self, request: Request, server: Server) -> Reply:
        try:
            return Reply(body=framed(self.message(request.body, server)))
        except DecodeError:
            return Reply(400, b"the message is of another type")
        except LookupError as error:
            return Reply(404, str(error.args[0]).encode())


class _ServerLive(_CallPage):
    paths: ClassVar[tuple[str, ...]] = (f"{SERVICE}/ServerLive",)

    def message(self, data: bytes, server: Server) -> bytes:
        return kserve.ServerLiveResponse(live=True).SerializeToString()


class _ServerReady(_CallPage):
    paths: ClassVar[tuple[str, ...]] = (f"{SERVICE}/ServerReady",)

    def message(self, data: bytes, server: Server) -> bytes:
        return kserve.ServerReadyResponse(ready=True).SerializeToString()


class _ServerMetadata(_CallPage):
    paths: ClassVar[tuple[str, ...]] = (f"{SERVICE}/ServerMetadata",)

    def message(self, data: bytes, server: Server) -> bytes:
        return kserve.ServerMetadataResponse(name="aiperf simulate", version="1").SerializeToString()


def _known(model: str, server: Server) -> None:
    """
    Raises:
        LookupError: The server has no such model.
    """
    if server.scenario.models and model not in server.scenario.models:
        raise LookupError(f"Request for unknown model: '{model}' is not found")


class _CallModelReady(_CallPage):
    paths: ClassVar[tuple[str, ...]] = (f"{SERVICE}/ModelReady",)

    def message(self, data: bytes, server: Server) -> bytes:
        _known(kserve.ModelReadyRequest.FromString(data).name, server)
        return kserve.ModelReadyResponse(ready=True).SerializeToString()


class _CallModelMetadata(_CallPage):
    paths: ClassVar[tuple[str, ...]] = (f"{SERVICE}/ModelMetadata",)

    def message(self, data: bytes, server: Server) -> bytes:
        name = kserve.ModelMetadataRequest.FromString(data).name
        _known(name, server)
        told = kserve.ModelMetadataResponse(name=name, versions=["1"], platform="simulator")
        for each, datatype in INPUTS.items():
            told.inputs.add(name=each, datatype=datatype, shape=[1])
        told.outputs.add(name=OUTPUT, datatype="BYTES", shape=[1])
        return told.SerializeToString()


ROUTES = (
    InferCall(), StreamInferCall(), _ServerLive(), _ServerReady(), _ServerMetadata(), _CallModelReady(), _CallModelMetadata(),
)  # fmt: skip
