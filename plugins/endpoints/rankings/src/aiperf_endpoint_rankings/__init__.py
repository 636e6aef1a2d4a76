"""Rankings in the form of NIM or of Text Embeddings Inference: a query and passages out, scores back."""

from __future__ import annotations

import msgspec
from aiperf import Capabilities, Delta, Endpoint, HttpRequest, Turn
from aiperf.sdk.endpoint import Prompt
from aiperf_dialects.prompts import prompt_of
from aiperf_dialects.scores import SCORE_NUMBERS, QueryAndPassages, count_passages, ranking_probe, read_scores

from aiperf_endpoint_rankings.options import RankingsOptions


class Rankings(Endpoint[RankingsOptions]):
    """``POST /v1/ranking``.

    The body is that of Text Embeddings Inference with the extra input ``rankings:tei``, or, unless another form is given, at a
    path that ends in ``/rerank``; else that of NIM.
    """

    capabilities = Capabilities(
        path="/v1/ranking", tokenizes_input=True, named=("query", "passages"), takes=("rankings",), title="Rankings Metrics"
    )
    numbers = SCORE_NUMBERS

    def __init__(self, options: RankingsOptions | None = None) -> None:
        super().__init__(options or RankingsOptions())
        self._named = QueryAndPassages("rankings")

    def encode(self, turn: Turn) -> HttpRequest:
        query, passages = self._named.of(turn)
        form = self.options.rankings or ("tei" if (turn.path or "").endswith("/rerank") else "nim")
        body = (
            {"query": query, "texts": passages} if form == "tei"
            else {"model": turn.model, "query": {"text": query}, "passages": [{"text": each} for each in passages]}
        )  # fmt: skip
        return HttpRequest(self.path(streaming=False), msgspec.json.encode(body | turn.extra))

    def probe(self) -> Turn:
        return ranking_probe()

    def prompt_of(self, request: HttpRequest) -> Prompt | None:
        return prompt_of(request.body)

    def items_of(self, body: bytes) -> int | None:
        return count_passages(body)

    def decode(self, event: bytes) -> Delta | None:
        return read_scores("rankings", event)
