"""A recorded answer of vLLM 0.32 for the conformance suite, shortened.  For tests, and for ``aiperf plugins validate``."""

from __future__ import annotations

from typing import Any, ClassVar

from aiperf.sdk.model import ToolCall
from aiperf.testing import EndpointContract

from aiperf_endpoint_responses import Responses

USAGE = {
    "input_tokens": 22, "input_tokens_details": {"cached_tokens": 0}, "output_tokens": 4,
    "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 26,
}  # fmt: skip
_USAGE = (
    '"usage":{"input_tokens":22,"input_tokens_details":{"cached_tokens":0},"output_tokens":4,'
    '"output_tokens_details":{"reasoning_tokens":0},"total_tokens":26}'
)
_ITEM = (
    '{"id":"msg_1","content":[{"annotations":[],"text":"WISE Col Größe","type":"output_text","logprobs":null}],'
    '"role":"assistant","status":"completed","type":"message"}'
)

_ARGUMENTS = '{\\"at\\": \\"Lucca\\"}'
_CALL = f'{{"id":"fc_1","call_id":"call_1","type":"function_call","name":"weather","arguments":"{_ARGUMENTS}"}}'


def event(kind: str, rest: str, number: int = 0) -> bytes:
    return f'{{{rest},"sequence_number":{number},"type":"{kind}"}}'.encode()


class ResponsesContract(EndpointContract):
    endpoint = Responses()
    transcript = (
        event("response.created", '"response":{"id":"resp_1","object":"response","status":"in_progress","usage":null}'),
        event("response.output_item.added", '"item":{"id":"msg_1","content":[],"type":"message"},"output_index":0', 2),
        event("response.content_part.added",
              '"content_index":0,"item_id":"msg_1","output_index":0,"part":{"text":"","type":"output_text"}', 3),
        event("response.output_text.delta",
              '"content_index":0,"delta":"WISE","item_id":"msg_1","logprobs":[],"output_index":0', 4),
        event("response.output_text.delta",
              '"content_index":0,"delta":" Col Größe","item_id":"msg_1","logprobs":[],"output_index":0', 5),
        event("response.output_text.done",
              '"content_index":0,"item_id":"msg_1","logprobs":[],"output_index":0,"text":"WISE Col Größe"', 6),
        event("response.output_item.done", f'"item":{_ITEM},"output_index":0', 8),
        event("response.completed",
              '"response":{"id":"resp_1","object":"response","status":"incomplete","incomplete_details":'
              f'{{"reason":"max_output_tokens"}},"output":[{_ITEM}],{_USAGE}}}', 9),
    )  # fmt: skip
    names = tuple(one.rpartition(b'"type":"')[2][:-2].decode() for one in transcript)
    answer = "WISE Col Größe"
    usage: ClassVar[dict[str, Any] | None] = USAGE
    whole = f'{{"id":"resp_2","object":"response","output":[{_ITEM}],"status":"completed",{_USAGE}}}'.encode()
    calling = (
        (
            event("response.output_item.added", f'"item":{_CALL.replace(_ARGUMENTS, "")},"output_index":0'),
            event("response.function_call_arguments.delta", '"delta":"{\\"at\\": ","item_id":"fc_1","output_index":0'),
            event("response.function_call_arguments.delta", '"delta":"\\"Lucca\\"}","item_id":"fc_1","output_index":0'),
            event("response.function_call_arguments.done", f'"arguments":"{_ARGUMENTS}","item_id":"fc_1","output_index":0'),
            event("response.output_item.done", f'"item":{_CALL},"output_index":0'),
            event("response.completed", f'"response":{{"id":"resp_1","status":"completed","output":[{_CALL}],{_USAGE}}}'),
        ),
        (f'{{"id":"resp_2","object":"response","output":[{_CALL}],"status":"completed",{_USAGE}}}'.encode(),),
    )  # fmt: skip
    called = (ToolCall("call_1", "weather", '{"at": "Lucca"}'),)
    silent = (
        b"[DONE]",
        event("response.in_progress", '"response":{"id":"resp_1"}'),
        event("response.web_search_call.searching", '"item_id":"ws_1","output_index":0'),
        event("response.something.new", '"delta":"not text"'),
    )
