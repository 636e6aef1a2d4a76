"""Embeddings of a chat: messages with images out, vectors back."""

from __future__ import annotations

from typing import Any

import msgspec
from aiperf import BadResponse, Capabilities, Delta, Endpoint, HttpRequest, Turn, in_band_error
from aiperf.sdk.endpoint import Prompt, decoded
from aiperf_dialects.chat_messages import chat_messages
from aiperf_dialects.prompts import prompt_of
from aiperf_dialects.vectors import VECTOR_NUMBERS, vectors
from msgspec import Struct


class _Item(Struct):
    embedding: list[float] | str


class _Answer(Struct):
    data: list[_Item] | None = None
    embeddings: list[list[float]] | None = None
    embedding: list[float] | str | None = None
    usage: Any = None


_read = msgspec.json.Decoder(_Answer).decode


class ChatEmbeddings(Endpoint):
    """``POST /v1/embeddings`` with ``messages``, as vLLM takes it: the chat is one input."""

    capabilities = Capabilities(
        path="/v1/embeddings", tokenizes_input=True, media_in=("image",), system_message=True, title="Embeddings Metrics"
    )
    numbers = VECTOR_NUMBERS

    def encode(self, turn: Turn) -> HttpRequest:
        body = {"messages": chat_messages(turn.messages), "model": turn.model, **turn.extra}
        return HttpRequest(self.path(streaming=False), msgspec.json.encode(body))

    def prompt_of(self, request: HttpRequest) -> Prompt | None:
        return prompt_of(request.body)

    def decode(self, event: bytes) -> Delta | None:
        if not event:
            return None
        answer = decoded("chat_embeddings", _read, event)
        values: list[list[float] | str]
        if answer.data is not None:
            values = [each.embedding for each in answer.data]
        elif answer.embeddings is not None:
            values = [*answer.embeddings]
        elif answer.embedding is not None:
            values = [answer.embedding]
        else:
            raise in_band_error(event) or BadResponse("chat_embeddings: the answer has no vector", raw=event)
        return vectors("chat_embeddings", values, answer.usage, event)
