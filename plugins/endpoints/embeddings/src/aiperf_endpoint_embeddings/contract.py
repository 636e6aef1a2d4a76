"""A recorded answer for the conformance suite.  For tests, and for ``aiperf plugins validate``."""

from __future__ import annotations

from typing import Any, ClassVar

from aiperf import Turn
from aiperf.testing import EndpointContract

from aiperf_endpoint_embeddings import Embeddings

RECORDED = (
    b'{"model":"minilm","object":"list","usage":{"prompt_tokens":8,"total_tokens":8},"data":[{"embedding":[-0.011240445077419281,'
    b'0.04321062192320824,-0.08527996391057968],"index":0,"object":"embedding"},{"embedding":[0.0037856849376112223,'
    b'0.013517697341740131,0.01865115575492382],"index":1,"object":"embedding"}]}'
)
"""An answer of llama.cpp, of whose vectors three numbers are left."""


class EmbeddingsContract(EndpointContract):
    endpoint = Embeddings()
    turn = Turn(("a b", "c d"), model="minilm", max_tokens=8)
    transcript = (RECORDED,)
    answer = ""
    usage: ClassVar[dict[str, Any] | None] = {"prompt_tokens": 8, "total_tokens": 8}
    numbers: ClassVar[dict[str, float] | None] = {"items": 2.0, "dimensions": 3.0}
    whole = RECORDED
    silent = (b'{"object":"list","data":[]}',)
