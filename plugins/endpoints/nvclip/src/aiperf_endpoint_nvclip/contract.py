"""An answer for the conformance suite.  For tests, and for ``aiperf plugins validate``."""

from __future__ import annotations

from typing import Any, ClassVar

from aiperf import Media, Turn
from aiperf.testing import EndpointContract

from aiperf_endpoint_nvclip import NvClip


class NvClipContract(EndpointContract):
    endpoint = NvClip()
    turn = Turn(("a dog",), (Media("image", "data:image/png;base64,iVBO"),), model="nvclip")
    transcript = (
        b'{"object":"list","data":[{"index":0,"embedding":[0.1,-0.5],"object":"embedding"},'
        b'{"index":1,"embedding":[0.25,0.75],"object":"embedding"}],"usage":{"num_images":1,"prompt_tokens":3,"total_tokens":3}}',
    )
    answer = ""
    usage: ClassVar[dict[str, Any] | None] = {"num_images": 1, "prompt_tokens": 3, "total_tokens": 3}
    numbers: ClassVar[dict[str, float] | None] = {"items": 2.0, "dimensions": 2.0}
    silent = (b'{"object":"list","data":[]}',)
