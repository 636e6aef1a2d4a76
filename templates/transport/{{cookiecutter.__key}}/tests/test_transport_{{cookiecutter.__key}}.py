"""The {{ cookiecutter.name }} transport."""

from __future__ import annotations

from aiperf.testing import Expect, HttpTransportContract, Send, Stage, answer

from {{ cookiecutter.__module }} import WIRE_S, {{ cookiecutter.__class }}


class TestItKeepsTheContract(HttpTransportContract):
    transport = {{ cookiecutter.__class }}

    def test_a_request_sets_out_later(self) -> None:
        async def scene(stage: Stage) -> None:
            exchange = await stage.ask()
            assert exchange.sent_ns - exchange.started_ns >= WIRE_S * 1e9

        self.play(scene, [Expect(), Send(answer(b"{}"))])
