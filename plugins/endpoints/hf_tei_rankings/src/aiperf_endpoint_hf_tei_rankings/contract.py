"""An answer for the conformance suite.  For tests, and for ``aiperf plugins validate``."""

from __future__ import annotations

from typing import Any, ClassVar

from aiperf import Turn
from aiperf.testing import EndpointContract

from aiperf_endpoint_hf_tei_rankings import HfTeiRankings

ANSWER = b'[{"index":0,"score":2.4717822074890137},{"index":1,"score":1.0129882097244263}]'
"""An answer of llama.cpp."""
TURN = Turn(("dogs", "cats", "puppies"), named={"query": ("dogs",), "passages": ("cats", "puppies")}, model="rr")


class HfTeiRankingsContract(EndpointContract):
    endpoint = HfTeiRankings()
    turn = TURN
    transcript = (ANSWER,)
    answer = ""
    usage: ClassVar[dict[str, Any] | None] = None
    numbers: ClassVar[dict[str, float] | None] = {"items": 2.0}
    whole = ANSWER
    silent = (b"[]",)
