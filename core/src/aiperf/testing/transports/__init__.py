"""The contract that every transport keeps."""

from __future__ import annotations

from aiperf.testing.manifests import check_row
from aiperf.testing.transports.answers import AnswerTests
from aiperf.testing.transports.connections import ConnectionTests
from aiperf.testing.transports.failures import FailureTests
from aiperf.testing.transports.stage import OK, Ear, Scene, Stage, play


class TransportContract(AnswerTests, ConnectionTests, FailureTests):
    """Subclass with the transport's class, made as the kernel makes it::

        class TestMineKeepsTheContract(TransportContract):
            transport = Mine
    """

    def test_its_manifest_says_what_it_is(self) -> None:
        check_row("transports", self.transport)


__all__ = ["OK", "Ear", "Scene", "Stage", "TransportContract", "play"]
