"""What endpoints of rankings share: a query and passages go out, a score for each passage comes back."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import msgspec
from aiperf import BadDataset, BadResponse
from aiperf.sdk.endpoint import decoded, in_band_error
from aiperf.sdk.metric import PluginUnit
from aiperf.sdk.model import Delta, Turn
from msgspec import Struct

log = logging.getLogger(__name__)

SCORE_NUMBERS: Mapping[str, PluginUnit] = MappingProxyType({"items": PluginUnit("scores")})
"""The ``numbers`` of an endpoint of rankings."""
QUERY, PASSAGES = ("query", "queries"), ("passages", "passage")
"""Names of the texts of a turn."""
_HINT = 'a row needs {"texts": [{"name": "query", "contents": ["…"]}, {"name": "passages", "contents": ["…", "…"]}]}'


class _Text(Struct):
    text: str


class _Score(Struct):
    index: int
    score: float | None = None
    relevance_score: float | None = None
    logit: float | None = None

    @property
    def known(self) -> bool:
        return not self.score is self.relevance_score is self.logit is None


class _Scores(Struct):
    """``rankings`` of NIM, ``results`` of Cohere and others, ``data`` of vLLM."""

    rankings: list[_Score] | None = None
    results: list[_Score] | None = None
    data: list[_Score] | None = None
    usage: Any = None


class _Body(Struct):
    """The fields of all dialects; text_2 is vLLM's."""

    passages: list[str | _Text] | None = None
    texts: list[str | _Text] | None = None
    documents: list[str | _Text] | None = None
    text_2: str | list[str] | None = None
    top_n: int | None = None
    top_k: int | None = None

    @property
    def scored(self) -> Sequence[str | _Text] | None:
        several = next((each for each in (self.passages, self.texts, self.documents) if each is not None), self.text_2)
        return [several] if isinstance(several, str) else several


_read_scores = msgspec.json.Decoder(_Scores | list[_Score]).decode
_read_body = msgspec.json.Decoder(_Body).decode


class QueryAndPassages:
    """Finds query and passages of turns by their names.  Each kind of turn with something amiss is one warning."""

    def __init__(self, dialect: str) -> None:
        self._dialect, self._told = dialect, set[str]()

    def of(self, turn: Turn) -> tuple[str, tuple[str, ...]]:
        """The first query, and the passages; "" and () for a turn with a payload.

        Raises:
            BadDataset: The turn has no query.
        """
        if turn.payload is not None:
            return "", ()
        queries, passages = turn.texts_of(*QUERY), turn.texts_of(*PASSAGES)
        if not queries:
            raise BadDataset(f"{self._dialect}: the turn has no text that is called query", _HINT)
        if len(queries) > 1:
            self._tell("only the first query of a turn is sent")
        if not passages:
            self._tell("a turn has no texts that are called passages: only its query is sent")
        for name in turn.named:
            if name not in (*QUERY, *PASSAGES):
                self._tell(f"texts that are called {name!r} are not sent")
        return queries[0], passages

    def _tell(self, sentence: str) -> None:
        if sentence not in self._told:
            self._told.add(sentence)
            log.warning("%s: %s", self._dialect, sentence)


def ranking_probe() -> Turn:
    """One query and one passage."""
    return Turn(("Hello", "Hello"), named={"query": ("Hello",), "passages": ("Hello",)})


def read_scores(dialect: str, event: bytes) -> Delta | None:
    """The scores of a list, bare or under ``rankings``, ``results`` or ``data``.

    Each is ``{"index", "score"}``, or has ``relevance_score`` or ``logit`` in place of ``score``.

    Raises:
        BadResponse: The answer is another, or an error.
    """
    if not event:
        return None
    answer = decoded(dialect, _read_scores, event)
    usage, scores = None, answer
    if isinstance(answer, _Scores):
        usage = answer.usage
        scores = next((each for each in (answer.rankings, answer.results, answer.data) if each is not None), None)
    if scores is None or not all(each.known for each in scores):
        what = "no list of scores" if scores is None else "a passage without a score"
        raise in_band_error(event) or BadResponse(f"{dialect}: the answer has {what}", raw=event)
    return Delta(usage=usage, items=len(scores))


def count_passages(body: bytes) -> int | None:
    """Number of scores that the body of a request asks for: of its passages, or ``top_n`` or ``top_k``; None for any other."""
    try:
        asked = _read_body(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):  # a payload of the data set may be anything
        return None
    if asked.scored is None:
        return None
    return min(len(asked.scored), asked.top_n or asked.top_k or len(asked.scored))


__all__ = [
    "PASSAGES", "QUERY", "SCORE_NUMBERS", "QueryAndPassages", "count_passages", "ranking_probe", "read_scores",
]  # fmt: skip
