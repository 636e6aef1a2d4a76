"""The NIM ranking dialect: a query and passages out, a score for each passage back."""

from __future__ import annotations

import msgspec
from aiperf import Capabilities, Delta, Endpoint, HttpRequest, Turn
from aiperf.sdk.endpoint import Prompt
from aiperf_dialects.prompts import prompt_of
from aiperf_dialects.scores import SCORE_NUMBERS, QueryAndPassages, count_passages, ranking_probe, read_scores


class NimRankings(Endpoint):
    """``POST /v1/ranking``."""

    capabilities = Capabilities(path="/v1/ranking", tokenizes_input=True, named=("query", "passages"), title="Rankings Metrics")
    numbers = SCORE_NUMBERS

    def __init__(self, options: None = None) -> None:
        super().__init__(options)
        self._named = QueryAndPassages("nim_rankings")

    def encode(self, turn: Turn) -> HttpRequest:
        query, passages = self._named.of(turn)
        body = {"model": turn.model, "query": {"text": query}, "passages": [{"text": each} for each in passages], **turn.extra}
        return HttpRequest(self.path(streaming=False), msgspec.json.encode(body))

    def probe(self) -> Turn:
        return ranking_probe()

    def prompt_of(self, request: HttpRequest) -> Prompt | None:
        return prompt_of(request.body)

    def items_of(self, body: bytes) -> int | None:
        return count_passages(body)

    def decode(self, event: bytes) -> Delta | None:
        return read_scores("nim_rankings", event)
