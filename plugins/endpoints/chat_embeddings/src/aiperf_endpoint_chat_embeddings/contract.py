"""An answer for the conformance suite.  For tests, and for ``aiperf plugins validate``."""

from __future__ import annotations

from typing import Any, ClassVar

from aiperf import Media, Message, Turn
from aiperf.testing import EndpointContract

from aiperf_endpoint_chat_embeddings import ChatEmbeddings

TURN = Turn(
    ("What is shown?",), (Media("image", "data:image/png;base64,iVBO"),), model="vlm2vec",
    history=(Message("system", ("Represent the image.",)),),
)  # fmt: skip


class ChatEmbeddingsContract(EndpointContract):
    endpoint = ChatEmbeddings()
    turn = TURN
    transcript = (
        b'{"id":"embd-1","object":"list","created":1763800000,"model":"vlm2vec","data":[{"index":0,"object":"embedding",'
        b'"embedding":[0.1,0.2,0.3]}],"usage":{"prompt_tokens":767,"total_tokens":767,"completion_tokens":0}}',
    )
    answer = ""
    usage: ClassVar[dict[str, Any] | None] = {"prompt_tokens": 767, "total_tokens": 767, "completion_tokens": 0}
    numbers: ClassVar[dict[str, float] | None] = {"items": 1.0, "dimensions": 3.0}
    silent = (b'{"object":"list","data":[]}',)
