"""The input tensors of a turn, whatever carries them."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec
from aiperf import ConfigError, Turn

USUAL_LENGTH = 256
"""Output tokens asked of TensorRT-LLM where the turn asks for none: its models have no default."""
INTEGERS = {
    "INT8": "b", "INT16": "<h", "INT32": "<i", "INT64": "<q", "UINT8": "B", "UINT16": "<H", "UINT32": "<I", "UINT64": "<Q",
}  # fmt: skip
FLOATS = {"FP16": "<e", "FP32": "<f", "FP64": "<d"}
_INT32 = range(-(2**31), 2**31)


class Tensor(NamedTuple):
    """An input: its values in a row, texts for BYTES."""

    name: str
    datatype: str
    values: tuple[Any, ...]
    shape: tuple[int, ...]


class Listed(NamedTuple):
    """What a model says of one of its inputs: -1 in its shape is any size."""

    datatype: str
    shape: tuple[int, ...]


def tensors_of(turn: Turn, backend: str, *, deterministic: bool) -> dict[str, Any]:
    """The values of a turn by the names of the inputs that *backend* has, extra inputs last.

    Raises:
        ConfigError: *deterministic* without an output length, or several texts.
    """
    if len(turn.texts) > 1:
        raise ConfigError(
            f"kserve sends one text with a request, and one has {len(turn.texts)}", "leave --batch-size-text at 1"
        )
    if deterministic and turn.max_tokens is None:
        raise ConfigError(
            "--output-tokens-mean-deterministic needs an output length, and a request has none",
            "give --osl, or output lengths in the data set",
        )
    return (_vllm if backend == "vllm" else _tensorrtllm)(turn, deterministic)


def _tensorrtllm(turn: Turn, deterministic: bool) -> dict[str, Any]:
    length = USUAL_LENGTH if turn.max_tokens is None else turn.max_tokens
    values: dict[str, Any] = {"text_input": turn.text, "max_tokens": length, "exclude_input_in_output": True}
    if turn.stream:
        values["stream"] = True
    if deterministic:
        values["min_length"] = length
    return {**values, **turn.extra}


def _vllm(turn: Turn, deterministic: bool) -> dict[str, Any]:
    sampling: dict[str, Any] = {}
    if turn.max_tokens is not None:
        sampling["max_tokens"] = str(turn.max_tokens)
        if deterministic:
            sampling["min_tokens"] = str(turn.max_tokens)
    return {
        "text_input": turn.text, "exclude_input_in_output": True, "stream": turn.stream,
        "sampling_parameters": msgspec.json.encode({**sampling, **turn.extra}).decode(),
    }  # fmt: skip


def tensor(name: str, value: Any, inputs: Mapping[str, Listed] | None) -> Tensor:
    """A value as a tensor of one element, a list as one of several.

    *inputs*: those of the model, with their datatypes and numbers of dimensions; None: they are unknown.

    Raises:
        ConfigError: The datatype can't have the value.
    """
    listed = None if inputs is None else inputs[name]
    values = tuple(value) if isinstance(value, list) else (value,)
    datatype = _datatype(values) if listed is None else listed.datatype
    rank = 1 if listed is None else max(1, len(listed.shape))
    converted = tuple(_converted(name, each, datatype) for each in values)
    return Tensor(name, datatype, converted, (*[1] * (rank - 1), len(values)))


def _datatype(values: tuple[Any, ...]) -> str:
    """The datatype that fits all of the values; BYTES has texts, and objects as JSON."""
    if all(isinstance(value, bool) for value in values):
        return "BOOL"
    if all(type(value) is int for value in values):
        return "INT32" if all(value in _INT32 for value in values) else "INT64"
    return "FP32" if all(type(value) in (int, float) for value in values) else "BYTES"


def _converted(name: str, value: Any, datatype: str) -> Any:
    """The value as the datatype has it.

    Raises:
        ConfigError: It can't.
    """
    if datatype not in (*INTEGERS, *FLOATS, "BOOL"):
        return value if isinstance(value, str) else msgspec.json.encode(value).decode()
    if datatype == "BOOL" and (isinstance(value, bool) or value in (0, 1)):
        return bool(value)
    number = type(value) in (int, float)
    if number and datatype in FLOATS:
        return _within(name, float(value), datatype, FLOATS[datatype])
    if number and datatype in INTEGERS and value == int(value):
        return _within(name, int(value), datatype, INTEGERS[datatype])
    raise ConfigError(
        f"the model's input {name!r} is of {datatype}, which can't have {value!r}",
        f"give another value with --extra-inputs {name}:…",
    )


def _within(name: str, value: Any, datatype: str, form: str) -> Any:
    try:
        struct.pack(form, value)
    except (struct.error, OverflowError):
        raise ConfigError(
            f"the model's input {name!r} is of {datatype}, which can't have {value}", "give a number within its range"
        ) from None
    return value


def raw(tensor: Tensor) -> bytes:
    """The values of a tensor as they stand in a request: little-endian, each text behind its length."""
    form = INTEGERS.get(tensor.datatype) or FLOATS.get(tensor.datatype)
    if form is not None:
        return b"".join(struct.pack(form, value) for value in tensor.values)
    if tensor.datatype == "BOOL":
        return bytes(tensor.values)
    texts = [text.encode() for text in tensor.values]
    return b"".join(struct.pack("<I", len(text)) + text for text in texts)
