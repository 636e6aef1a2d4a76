"""An answer for the conformance suite.  For tests, and for ``aiperf plugins validate``."""

from __future__ import annotations

from typing import Any, ClassVar

from aiperf import Turn
from aiperf.testing import EndpointContract

from aiperf_endpoint_nim_embeddings import NimEmbeddings


class NimEmbeddingsContract(EndpointContract):
    endpoint = NimEmbeddings()
    turn = Turn(("a b",), model="e5", extra={"input_type": "query"})
    transcript = (
        b'{"object":"list","data":[{"object":"embedding","index":0,"embedding":[0.1,0.2]}],"usage":{"prompt_tokens":4,"total_tokens":4}}',
    )
    answer = ""
    usage: ClassVar[dict[str, Any] | None] = {"prompt_tokens": 4, "total_tokens": 4}
    numbers: ClassVar[dict[str, float] | None] = {"items": 1.0, "dimensions": 2.0}
    silent = (b'{"object":"list","data":[]}',)
