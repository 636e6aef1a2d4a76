"""What endpoints of vectors share: inputs go out in a batch, a vector for each comes back.

Their ``items`` are vectors; ``dimensions`` is the length of those of an answer, which are of one length.
"""

from __future__ import annotations

from binascii import Error, a2b_base64
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, ClassVar, Literal

import msgspec
from aiperf import BadDataset, BadResponse
from aiperf.sdk.endpoint import Endpoint, Prompt, decoded
from aiperf.sdk.metric import PluginUnit
from aiperf.sdk.model import Delta, HttpRequest, Turn
from msgspec import Struct

from aiperf_dialects.prompts import prompt_of

VECTOR_NUMBERS: Mapping[str, PluginUnit] = MappingProxyType(
    {"items": PluginUnit("vectors"), "dimensions": PluginUnit("dimensions")}
)
"""The ``numbers`` of an endpoint of vectors."""
_FLOAT_BYTES = 4
_PICTURE = "data:image/"


class _Embedding(Struct):
    embedding: list[float] | str
    object: Literal["embedding"]


class _Embeddings(Struct):
    data: list[_Embedding]
    usage: Any = None


class _Body(Struct):
    input: str | list[str | int | list[int]]


_read_embeddings = msgspec.json.Decoder(_Embeddings).decode
_read_body = msgspec.json.Decoder(_Body).decode


def inputs_request(path: str, turn: Turn, inputs: Sequence[Any]) -> HttpRequest:
    """``{"model", "input"}`` with the turn's extra fields over it.

    Raises:
        BadDataset: There are no inputs.
    """
    if not inputs and turn.payload is None:
        raise BadDataset("the turn has nothing to send: no text")
    return HttpRequest(path, msgspec.json.encode({"model": turn.model, "input": inputs, **turn.extra}))


def count_inputs(body: bytes) -> int | None:
    """Number of inputs of a body with ``input``: a text, texts, ids, or lists of ids; None for any other body."""
    try:
        inputs = _read_body(body).input
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):  # a payload of the data set may be anything
        return None
    return 1 if isinstance(inputs, str) or (inputs and isinstance(inputs[0], int)) else len(inputs)


class TextInputs(Endpoint):
    """An endpoint that takes texts alone, as ``input``, and gives an item for each.  A subclass defines ``decode``.

    dialect: its name, for messages.  hints: what to do with a turn that has more than texts.
    """

    dialect: ClassVar[str]
    hints: ClassVar[tuple[str, ...]] = ()

    def encode(self, turn: Turn) -> HttpRequest:
        """The request for a turn.

        Raises:
            BadDataset: The turn has media or earlier messages, or no text.
        """
        if turn.media or turn.history:
            what = turn.media[0].kind if turn.media else "earlier messages"
            raise BadDataset(f"{self.dialect} takes texts, not {what}", *self.hints)
        return inputs_request(self.path(streaming=False), turn, turn.texts)

    def prompt_of(self, request: HttpRequest) -> Prompt | None:
        return prompt_of(request.body)

    def items_of(self, body: bytes) -> int | None:
        return count_inputs(body)


def without_pictures(prompt: Prompt | None) -> Prompt | None:
    """The prompt of inputs that may be, or end with, the ``data:`` URI of an image, which is no text."""
    if prompt is None:
        return None
    texts = [text.partition(_PICTURE)[0].removesuffix(" ") for text in prompt.texts]
    return Prompt([text for text in texts if text], prompt.ids)


def read_embeddings(dialect: str, event: bytes) -> Delta | None:
    """The vectors of ``{"data": [{"object": "embedding", "embedding": […]}], "usage"}``.

    Raises:
        BadResponse: The answer is another, or an error.
    """
    if not event:
        return None
    answer = decoded(dialect, _read_embeddings, event)
    return vectors(dialect, [each.embedding for each in answer.data], answer.usage, event)


def vectors(dialect: str, values: Sequence[Sequence[float] | str], usage: Any, event: bytes) -> Delta:
    """The Delta of an answer with these vectors: lists of numbers, or base64 of little-endian 32-bit numbers.

    Raises:
        BadResponse: The vectors are of different lengths, empty or damaged.
    """
    lengths = sorted({_length(dialect, value, event) for value in values})
    if len(lengths) > 1:
        raise BadResponse(f"{dialect}: vectors of {lengths[0]} and of {lengths[-1]} dimensions in one answer", raw=event)
    if lengths == [0]:
        raise BadResponse(f"{dialect}: the vectors are empty", raw=event)
    return Delta(usage=usage, items=len(values), extra={"dimensions": float(lengths[0])} if lengths else None)


def _length(dialect: str, vector: Sequence[float] | str, event: bytes) -> int:
    if not isinstance(vector, str):
        return len(vector)
    try:
        size = len(a2b_base64(vector, strict_mode=True))
    except (Error, ValueError) as error:
        raise BadResponse(f"{dialect}: a vector is no base64: {error}", raw=event) from error
    if size % _FLOAT_BYTES:
        raise BadResponse(f"{dialect}: a vector has {size} bytes, which is no multiple of {_FLOAT_BYTES}", raw=event)
    return size // _FLOAT_BYTES


__all__ = [
    "VECTOR_NUMBERS", "TextInputs", "count_inputs", "inputs_request", "read_embeddings", "vectors", "without_pictures",
]  # fmt: skip
