"""An answer for the conformance suite.  For tests, and for ``aiperf plugins validate``."""

from __future__ import annotations

from typing import Any, ClassVar

from aiperf import Turn
from aiperf.testing import EndpointContract

from aiperf_endpoint_nim_rankings import NimRankings

ANSWER = b'{"rankings":[{"index":1,"logit":2.5},{"index":0,"logit":-1.0}],"usage":{"prompt_tokens":7,"total_tokens":7}}'
TURN = Turn(("dogs", "cats", "puppies"), named={"query": ("dogs",), "passages": ("cats", "puppies")}, model="rr")


class NimRankingsContract(EndpointContract):
    endpoint = NimRankings()
    turn = TURN
    transcript = (ANSWER,)
    answer = ""
    usage: ClassVar[dict[str, Any] | None] = {"prompt_tokens": 7, "total_tokens": 7}
    numbers: ClassVar[dict[str, float] | None] = {"items": 2.0}
    whole = ANSWER
    silent = (b'{"results":[]}',)
