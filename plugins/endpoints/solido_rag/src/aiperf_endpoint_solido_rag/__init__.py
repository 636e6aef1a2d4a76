"""The SOLIDO RAG dialect: encodes a query; decodes the answer's content, streamed or whole, and counts its sources."""

from __future__ import annotations

from typing import Any

import msgspec
from aiperf import Capabilities, Delta, Endpoint, HttpRequest, Turn, in_band_error
from aiperf.sdk.endpoint import Prompt, decoded
from aiperf_dialects.prompts import prompt_of
from msgspec import Struct

from aiperf_endpoint_solido_rag.units import SOURCES

FILTERS = {"family": "Solido", "tool": "SDE"}


class Answer(Struct, gc=False):
    """An event, or a whole answer: both have the same form.  sources: the passages that the answer rests on."""

    content: str | None = None
    sources: list[Any] | None = None


_read = msgspec.json.Decoder(Answer).decode


class SolidoRag(Endpoint):
    """``POST /rag/api/prompt``."""

    capabilities = Capabilities(
        path="/rag/api/prompt",
        streaming=True,
        produces_tokens=True,
        tokenizes_input=True,
        title="SOLIDO RAG Metrics",
        service_kind="solido",
    )
    repeats_envelope = True
    plain_prompts = True
    splices_text = True
    numbers = {"sources": SOURCES}

    def encode(self, turn: Turn) -> HttpRequest:
        body: dict[str, Any] = {"query": list(turn.texts), "filters": FILTERS, "inference_model": turn.model}
        body.update(turn.extra)
        return HttpRequest(self.path(streaming=turn.stream), msgspec.json.encode(body))

    def prompt_of(self, request: HttpRequest) -> Prompt | None:
        return prompt_of(request.body)

    def decode(self, event: bytes) -> Delta | None:
        if event == b"[DONE]" or not event:
            return None
        answer = decoded("solido_rag", _read, event)
        if answer.content is None and answer.sources is None:
            failure = in_band_error(event)
            if failure is not None:
                raise failure
        return Delta(answer.content or "", extra=None if answer.sources is None else {"sources": len(answer.sources)})
