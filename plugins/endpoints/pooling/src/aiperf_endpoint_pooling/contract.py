"""An answer for the conformance suite.  For tests, and for ``aiperf plugins validate``."""

from __future__ import annotations

from typing import Any, ClassVar

from aiperf import Turn
from aiperf.testing import EndpointContract

from aiperf_endpoint_pooling import Pooling

ANSWER = (
    b'{"id":"pool-1","object":"list","created":1763800000,"model":"m","data":[{"index":0,"object":"pooling","data":[[0.1,0.2],'
    b'[0.3,0.4],[0.5,0.6]]},{"index":1,"object":"pooling","data":[[0.7,0.8]]}],'
    b'"usage":{"prompt_tokens":4,"total_tokens":4,"completion_tokens":0}}'
)


class PoolingContract(EndpointContract):
    endpoint = Pooling()
    turn = Turn(("a b", "c d"), model="m")
    transcript = (ANSWER,)
    answer = ""
    usage: ClassVar[dict[str, Any] | None] = {"prompt_tokens": 4, "total_tokens": 4, "completion_tokens": 0}
    numbers: ClassVar[dict[str, float] | None] = {"items": 2.0, "dimensions": 2.0}
    whole = ANSWER
    silent = (b'{"object":"list","data":[]}',)
