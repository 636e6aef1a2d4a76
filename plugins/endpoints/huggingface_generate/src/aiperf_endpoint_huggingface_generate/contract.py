"""An answer in the form of TGI for the conformance suite.  For tests, and for ``aiperf plugins validate``."""

from __future__ import annotations

from typing import Any, ClassVar

from aiperf.testing import EndpointContract

from aiperf_endpoint_huggingface_generate import HuggingfaceGenerate


def token(text: str, rest: str = '"generated_text":null,"details":null', number: int = 1) -> bytes:
    said = f'{{"id":{400 + number},"text":"{text}","logprob":-0.5,"special":false}}'
    return f'{{"index":{number},"token":{said},{rest}}}'.encode()


class HuggingfaceGenerateContract(EndpointContract):
    endpoint = HuggingfaceGenerate()
    transcript = (
        token(" Grüße"),
        token(",", number=2),
        token(
            " cat",
            '"generated_text":" Grüße, cat","details":{"finish_reason":"length","generated_tokens":3,"input_length":5}',
            3,
        ),
    )
    answer = " Grüße, cat"
    usage: ClassVar[dict[str, Any] | None] = {"prompt_tokens": 5, "completion_tokens": 3}
    whole = (
        '{"generated_text":" Grüße, cat","details":{"finish_reason":"length","generated_tokens":3,"seed":null,'
        '"prefill":[{"id":1,"text":"Say","logprob":null}],"tokens":[]}}'
    ).encode()
    silent = (token(""), b"{}")
    failure = b'{"error":"busy","error_type":"overloaded"}'
