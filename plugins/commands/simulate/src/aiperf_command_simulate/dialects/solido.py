"""SOLIDO RAG: a query, and an answer with its sources.  Every request is streamed whose ``Accept`` asks for it."""

from __future__ import annotations

from typing import ClassVar

import msgspec
from msgspec import Struct

from aiperf_command_simulate.dialect import Ask, Dialect, Opened, Piece, Usage, Writer, decoded, to_json
from aiperf_command_simulate.http1 import Request

SOURCES = 2
"""Sources that an answer names."""


class _Body(Struct):
    query: list[str]
    inference_model: str = ""


_read = msgspec.json.Decoder(_Body)
_sources = [{"title": f"Source {number + 1}", "score": 0.5} for number in range(SOURCES)]


class _RagWriter(Writer):
    def event(self, piece: Piece, usage: Usage | None) -> bytes:
        return self.frame(to_json({"content": piece.text}))

    def closing(self, usage: Usage | None) -> bytes:
        return self.frame(to_json({"content": "", "sources": _sources}))

    def whole(self, pieces: list[Piece], usage: Usage | None) -> bytes:
        return to_json({"content": "".join(piece.text for piece in pieces), "sources": _sources})


class Rag(Dialect):
    paths: ClassVar[tuple[str, ...]] = ("/rag/api/prompt",)

    def read(self, request: Request) -> Ask:
        asked = decoded(_read, request, "query")
        stream = "text/event-stream" in request.headers.get("accept", "")
        return Ask(model=asked.inference_model, prompts=(" ".join(asked.query).encode(),), stream=stream)

    def writer(self, opened: Opened) -> Writer:
        return _RagWriter(opened)


ROUTES = (Rag(),)
