"""What the contract of endpoints tries the endpoint with."""

from __future__ import annotations

from aiperf.testing import EndpointContract

from acme_meters.endpoint import Metered


class MeteredContract(EndpointContract):
    endpoint = Metered()
    transcript = (b'{"choices":[{"text":"old"}]}', b'{"choices":[{"text":" sea"}]}', b'{"choices":[]}', b"[DONE]")
    answer = "old sea"
    numbers = {"joules": 3500.0, "items": 2.0}
    silent = (b"[DONE]", b'{"choices":[]}')
