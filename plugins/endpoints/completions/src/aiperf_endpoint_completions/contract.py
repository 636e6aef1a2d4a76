"""A recorded answer for the conformance suite, event by event.  For tests, and for ``aiperf plugins validate``."""

from __future__ import annotations

from typing import Any, ClassVar

from aiperf.testing import EndpointContract

from aiperf_endpoint_completions import Completions


class CompletionsContract(EndpointContract):
    endpoint = Completions()
    transcript = (
        b'{"choices":[{"text":""}]}',
        '{"choices":[{"text":" grüße"}]}'.encode(),
        b'{"choices":[{"text":" cat","finish_reason":"stop"}]}',
        b'{"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":2}}',
        b"[DONE]",
    )
    answer = " grüße cat"
    usage: ClassVar[dict[str, Any] | None] = {"prompt_tokens": 9, "completion_tokens": 2}
    whole = '{"choices":[{"text":" grüße cat"}]}'.encode()
    silent = (b"[DONE]", b'{"choices":[{"text":""}]}', b'{"choices":[],"usage":{"total_tokens":1}}')
