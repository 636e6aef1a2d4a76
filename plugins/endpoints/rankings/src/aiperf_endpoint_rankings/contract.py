"""An answer for the conformance suite.  For tests, and for ``aiperf plugins validate``."""

from __future__ import annotations

from typing import ClassVar

from aiperf import Turn
from aiperf.testing import EndpointContract

from aiperf_endpoint_rankings import Rankings

TURN = Turn(("dogs", "cats", "puppies"), named={"query": ("dogs",), "passages": ("cats", "puppies")}, model="rr")


class RankingsContract(EndpointContract):
    endpoint = Rankings()
    turn = TURN
    transcript = (b'{"rankings":[{"index":1,"logit":2.5},{"index":0,"logit":-1.0}]}',)
    answer = ""
    numbers: ClassVar[dict[str, float] | None] = {"items": 2.0}
    whole = b'[{"index":0,"score":2.5},{"index":1,"score":1.0}]'
    silent = (b"[]",)
