"""KServe's inference protocol, version 2, in JSON: ``infer``, MLServer's ``infer_stream``, metadata and health.

The models are those of both backends behind Triton.  One whose name ends in ``-decoupled`` answers in streams alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import msgspec
from msgspec import Struct

from aiperf_command_simulate.dialect import (
    Ask,
    AskError,
    Dialect,
    Opened,
    Page,
    Piece,
    Reply,
    Usage,
    Writer,
    check_lengths,
    decoded,
    to_json,
)
from aiperf_command_simulate.http1 import Request

if TYPE_CHECKING:
    from aiperf_command_simulate.server import Server

INPUTS = {
    "text_input": "BYTES", "max_tokens": "INT32", "min_length": "INT32", "exclude_input_in_output": "BOOL", "stream": "BOOL",
    "sampling_parameters": "BYTES",
}  # fmt: skip
"""Inputs of every model, and their datatypes."""
OUTPUT = "text_output"
DECOUPLED = "-decoupled"
DECOUPLED_REFUSAL = "doesn't support models with decoupled transaction policy"


class _Tensor(Struct):
    name: str
    datatype: str
    shape: list[int]
    data: list[Any] = []


class _Body(Struct):
    inputs: list[_Tensor]
    id: str | None = None


_read = msgspec.json.Decoder(_Body)


def asked_of(model: str, values: dict[str, Any], *, stream: bool, own: Any = None) -> Ask:
    """What the inputs of a request ask for; of each tensor the first value.

    Raises:
        AskError: An input is missing, unknown or out of range.
    """
    unknown = [name for name in values if name not in INPUTS]
    if unknown:
        raise AskError(f"unexpected inference input {unknown[0]!r} for model {model!r}: it has {', '.join(INPUTS)}")
    text = values.get("text_input")
    if not isinstance(text, str):
        raise AskError("the input text_input is missing, or is no text")
    sampling: Any = {}
    if "sampling_parameters" in values:
        try:
            sampling = msgspec.json.decode(str(values["sampling_parameters"]))
        except msgspec.DecodeError as error:
            raise AskError(f"sampling_parameters is no JSON: {error}") from error
        if not isinstance(sampling, dict):
            raise AskError("sampling_parameters is no JSON object")
    most, least = (values.get(name, sampling.get(other)) for name, other in (("max_tokens",) * 2, ("min_length", "min_tokens")))
    try:
        most, least = (None if most is None else int(most)), int(least or 0)
    except (TypeError, ValueError) as error:
        raise AskError("a length is no whole number") from error
    return check_lengths(
        Ask(model=model, prompts=(text.encode(),), stream=stream, max_tokens=most, min_tokens=least, own=own)
    )


class _InferWriter(Writer):
    def _answer(self, text: str) -> bytes:
        output = {"name": OUTPUT, "datatype": "BYTES", "shape": [1], "data": [text]}
        head = {} if self.opened.ask.own is None else {"id": self.opened.ask.own}
        return to_json({**head, "model_name": self.opened.model, "model_version": "1", "outputs": [output]})

    def event(self, piece: Piece, usage: Usage | None) -> bytes:
        return self.frame(self._answer(piece.text))

    def whole(self, pieces: list[Piece], usage: Usage | None) -> bytes:
        return self._answer("".join(piece.text for piece in pieces))


class Infer(Dialect):
    paths: ClassVar[tuple[str, ...]] = ("/v2/models/{model}/infer", "/v2/models/{model}/infer_stream")
    done = None

    def read(self, request: Request) -> Ask:
        body, model = decoded(_read, request, "inference of KServe"), request.variables["model"]
        stream = request.path.rstrip("/").endswith("_stream")
        if model.endswith(DECOUPLED) and not stream:
            raise AskError(f"HTTP end point {DECOUPLED_REFUSAL}", status=501)
        for each in body.inputs:
            if not each.data:
                raise AskError(f"the input {each.name!r} has no data")
        return asked_of(model, {each.name: each.data[0] for each in body.inputs}, stream=stream, own=body.id)

    def writer(self, opened: Opened) -> Writer:
        return _InferWriter(opened)

    def error(self, message: str, kind: str, status: int) -> bytes:
        return to_json({"error": message})


class _Metadata(Page):
    paths: ClassVar[tuple[str, ...]] = ("/v2",)

    def answer(self, request: Request, server: Server) -> Reply:
        return Reply(body=to_json({"name": "aiperf simulate", "version": "1", "extensions": []}))


class _Health(Page):
    paths: ClassVar[tuple[str, ...]] = ("/v2/health/live", "/v2/health/ready")

    def answer(self, request: Request, server: Server) -> Reply:
        return Reply(body=b"")


def _unknown(request: Request, server: Server) -> Reply | None:
    model, served = request.variables["model"], server.scenario.models
    if not served or model in served:
        return None
    return Reply(404, to_json({"error": f"Request for unknown model: '{model}' is not found"}))


class _ModelReady(Page):
    paths: ClassVar[tuple[str, ...]] = ("/v2/models/{model}/ready",)

    def answer(self, request: Request, server: Server) -> Reply:
        return _unknown(request, server) or Reply(body=b"")


class _ModelMetadata(Page):
    paths: ClassVar[tuple[str, ...]] = ("/v2/models/{model}",)

    def answer(self, request: Request, server: Server) -> Reply:
        inputs = [{"name": name, "datatype": datatype, "shape": [1]} for name, datatype in INPUTS.items()]
        outputs = [{"name": OUTPUT, "datatype": "BYTES", "shape": [1]}]
        told = {"name": request.variables["model"], "versions": ["1"], "platform": "simulator"}
        return _unknown(request, server) or Reply(body=to_json({**told, "inputs": inputs, "outputs": outputs}))


ROUTES = (Infer(), _Metadata(), _Health(), _ModelReady(), _ModelMetadata())
