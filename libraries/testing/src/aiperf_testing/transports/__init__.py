"""The contracts that transports keep: every transport the one, those of HTTP the other as well."""

from __future__ import annotations

from aiperf_testing.manifests import check_row
from aiperf_testing.transports.answers import AnswerTests
from aiperf_testing.transports.connections import ConnectionTests
from aiperf_testing.transports.general import Act, GeneralTests
from aiperf_testing.transports.large_bodies import LargeBodyTests
from aiperf_testing.transports.limits import LimitTests
from aiperf_testing.transports.losses import LossTests
from aiperf_testing.transports.previews import PreviewTests
from aiperf_testing.transports.refusals import RefusalTests
from aiperf_testing.transports.stage import OK, Ear, Scene, Stage, play


class TransportContract(GeneralTests):
    """Subclass with the transport's class, and with ``serve``, a server that speaks its protocol::

        class TestMineKeepsTheContract(TransportContract):
            transport = Mine

            @asynccontextmanager
            async def serve(self, behaviour: str) -> AsyncIterator[str]:
                async with MyServer(behaviour) as server:
                    yield server.url
    """

    def test_its_manifest_says_what_it_is(self) -> None:
        can = check_row("transports", self.transport).capabilities
        schemes = [*can.get("schemes", ["http"]), *can.get("by_type", ())]
        assert isinstance(schemes, list) and schemes, "schemes is a list of URL schemes"
        assert all(isinstance(scheme, str) and scheme.islower() for scheme in schemes), "schemes are words in lower case"


class HttpTransportContract(
    TransportContract, AnswerTests, PreviewTests, ConnectionTests, RefusalTests, LimitTests, LossTests, LargeBodyTests
):
    """What a transport of HTTP/1.1 does, beside what every transport does::

        class TestMineKeepsTheContract(HttpTransportContract):
            transport = Mine
    """


__all__ = ["OK", "Act", "Ear", "HttpTransportContract", "Scene", "Stage", "TransportContract", "play"]
