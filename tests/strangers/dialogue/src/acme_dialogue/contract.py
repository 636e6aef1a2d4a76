"""The contract of the endpoint, with its material."""

from __future__ import annotations

from aiperf.testing import EndpointContract

from acme_dialogue import Dialogue


class DialogueContract(EndpointContract):
    endpoint = Dialogue()
    transcript = (b"\x0a\x05Hello", b"\x0a\x05there")
    answer = "Hello there "
