"""Material for the conformance suite.  For tests, and for ``aiperf plugins validate``."""

from __future__ import annotations

from typing import Any, ClassVar

from aiperf import Turn
from aiperf.testing import EndpointContract

from aiperf_endpoint_template import Raw, Template
from aiperf_endpoint_template.options import RawOptions, TemplateOptions

TEMPLATE = '{"q": {{ text|tojson }}, "k": {{ max_tokens or 16 }}, "hist": {{ turns|length }}}'


class TemplateContract(EndpointContract):
    endpoint = Template(TemplateOptions(payload_template=TEMPLATE))
    transcript = (
        b'{"text":""}',
        '{"text":"Grüße, "}'.encode(),
        b'{"text":"cat"}',
        b'{"usage":{"prompt_tokens":9,"completion_tokens":2}}',
        b"[DONE]",
    )
    answer = "Grüße, cat"
    usage: ClassVar[dict[str, Any] | None] = {"prompt_tokens": 9, "completion_tokens": 2}
    whole = '{"text":"Grüße, cat"}'.encode()
    silent = (b"[DONE]", b'{"text":""}', b'{"other":1}', b'{"usage":{}}')


class RawContract(EndpointContract):
    endpoint = Raw(RawOptions(response_field="choices[0].delta.content"))
    turn = Turn(payload={"messages": [{"role": "user", "content": "Hi"}], "stream": True})
    transcript = (
        b'{"choices":[{"delta":{"role":"assistant"}}]}',
        '{"choices":[{"delta":{"content":"Grüße, "}}]}'.encode(),
        b'{"choices":[{"delta":{"content":"cat"},"finish_reason":"stop"}]}',
        b"[DONE]",
    )
    answer = "Grüße, cat"
    whole = '{"choices":[{"message":{"content":"Grüße, cat"}}]}'.encode()
    silent = (b"[DONE]", b'{"choices":[]}')
    garbage = (b"\xff\xfe\x00",)
