"""A recorded answer for the conformance suite, event by event.  For tests, and for ``aiperf plugins validate``."""

from __future__ import annotations

from aiperf.testing import EndpointContract

from aiperf_endpoint_chat import Chat

USAGE = {"prompt_tokens": 9, "completion_tokens": 2, "total_tokens": 11}


def chunk(delta: str, rest: str = "") -> bytes:
    return f'{{"object":"chat.completion.chunk","choices":[{{"index":0,"delta":{delta}{rest}}}]}}'.encode()


class ChatContract(EndpointContract):
    endpoint = Chat()
    transcript = (
        chunk('{"role":"assistant","content":""}'),
        chunk('{"reasoning_content":"hm "}'),
        chunk('{"content":"Grüße, "}'),
        chunk('{"content":"cat"}', ',"finish_reason":"stop"'),
        b'{"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":2,"total_tokens":11}}',
        b"[DONE]",
    )
    answer = "hm Grüße, cat"
    usage = USAGE
    whole = '{"object":"chat.completion","choices":[{"message":{"reasoning":"hm ","content":"Grüße, cat"}}]}'.encode()
    silent = (
        b"[DONE]",
        chunk('{"role":"assistant"}'),
        chunk('{"content":""}'),
        chunk("{}", ',"finish_reason":"stop"'),
        b'{"choices":[],"usage":{"total_tokens":1}}',
    )
