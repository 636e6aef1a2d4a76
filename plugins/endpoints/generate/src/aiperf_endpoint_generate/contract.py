"""A recorded answer for the conformance suite, event by event.  For tests, and for ``aiperf plugins validate``."""

from __future__ import annotations

from aiperf.testing import EndpointContract

from aiperf_endpoint_generate import Generate


class GenerateContract(EndpointContract):
    endpoint = Generate()
    transcript = (
        b'{"model_name":"echo","model_version":"1","text_output":"hello"}',
        b'{"model_name":"echo","model_version":"1","text_output":" big"}',
        b'{"model_name":"echo","model_version":"1","text_output":" world"}',
    )
    answer = "hello big world"
    whole = b'{"model_name":"echo_once","model_version":"1","text_output":"hello big world"}'
    silent = (b'{"model_name":"echo","model_version":"1","text_output":""}', b'{"model_name":"echo"}', b"[DONE]")
    failure = b'{"error":"busy"}'


class GrowingContract(GenerateContract):
    """The same of a model that repeats the text so far."""

    transcript = (
        b'{"model_name":"echo","text_output":"hello"}',
        b'{"model_name":"echo","text_output":"hello big"}',
        b'{"model_name":"echo","text_output":"hello big world"}',
    )
