"""The protocol over HTTP: requests and answers in JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
from aiperf import BadResponse
from aiperf.sdk.endpoint import decoded, in_band_error
from msgspec import Struct

from aiperf_endpoint_kserve.tensors import Tensor

INFER, INFER_STREAM = "/v2/models/{model}/infer", "/v2/models/{model}/infer_stream"


class Output(Struct, gc=False):
    """A tensor of an answer; its data may be nested as its shape is."""

    name: str = ""
    datatype: str = ""
    data: Any = None


class Answer(Struct, gc=False):
    outputs: list[Output] | None = None


_read = msgspec.json.Decoder(Answer).decode


def body(tensors: Sequence[Tensor]) -> bytes:
    """The body of an inference."""
    inputs = [
        {"name": each.name, "shape": each.shape, "datatype": each.datatype, "data": each.values} for each in tensors
    ]  # fmt: skip
    return msgspec.json.encode({"inputs": inputs})


def text_of(event: bytes, wanted: str | None) -> str | None:
    """The text of an event, or of a whole answer; None where it has no outputs.

    Raises:
        BadResponse: It is no such answer, an error, or lacks the output *wanted*.
    """
    outputs = decoded("kserve", _read, event).outputs
    if not outputs:
        failure = in_band_error(event)
        if failure is not None:
            raise failure
        return None
    chosen = chosen_output([(each.name, each.datatype) for each in outputs], wanted, event)
    return "".join(_texts(outputs[chosen].data))


def chosen_output(outputs: Sequence[tuple[str, str]], wanted: str | None, event: bytes) -> int:
    """Which of the outputs, by name and datatype, has the text: *wanted*, else ``text_output``, else the first of BYTES.

    Raises:
        BadResponse: None is.
    """
    names = [name for name, _ in outputs]
    if wanted is not None:
        if wanted in names:
            return names.index(wanted)
        raise BadResponse(f"kserve: the answer has no output {wanted!r}, but {', '.join(names)}", raw=event)
    if "text_output" in names:
        return names.index("text_output")
    for place, (_, datatype) in enumerate(outputs):
        if datatype == "BYTES":
            return place
    told = ", ".join(f"{name} of {datatype}" for name, datatype in outputs)
    raise BadResponse(f"kserve: no output of the answer is a text: {told}", raw=event)


def _texts(data: Any) -> Iterator[str]:
    if isinstance(data, list):
        for each in data:
            yield from _texts(each)
    elif data is not None:
        yield data if isinstance(data, str) else msgspec.json.encode(data).decode()


