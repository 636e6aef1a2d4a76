"""An answer in the form of SGLang for the conformance suite.  For tests, and for ``aiperf plugins validate``."""

from __future__ import annotations

from typing import Any, ClassVar

from aiperf.testing import EndpointContract

from aiperf_endpoint_sglang_generate import SglangGenerate


def event(text: str, tokens: int, finish: str = "null", more: str = "") -> bytes:
    counts = f'"prompt_tokens":5,"completion_tokens":{tokens},"cached_tokens":1'
    return f'{{"text":"{text}","meta_info":{{"id":"a1","finish_reason":{finish},{counts},"e2e_latency":0.1}}{more}}}'.encode()


class SglangGenerateContract(EndpointContract):
    endpoint = SglangGenerate()
    transcript = (
        event(" Grüße", 1),
        event(" Grüße,", 2),
        event(" Grüße, cat", 3, '{"type":"length","length":3}'),
        b"[DONE]",
    )
    answer = " Grüße, cat"
    usage: ClassVar[dict[str, Any] | None] = {"prompt_tokens": 5, "completion_tokens": 3, "cached_tokens": 1}
    whole = event(" Grüße, cat", 3, '{"type":"length","length":3}')
    silent = (event("", 0), b"[DONE]", b"{}")
