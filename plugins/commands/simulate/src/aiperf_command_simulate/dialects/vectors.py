"""Answers of vectors: embeddings of texts, images and chats, and vLLM's classification and pooling."""

from __future__ import annotations

import base64
import math
import struct
from typing import Any, Literal

import msgspec
from msgspec import Struct

from aiperf_command_simulate.dialect import (
    Ask,
    AskError,
    Dialect,
    Opened,
    Piece,
    Usage,
    Writer,
    chat_line,
    content_bytes,
    decoded,
    id_bytes,
    to_json,
)
from aiperf_command_simulate.http1 import Request

DIMENSIONS = 8
"""Numbers of a vector where the request asks for no number of them."""


class _Inputs(Struct):
    input: str | list[str | int | list[int]]
    model: str = ""
    dimensions: int | None = None
    encoding_format: Literal["float", "base64"] = "float"


class _Message(Struct):
    role: str = "user"
    content: str | list[dict[str, Any]] | None = None


class _Chat(Struct):
    messages: list[_Message]
    model: str = ""
    dimensions: int | None = None
    encoding_format: Literal["float", "base64"] = "float"


_read_inputs, _read_chat = msgspec.json.Decoder(_Inputs), msgspec.json.Decoder(_Chat)


def inputs_of(request: Request, what: str) -> tuple[_Inputs, tuple[bytes, ...]]:
    """The body and its inputs as prompts.

    Raises:
        AskError: It has none.
    """
    sent = decoded(_read_inputs, request, what)
    if not sent.input:
        raise AskError('"input" must not be empty')
    if isinstance(sent.input, str):
        return sent, (sent.input.encode(),)
    ids = [each for each in sent.input if isinstance(each, int)]
    if len(ids) == len(sent.input):
        return sent, (id_bytes(ids),)
    return sent, tuple(id_bytes(each) if isinstance(each, list) else str(each).encode() for each in sent.input)


def count(opened: Opened, pieces: list[Piece]) -> int:
    """Number of items of the answer: one for each piece, or as the fault ``items`` says."""
    return len(pieces) if opened.faults.items is None else opened.faults.items


def vector(number: int, index: int, length: int) -> list[float]:
    """A unit vector of its own for each request and index."""
    values = [math.sin(1 + number * 31 + index * 7 + at) for at in range(length)]
    norm = math.hypot(*values) or 1.0
    return [round(value / norm, 6) for value in values]


def listed(opened: Opened, data: list[dict[str, Any]], usage: Usage | None) -> bytes:
    """``{"object": "list", "data"}`` as OpenAI and vLLM write it."""
    body: dict[str, Any] = {"object": "list", "model": opened.model, "data": data}
    if usage is not None:
        body["usage"] = {"prompt_tokens": usage.prompt, "total_tokens": usage.prompt}
    return to_json(body)


class _Embeddings(Writer):
    def whole(self, pieces: list[Piece], usage: Usage | None) -> bytes:
        opened, (length, form) = self.opened, self.opened.ask.own
        data: list[dict[str, Any]] = []
        for index in range(count(opened, pieces)):
            values = vector(opened.number, index, length)
            packed = base64.b64encode(struct.pack(f"<{length}f", *values)).decode() if form == "base64" else values
            data.append({"object": "embedding", "index": index, "embedding": packed})
        return listed(opened, data, usage)


class Embeddings(Dialect):
    """Vectors of texts, images as texts, and ids."""

    paths = ("/v1/embeddings",)

    def read(self, request: Request) -> Ask:
        sent, prompts = inputs_of(request, "embeddings request")
        return Ask(model=sent.model, prompts=prompts, prefill_only=True, own=_form(sent))

    def writer(self, opened: Opened) -> Writer:
        return _Embeddings(opened)


class ChatEmbeddings(Embeddings):
    """One vector of a chat."""

    def claims(self, request: Request) -> bool:
        return b'"messages"' in request.body

    def read(self, request: Request) -> Ask:
        sent = decoded(_read_chat, request, "embeddings request")
        prompt = b"".join(chat_line(message.role, content_bytes(message.content)) for message in sent.messages)
        return Ask(model=sent.model, prompts=(prompt,), prefill_only=True, own=_form(sent))


class _Classes(Writer):
    def whole(self, pieces: list[Piece], usage: Usage | None) -> bytes:
        data = []
        for index in range(count(self.opened, pieces)):
            share = round(abs(vector(self.opened.number, index, DIMENSIONS)[0]), 6)
            data.append({"index": index, "label": "LABEL_0", "probs": [share, 1 - share], "num_classes": 2})
        return listed(self.opened, data, usage)


class Classify(Dialect):
    paths = ("/classify",)

    def read(self, request: Request) -> Ask:
        sent, prompts = inputs_of(request, "classification request")
        return Ask(model=sent.model, prompts=prompts, prefill_only=True)

    def writer(self, opened: Opened) -> Writer:
        return _Classes(opened)


class _Pooled(Writer):
    def whole(self, pieces: list[Piece], usage: Usage | None) -> bytes:
        opened = self.opened
        data = [
            {"index": index, "object": "pooling", "data": [vector(opened.number, index + at, DIMENSIONS) for at in range(3)]}
            for index in range(count(opened, pieces))
        ]
        return listed(opened, data, usage)


class Pooling(Dialect):
    """A vector for each of three tokens of every input."""

    paths = ("/pooling",)

    def read(self, request: Request) -> Ask:
        sent, prompts = inputs_of(request, "pooling request")
        return Ask(model=sent.model, prompts=prompts, prefill_only=True)

    def writer(self, opened: Opened) -> Writer:
        return _Pooled(opened)


def _form(sent: _Inputs | _Chat) -> tuple[int, str]:
    """Length and encoding of the vectors."""
    return sent.dimensions or DIMENSIONS, sent.encoding_format


ROUTES = (ChatEmbeddings(), Embeddings(), Classify(), Pooling())
