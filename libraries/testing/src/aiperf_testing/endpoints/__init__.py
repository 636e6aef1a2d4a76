"""The contract of endpoints: a deterministic codec."""

from __future__ import annotations

import subprocess
import sys

import msgspec
from aiperf.sdk.endpoint import Capabilities

from aiperf_testing.endpoints.asking import AskingTests
from aiperf_testing.endpoints.decoding import DecodingTests
from aiperf_testing.endpoints.encoding import EncodingTests
from aiperf_testing.findings import unlike
from aiperf_testing.manifests import check_row, check_taken

_HEAVY = ("pydantic", "typer", "numpy", "stevedore", "tiktoken", "transformers")
"""What no worker needs, and takes long to import."""


class EndpointContract(EncodingTests, DecodingTests, AskingTests):
    """Subclass with an endpoint and an answer of its server, event by event::

        class TestMineKeepsTheContract(EndpointContract):
            endpoint = Mine()
            transcript = (b'{"t":"Hi"}', b"[END]")
            answer = "Hi"

    transcript: data of the events of a streamed answer; of an endpoint without streaming, its one body.
    names: their names, where the server names its events.
    stream: the bytes of the transcript, as the server frames them; None makes them where the framing is one of the kernel's.
    answer: text, reasoning and tool calls of the whole transcript, in order.  usage: of all its events, merged.
    numbers: values of the endpoint's ``numbers`` after the transcript; None checks only their names.
    calling: answers with the tool calls *called*, each the data of its events, streamed and not; () skips their tests.
    whole: the same answer without streaming; None skips its test.
    followed: of an endpoint with ``follow``, an answer of each exchange of a request, the last one included.
    drained: of an endpoint with ``drained``, a whole answer that has content.
    replies: of an endpoint with ``prepare``, what its server answers to each of its questions.  ready: of one with ``unready``,
    the answers of a server that is.
    turn: what is encoded; the endpoint's probe unless given.
    silent: events without visible content.  garbage: bytes that are no answer.
    """

    def test_the_capabilities_are_the_manifests(self) -> None:
        row = check_row("endpoints", type(self.endpoint))
        assert msgspec.convert(row.capabilities, Capabilities) == self.endpoint.capabilities, (
            unlike(row.capabilities, self.endpoint.capabilities, "write the class's capabilities into the manifest row")
        )
        schemes = [*msgspec.convert(row.capabilities, Capabilities).schemes]
        assert schemes == [*self.endpoint.capabilities.schemes], (
            unlike(schemes, [*self.endpoint.capabilities.schemes], "list the schemes in one order: a bare address is the first")
        )
        check_taken(row)

    def test_importing_it_stays_light_for_workers(self) -> None:
        # It may print, and leave a thread: the last line counts, and the process doesn't wait.
        code = f"import os, sys, {type(self.endpoint).__module__}; print(); print(*sys.modules, flush=True); os._exit(0)"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        heavy = sorted({*_HEAVY} & {*done.stdout.splitlines()[-1].split()})
        assert not heavy, f"its module imports {', '.join(heavy)}, which every worker waits for: import it where it is used"
