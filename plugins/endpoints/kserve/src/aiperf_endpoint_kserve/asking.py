"""What a server says of its models and of itself, over gRPC or HTTP."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

import msgspec
from aiperf import ConfigError, HttpRequest
from aiperf.sdk.asking import Ask, AskError
from aiperf.sdk.model import names
from aiperf_rpc.calls import CONTENT_TYPE
from msgspec import Struct

from aiperf_endpoint_kserve.tensors import Listed

SERVICE = "/inference.GRPCInferenceService"
NOT_FOUND = 404
"""The status of a model that isn't there."""
TEXT = "text_input"


class _Described(Struct):
    name: str
    datatype: str = "BYTES"
    shape: list[int] = []


class _Metadata(Struct):
    inputs: list[_Described] = []
    outputs: list[_Described] = []


_read = msgspec.json.Decoder(_Metadata).decode


def inputs_of(ask: Ask, model: str, output: str | None) -> dict[str, Listed] | None:
    """The inputs of a model; None where the server doesn't tell.

    *output*: name of the output that has the answer, None is not given.

    Raises:
        ConfigError: There is no such model, or it takes no text, or hasn't that output.
        AskError: The server gives no answer.
    """
    metadata = _over_http(ask, model) if ask.scheme.startswith("http") else _over_grpc(ask, model)
    if metadata is None or not metadata.inputs:
        return None
    inputs = {each.name: Listed(each.datatype, tuple(each.shape)) for each in metadata.inputs}
    if TEXT not in inputs:
        raise ConfigError(
            f"the model {model!r} has no input {TEXT!r}, but {names(list(inputs))}",
            "kserve sends texts to models of TensorRT-LLM and vLLM behind Triton (--backend), and to others with that input",
        )
    outputs = [each.name for each in metadata.outputs]
    if output is not None and outputs and output not in outputs:
        sentence = f"the model {model!r} has no output {output!r}, but {names(outputs)}"
        raise ConfigError(sentence, "name one of them with --output-tensor")
    return inputs


def _over_http(ask: Ask, model: str) -> _Metadata | None:
    """
    Raises:
        ConfigError: The server has no such model.
    """
    reply = ask(HttpRequest(f"/v2/models/{quote(model, safe='')}", b"", method="GET"))
    try:
        said = msgspec.json.decode(reply.body)["error"] if reply.status == NOT_FOUND else ""
        if isinstance(said, str) and "model" in said.lower() and model in said.replace("'", " ").split():
            raise _no_model(ask, model, said)
        return _read(reply.body) if 200 <= reply.status < 300 else None
    except (msgspec.DecodeError, LookupError, TypeError):
        return None


def _over_grpc(ask: Ask, model: str) -> _Metadata | None:
    """
    Raises:
        AskError: The server gives no answer.
        ConfigError: The server has no such model.
    """
    from aiperf_rpc.pool import DecodeError
    from aiperf_rpc.protos.kserve import ModelMetadataRequest, ModelMetadataResponse

    try:
        message = call(ask, "ModelMetadata", ModelMetadataRequest(name=model).SerializeToString())
        metadata = None if message is None else ModelMetadataResponse.FromString(message)
    except AskError as error:
        if error.code == NOT_FOUND:
            raise _no_model(ask, model, error.message) from error
        if error.code is None:
            raise
        return None
    except DecodeError:
        return None
    return None if metadata is None else _Metadata(_described(metadata.inputs), _described(metadata.outputs))


def _described(tensors: Sequence[Any]) -> list[_Described]:
    return [_Described(each.name, each.datatype, [*each.shape]) for each in tensors]


def _no_model(ask: Ask, model: str, said: str) -> ConfigError:
    return ConfigError(f"the server at {ask.url} has no model {model!r}: name one of its own with -m; it says: {said}")


def call(ask: Ask, method: str, message: bytes) -> bytes | None:
    """The answer to a unary call of the service; None where it has none.

    Raises:
        AskError: The server gives no answer, or a bad status.
    """
    reply = ask(HttpRequest(f"{SERVICE}/{method}", message, content_type=CONTENT_TYPE))
    return reply.messages[0] if len(reply.messages) == 1 else None


def unready(ask: Ask) -> str | None:
    """Why the server, or one of the run's models, isn't ready; None where all are.

    Raises:
        AskError: As :func:`call`.
    """
    asked: Mapping[str, str | None] = {"the server": None, **{f"the model {model!r}": model for model in ask.models}}
    for what, model in asked.items():
        if not (_ready_over_http if ask.scheme.startswith("http") else _ready_over_grpc)(ask, model):
            return f"{what} says that it isn't ready"
    return None


def _ready_over_http(ask: Ask, model: str | None) -> bool:
    path = "/v2/health/ready" if model is None else f"/v2/models/{quote(model, safe='')}/ready"
    return 200 <= ask(HttpRequest(path, b"", method="GET")).status < 300


def _ready_over_grpc(ask: Ask, model: str | None) -> bool:
    from aiperf_rpc.pool import DecodeError
    from aiperf_rpc.protos.kserve import ModelReadyRequest, ModelReadyResponse

    # Both answers have one field with the same number.
    asked = b"" if model is None else ModelReadyRequest(name=model).SerializeToString()
    message = call(ask, "ServerReady" if model is None else "ModelReady", asked)
    try:
        return message is not None and bool(ModelReadyResponse.FromString(message).ready)
    except DecodeError:
        return False
