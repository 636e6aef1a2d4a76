"""An answer for the conformance suite.  For tests, and for ``aiperf plugins validate``."""

from __future__ import annotations

from typing import Any, ClassVar

from aiperf import Turn
from aiperf.testing import EndpointContract

from aiperf_endpoint_cohere_rankings import CohereRankings

ANSWER = (
    b'{"model":"minilm-rank","object":"list","usage":{"prompt_tokens":10,"total_tokens":10},"results":[{"index":0,"r'
    b'elevance_score":2.4717822074890137},{"index":1,"relevance_score":1.0129882097244263}]}'
)
"""An answer of llama.cpp."""
TURN = Turn(("dogs", "cats", "puppies"), named={"query": ("dogs",), "passages": ("cats", "puppies")}, model="rr")


class CohereRankingsContract(EndpointContract):
    endpoint = CohereRankings()
    turn = TURN
    transcript = (ANSWER,)
    answer = ""
    usage: ClassVar[dict[str, Any] | None] = {"prompt_tokens": 10, "total_tokens": 10}
    numbers: ClassVar[dict[str, float] | None] = {"items": 2.0}
    whole = ANSWER
    silent = (b'{"results":[]}',)
