"""Material for the conformance suite.  For tests, and for ``aiperf plugins validate``."""

from __future__ import annotations

from typing import ClassVar

from aiperf.testing import EndpointContract

from aiperf_endpoint_solido_rag import SolidoRag


class SolidoRagContract(EndpointContract):
    endpoint = SolidoRag()
    transcript = (
        '{"content":"Grüße, "}'.encode(),
        b'{"content":"cat"}',
        b'{"content":"","sources":[{"title":"a"},{"title":"b"}]}',
        b"[DONE]",
    )
    answer = "Grüße, cat"
    numbers: ClassVar[dict[str, float] | None] = {"sources": 2}
    whole = '{"content":"Grüße, cat","sources":[{"title":"a"},{"title":"b"}]}'.encode()
    silent = (b'{"content":""}', b'{"content":null}', b'{"sources":[]}', b"[DONE]")
