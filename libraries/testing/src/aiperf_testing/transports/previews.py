"""Requests as they would be written, without sending them."""

from __future__ import annotations

from aiperf.sdk.transport import HeaderSource

from aiperf_testing.findings import unlike
from aiperf_testing.transports.stage import OK, OnStage, Stage


class PreviewTests(OnStage):
    """Requests as they would be written, without sending them."""

    def test_it_shows_the_headers_that_it_writes(self) -> None:
        """A dry run prints them; a transport without ``request_headers`` promises nothing."""

        async def scene(stage: Stage) -> None:
            if not isinstance(stage.transport, HeaderSource):
                return
            exchange = stage.exchange(b'{"q":1}')
            shown = list(stage.transport.request_headers(exchange))
            assert not stage.server.requests, "the headers of a request were asked for, and it was sent"
            stage.transport.send(exchange)
            error = await stage.over(exchange)
            assert error is None, f"a request whose headers were asked for before fails with {error}"
            written = [(name, value) for name, value in stage.server.requests[0].headers if name.lower() != "connection"]
            assert shown == written, unlike(shown, written, "give the headers in their order on the wire")

        self.play(scene, OK)
