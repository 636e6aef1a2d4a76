"""A recorded answer of llama.cpp b11669 with thinking before it.  For tests, and for ``aiperf plugins validate``."""

from __future__ import annotations

from typing import Any, ClassVar

from aiperf.sdk.model import ToolCall
from aiperf.testing import EndpointContract

from aiperf_endpoint_messages import Messages


def block(index: int, rest: str) -> bytes:
    return f'{{"type":"content_block_delta","index":{index},"delta":{{{rest}}}}}'.encode()


class MessagesContract(EndpointContract):
    endpoint = Messages()
    transcript = (
        b'{"type":"message_start","message":{"id":"m","type":"message","role":"assistant","content":[],"model":"tiny-llama",'
        b'"stop_reason":null,"stop_sequence":null,"usage":{"cache_read_input_tokens":3,"input_tokens":9,"output_tokens":0}}}',
        b'{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}',
        b'{"type":"ping"}',
        block(0, '"type":"thinking_delta","thinking":"Hm. "'),
        block(0, '"type":"signature_delta","signature":"c2ln"'),
        b'{"type":"content_block_stop","index":0}',
        b'{"type":"content_block_start","index":1,"content_block":{"type":"text","text":""}}',
        block(1, '"type":"text_delta","text":"new"'),
        block(1, '"type":"text_delta","text":" Größe"'),
        b'{"type":"content_block_stop","index":1}',
        b'{"type":"message_delta","delta":{"stop_reason":"max_tokens","stop_sequence":null},"usage":{"output_tokens":4}}',
        b'{"type":"message_stop"}',
    )
    names = tuple(event.split(b'"')[3].decode() for event in transcript)
    answer = "Hm. new Größe"
    usage: ClassVar[dict[str, Any] | None] = {"cache_read_input_tokens": 3, "input_tokens": 9, "output_tokens": 4}
    whole = (
        '{"id":"m","type":"message","role":"assistant","content":[{"type":"thinking","thinking":"Hm. ","signature":"c2ln"},'
        '{"type":"text","text":"new Größe"}],"model":"tiny-llama","stop_reason":"max_tokens","stop_sequence":null,'
        '"usage":{"cache_read_input_tokens":3,"input_tokens":9,"output_tokens":4}}'
    ).encode()
    calling = (
        (
            b'{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}',
            block(0, '"type":"text_delta","text":"Let me see."'),
            b'{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"t1","name":"weather","input":{}}}',
            block(1, '"type":"input_json_delta","partial_json":""'),
            block(1, '"type":"input_json_delta","partial_json":"{\\"at\\":"'),
            block(1, '"type":"input_json_delta","partial_json":"\\"Lucca\\"}"'),
            b'{"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":4}}',
        ),
        (
            b'{"type":"message","role":"assistant","content":[{"type":"text","text":"Let me see."},{"type":"server_tool_use",'
            b'"id":"s1","name":"search","input":{}},{"type":"tool_use","id":"t1","name":"weather","input":{"at":"Lucca"}}]}',
        ),
    )
    called = (ToolCall("t1", "weather", '{"at":"Lucca"}'),)
    silent = (
        b'{"type":"ping"}',
        b'{"type":"message_stop"}',
        b'{"type":"content_block_stop","index":0}',
        b'{"type":"something_new","index":0}',
        b"[DONE]",
        block(0, '"type":"citations_delta","citation":{"type":"char_location"}'),
    )
    failure = b'{"type":"error","error":{"type":"overloaded_error","message":"busy"}}'
