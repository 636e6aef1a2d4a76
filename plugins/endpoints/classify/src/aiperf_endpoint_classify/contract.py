"""An answer for the conformance suite.  For tests, and for ``aiperf plugins validate``."""

from __future__ import annotations

from typing import Any, ClassVar

from aiperf import Turn
from aiperf.testing import EndpointContract

from aiperf_endpoint_classify import Classify

ANSWER = (
    b'{"id":"classify-1","object":"list","created":1763800000,"model":"m","data":[{"index":0,"label":"Default","probs":[0.25,0.75],'
    b'"num_classes":2},{"index":1,"label":"Spoiled","probs":[0.5,0.5],"num_classes":2}],'
    b'"usage":{"prompt_tokens":10,"total_tokens":10,"completion_tokens":0}}'
)


class ClassifyContract(EndpointContract):
    endpoint = Classify()
    turn = Turn(("a b", "c d"), model="m")
    transcript = (ANSWER,)
    answer = ""
    usage: ClassVar[dict[str, Any] | None] = {"prompt_tokens": 10, "total_tokens": 10, "completion_tokens": 0}
    numbers: ClassVar[dict[str, float] | None] = {"items": 2.0}
    whole = ANSWER
    silent = (b'{"object":"list","data":[]}',)
