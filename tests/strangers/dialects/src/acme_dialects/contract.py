"""What the contract of endpoints tries these dialects with."""

from __future__ import annotations

from aiperf.sdk.model import ToolCall
from aiperf.testing import EndpointContract

from acme_dialects.letters import Letters
from acme_dialects.llamas import Llamas
from acme_dialects.numbers import Numbers
from acme_dialects.sequences import Sequences

_THINKING = b'{"type":"thinking","thinking":"","signature":""}'


class LettersContract(EndpointContract):
    endpoint = Letters()
    transcript = (
        b'{"type":"message_start","message":{"id":"m","type":"message","role":"assistant","content":[],"container":{"id":"c1"},'
        b'"usage":{"input_tokens":1,"cache_read_input_tokens":21,"output_tokens":0}}}',
        b'{"type":"content_block_start","index":0,"content_block":%b}' % _THINKING,
        b'{"type":"ping"}',
        b'{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"Hm. "}}',
        b'{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"c2ln"}}',
        b'{"type":"content_block_stop","index":0}',
        b'{"type":"content_block_start","index":1,"content_block":{"type":"text","text":""}}',
        b'{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"new"}}',
        b'{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":" define"}}',
        b'{"type":"content_block_stop","index":1}',
        b'{"type":"message_delta","delta":{"stop_reason":"max_tokens","stop_sequence":null},"usage":{"output_tokens":4}}',
        b'{"type":"message_stop"}',
    )
    names = tuple(event.split(b'"')[3].decode() for event in transcript)
    answer = "Hm. new define"
    usage = {"input_tokens": 1, "cache_read_input_tokens": 21, "output_tokens": 4}
    whole = (
        b'{"id":"m","type":"message","role":"assistant","content":[{"type":"thinking","thinking":"Hm. ","signature":"c2ln"},'
        b'{"type":"text","text":"new define"}],"stop_reason":"max_tokens",'
        b'"usage":{"cache_read_input_tokens":21,"input_tokens":1,"output_tokens":4}}'
    )
    calling = (
        (
            b'{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"t1","name":"find","input":{}}}',
            b'{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{\\"word\\":"}}',
            b'{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"\\"key\\"}"}}',
        ),
        (b'{"type":"message","content":[{"type":"tool_use","id":"t1","name":"find","input":{"word":"key"}}]}',),
    )
    called = (ToolCall("t1", "find", '{"word":"key"}'),)
    silent = (b'{"type":"ping"}', b'{"type":"message_stop"}', b'{"type":"content_block_stop","index":0}')
    failure = b'{"type":"error","error":{"type":"overloaded_error","message":"busy"}}'


class LlamasContract(EndpointContract):
    endpoint = Llamas()
    transcript = (
        b'{"model":"m","message":{"role":"assistant","content":"","thinking":"Hm. "},"done":false}',
        b'{"model":"m","message":{"role":"assistant","content":"Hi"},"done":false}',
        b'{"model":"m","message":{"role":"assistant","content":" there"},"done":false}',
        b'{"model":"m","message":{"role":"assistant","content":""},"done":true,"done_reason":"stop","total_duration":4884,'
        b'"prompt_eval_count":26,"eval_count":3}',
    )
    answer = "Hm. Hi there"
    usage = {"prompt_tokens": 26, "completion_tokens": 3}
    whole = (
        b'{"model":"m","message":{"content":"Hi there","thinking":"Hm. "},"done":true,"prompt_eval_count":26,"eval_count":3}'
    )
    silent = (b'{"model":"m","message":{"role":"assistant","content":""},"done":false}',)
    failure = b'{"error":"busy"}'


class NumbersContract(EndpointContract):
    endpoint = Numbers()
    transcript = (b'{"said":"ab"}',)
    answer = "ab"


class SequencesContract(LlamasContract):
    endpoint = Sequences()
    stream = b"".join(b"\x1e%b\n" % text for text in LlamasContract.transcript)
