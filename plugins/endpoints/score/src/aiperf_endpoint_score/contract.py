"""An answer for the conformance suite.  For tests, and for ``aiperf plugins validate``."""

from __future__ import annotations

from typing import Any, ClassVar

from aiperf import Turn
from aiperf.testing import EndpointContract

from aiperf_endpoint_score import Score

ANSWER = (
    b'{"id":"score-1","object":"list","created":1763800000,"model":"rr","data":[{"index":0,"object":"score","score":'
    b'1.0},{"index":1,"object":"score","score":0.25}],"usage":{"prompt_tokens":21,"total_tokens":21,"completion_toke'
    b'ns":0}}'
)
TURN = Turn(("dogs", "cats", "puppies"), named={"query": ("dogs",), "passages": ("cats", "puppies")}, model="rr")


class ScoreContract(EndpointContract):
    endpoint = Score()
    turn = TURN
    transcript = (ANSWER,)
    answer = ""
    usage: ClassVar[dict[str, Any] | None] = {"prompt_tokens": 21, "total_tokens": 21, "completion_tokens": 0}
    numbers: ClassVar[dict[str, float] | None] = {"items": 2.0}
    whole = ANSWER
    silent = (b'{"results":[]}',)
