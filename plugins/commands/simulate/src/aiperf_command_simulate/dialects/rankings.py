"""Answers of scores: NIM's ranking, rerank of Text Embeddings Inference and of Cohere, and vLLM's score."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Struct

from aiperf_command_simulate.dialect import Ask, AskError, Dialect, Opened, Piece, Usage, Writer, decoded, to_json
from aiperf_command_simulate.dialects.vectors import DIMENSIONS, count, listed, vector
from aiperf_command_simulate.http1 import Request


class _Text(Struct):
    text: str


class _Nim(Struct):
    query: _Text
    passages: list[_Text]
    model: str = ""


class _Rerank(Struct):
    """texts: of Text Embeddings Inference.  documents: of Cohere and others."""

    query: str
    texts: list[str] | None = None
    documents: list[str | _Text] | None = None
    top_n: int | None = None
    model: str = ""


class _Pairs(Struct):
    text_1: str
    text_2: str | list[str]
    model: str = ""


_read_nim, _read_rerank = msgspec.json.Decoder(_Nim), msgspec.json.Decoder(_Rerank)
_read_pairs = msgspec.json.Decoder(_Pairs)


def _ask(model: str, query: str, passages: list[str], name: str, top: int | None = None) -> Ask:
    """The query is computed again for each passage, as a cross-encoder does."""
    if not passages:
        raise AskError(f'"{name}" must be a non-empty string array')
    prompts = tuple(f"{query}\n{passage}".encode() for passage in passages)
    return Ask(model=model, prompts=prompts, prefill_only=True, own=(name, top))


class _Scores(Writer):
    """The items with the greatest score first, but with their own indices."""

    def scores(self, pieces: list[Piece]) -> list[tuple[int, float]]:
        rows = [(index, vector(self.opened.number, index, DIMENSIONS)[0]) for index in range(count(self.opened, pieces))]
        return sorted(rows, key=lambda row: -row[1])

    def whole(self, pieces: list[Piece], usage: Usage | None) -> bytes:
        name, top = self.opened.ask.own
        scores = self.scores(pieces)[: top or None]
        if name == "passages":
            return to_json({"rankings": [{"index": index, "logit": score} for index, score in scores]})
        if name == "texts":
            return to_json([{"index": index, "score": score} for index, score in scores])
        body: dict[str, Any] = {"id": f"rerank-{self.opened.number}", "model": self.opened.model}
        body["results"] = [{"index": index, "relevance_score": score} for index, score in scores]
        if usage is not None:
            body["usage"] = {"prompt_tokens": usage.prompt, "total_tokens": usage.prompt}
        return to_json(body)


class Ranking(Dialect):
    """NIM's."""

    paths = ("/v1/ranking",)

    def claims(self, request: Request) -> bool:
        return b'"passages"' in request.body

    def read(self, request: Request) -> Ask:
        sent = decoded(_read_nim, request, "ranking request")
        return _ask(sent.model, sent.query.text, [passage.text for passage in sent.passages], "passages")

    def writer(self, opened: Opened) -> Writer:
        return _Scores(opened)


class Rerank(Dialect):
    """``texts`` are answered with a bare list, ``documents`` with ``results``."""

    paths = ("/rerank", "/v1/rerank", "/v2/rerank", "/v1/ranking")

    def read(self, request: Request) -> Ask:
        sent = decoded(_read_rerank, request, "rerank request")
        if sent.texts is not None:
            return _ask(sent.model, sent.query, sent.texts, "texts")
        documents = [each if isinstance(each, str) else each.text for each in sent.documents or ()]
        return _ask(sent.model, sent.query, documents, "documents", sent.top_n)

    def writer(self, opened: Opened) -> Writer:
        return _Scores(opened)


class _PairScores(_Scores):
    def whole(self, pieces: list[Piece], usage: Usage | None) -> bytes:
        rows = sorted(self.scores(pieces))
        return listed(self.opened, [{"index": index, "object": "score", "score": score} for index, score in rows], usage)


class Score(Dialect):
    paths = ("/score", "/v1/score")

    def read(self, request: Request) -> Ask:
        sent = decoded(_read_pairs, request, "score request")
        return _ask(sent.model, sent.text_1, [sent.text_2] if isinstance(sent.text_2, str) else sent.text_2, "text_2")

    def writer(self, opened: Opened) -> Writer:
        return _PairScores(opened)


ROUTES = (Ranking(), Rerank(), Score())
