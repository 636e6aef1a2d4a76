"""A recorded answer for the conformance suite, event by event.  For tests, and for ``aiperf plugins validate``."""

from __future__ import annotations

from aiperf.sdk.model import ToolCall
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
    calling = (
        (
            chunk('{"role":"assistant","content":null,"tool_calls":[{"index":0,"id":"c1","type":"function",'
                  '"function":{"name":"weather","arguments":""}}]}'),
            chunk('{"tool_calls":[{"index":0,"function":{"arguments":"{\\"at\\": "}}]}'),
            chunk('{"tool_calls":[{"index":1,"id":"c2","type":"function","function":{"name":"clock","arguments":"{}"}}]}'),
            chunk('{"tool_calls":[{"index":0,"function":{"arguments":"\\"Lucca\\"}"}}]}', ',"finish_reason":"tool_calls"'),
            b"[DONE]",
        ),
        (
            b'{"object":"chat.completion","choices":[{"message":{"content":null,"tool_calls":[{"id":"c1","type":"function",'
            b'"function":{"name":"weather","arguments":"{\\"at\\": \\"Lucca\\"}"}},{"id":"c2","type":"function","function":'
            b'{"name":"clock","arguments":"{}"}}]},"finish_reason":"tool_calls"}]}',
        ),
    )  # fmt: skip
    called = (ToolCall("c1", "weather", '{"at": "Lucca"}'), ToolCall("c2", "clock", "{}"))
    silent = (
        b"[DONE]",
        chunk('{"role":"assistant"}'),
        chunk('{"content":""}'),
        chunk("{}", ',"finish_reason":"stop"'),
        b'{"choices":[],"usage":{"total_tokens":1}}',
    )
