"""vLLM's score dialect: a text and others out, the score of each pair back."""

from __future__ import annotations

import msgspec
from aiperf import Capabilities, Delta, Endpoint, HttpRequest, Turn
from aiperf.sdk.endpoint import Prompt
from aiperf_dialects.scores import SCORE_NUMBERS, QueryAndPassages, count_passages, ranking_probe, read_scores
from msgspec import Struct


class _Body(Struct):
    text_1: str
    text_2: str | list[str]


_read = msgspec.json.Decoder(_Body).decode


class Score(Endpoint):
    """``POST /score``."""

    capabilities = Capabilities(path="/score", tokenizes_input=True, named=("query", "passages"), title="Score Metrics")
    numbers = SCORE_NUMBERS

    def __init__(self, options: None = None) -> None:
        super().__init__(options)
        self._named = QueryAndPassages("score")

    def encode(self, turn: Turn) -> HttpRequest:
        query, passages = self._named.of(turn)
        body = {"model": turn.model, "text_1": query, "text_2": passages, **turn.extra}
        return HttpRequest(self.path(streaming=False), msgspec.json.encode(body))

    def probe(self) -> Turn:
        return ranking_probe()

    def prompt_of(self, request: HttpRequest) -> Prompt | None:
        """The text, then the others; None for any other body."""
        try:
            sent = _read(request.body)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):  # a payload of the data set may be anything
            return None
        return Prompt([sent.text_1, *([sent.text_2] if isinstance(sent.text_2, str) else sent.text_2)])

    def items_of(self, body: bytes) -> int | None:
        return count_passages(body)

    def decode(self, event: bytes) -> Delta | None:
        return read_scores("score", event)
