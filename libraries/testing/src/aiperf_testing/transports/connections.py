"""Connections: reused, opened ahead, encrypted, closed."""

from __future__ import annotations

import asyncio
import gc
import socket
import weakref

from aiperf.sdk.plan import TlsPlan
from aiperf.sdk.transport import REUSED, Shape

from aiperf_testing.findings import unlike
from aiperf_testing.server import (
    Certificate,
    Expect,
    UntilClosed,
)
from aiperf_testing.transports.stage import OK, PATIENCE_S, OnStage, Stage


class ConnectionTests(OnStage):
    """Connections: reused, opened ahead, encrypted, closed."""

    def test_shapes_of_past_requests_are_not_kept(self) -> None:
        async def scene(stage: Stage) -> None:
            shapes: list[weakref.ref[Shape]] = []

            async def ask(number: int) -> None:
                exchange = stage.exchange()
                exchange.shape = Shape(exchange.shape.url, {"X-Number": str(number)}, ())
                shapes.append(weakref.ref(exchange.shape))
                stage.transport.send(exchange)
                assert await stage.over(exchange) is None, "a request failed on a good server: its exchange must end with None"

            for number in range(20):
                await ask(number)
            assert [request.header("X-Number") for request in stage.server.requests] == [str(n) for n in range(20)], (
                "requests came in another order, or with another header: encode each from its own shape"
            )
            gc.collect()
            assert sum(shape() is not None for shape in shapes) <= 2, (
                "shapes of past requests are kept: hold them weakly, or a few of them"
            )

        self.play(scene, OK * 20)

    def test_connections_are_used_again(self) -> None:
        async def scene(stage: Stage) -> None:
            exchanges = [await stage.ask() for _ in range(3)]
            assert [bool(each.flags & REUSED) for each in exchanges] == [False, True, True], (
                unlike(
                    [bool(each.flags & REUSED) for each in exchanges], [False, True, True],
                    "use a connection again, and set REUSED then alone",
                )
            )
            assert [each.connect_ns > 0 for each in exchanges] == [True, False, False], (
                "connect_ns is for the request that opened the connection alone: 0 elsewhere"
            )
            assert all(each.connected_ns >= each.started_ns for each in exchanges), (
                "connected_ns is before started_ns: stamp it when the connection is the request's"
            )
            assert len(stage.server.links) == 1, (
                unlike(len(stage.server.links), 1, "use a connection again, and set REUSED then alone")
            )
            assert stage.transport.statistics["opened"] == 1, (
                unlike(stage.transport.statistics["opened"], 1, "count opened connections")
            )

        self.play(scene, OK * 3)

    def test_a_session_of_its_own_keeps_its_connection_until_its_final_turn(self) -> None:
        async def scene(stage: Stage) -> None:
            for turn in range(3):
                asked = []
                for name in ("a", "b"):
                    exchange = stage.exchange()
                    exchange.session_id, exchange.final = name, turn == 2
                    stage.transport.send(exchange)
                    asked.append(exchange)
                for exchange in asked:
                    assert await stage.over(exchange) is None, (
                        "a request failed on a good server: its exchange must end with None"
                    )
            shared = {request.connection for request in stage.server.requests if request.header("X-Correlation-ID") == "a"}
            assert [len(shared), len(stage.server.links)] == [1, 2], (
                "a session with a connection of its own shares it: keep it until its final turn"
            )
            for link in stage.server.links:
                await asyncio.wait_for(link.closed.wait(), PATIENCE_S)

        self.play(scene, [*OK * 3, UntilClosed()], sticky=True)

    def test_a_session_can_part_from_its_connection(self) -> None:
        async def scene(stage: Stage) -> None:
            part = getattr(stage.transport, "part", None)
            if part is None:
                return  # it is optional
            exchange = stage.exchange()
            exchange.final = False
            stage.transport.send(exchange)
            assert await stage.over(exchange) is None, "a request failed on a good server: its exchange must end with None"
            part(exchange.session_id)
            part("of no session")
            (link,) = stage.server.links
            await asyncio.wait_for(link.closed.wait(), PATIENCE_S)

        self.play(scene, [*OK, UntilClosed()], sticky=True)

    def test_an_armed_exchange_reports_when_the_request_is_written(self) -> None:
        async def scene(stage: Stage) -> None:
            exchange = stage.exchange(b"x" * 3_000_000)
            exchange.armed = True
            stage.transport.send(exchange)
            assert await stage.over(exchange) is None, "a request failed on a good server: its exchange must end with None"
            other = await stage.ask()
            assert stage.ear.whole == [exchange.request], (
                unlike(stage.ear.whole, [exchange.request], "call written once, for an armed exchange alone")
            )
            assert exchange.sent_ns <= exchange.sent_end_ns, (
                unlike(
                    (exchange.sent_ns, exchange.sent_end_ns), "times in their order",
                    "stamp each in its turn, with the monotonic clock",
                )
            )
            assert other.sent_end_ns > 0, "sent_end_ns is 0 behind a request that was written: stamp it for every exchange"

        self.play(scene, OK * 2)

    def test_without_reuse_every_request_has_a_connection_and_closes_it(self) -> None:
        async def scene(stage: Stage) -> None:
            exchanges = [await stage.ask() for _ in range(3)]
            assert not any(each.flags & REUSED for each in exchanges), (
                "a connection was used again although reuse is switched off: close each behind its answer"
            )
            assert len(stage.server.links) == 3, unlike(len(stage.server.links), 3, "open a connection for each request")
            for link in stage.server.links:
                await asyncio.wait_for(link.closed.wait(), PATIENCE_S)

        self.play(scene, [*OK, UntilClosed()], reuse=False)

    def test_connections_can_be_opened_ahead(self) -> None:
        async def scene(stage: Stage) -> None:
            await stage.transport.warm(3)
            exchanges = [stage.exchange() for _ in range(4)]
            for exchange in exchanges:
                stage.transport.send(exchange)
            await stage.ear.until(lambda: len(stage.ear.ends) == 4)
            assert [bool(each.flags & REUSED) for each in exchanges] == [True, True, True, False], (
                "the first three requests use the connections that open() opened, and the fourth a new one"
            )
            assert len(stage.server.links) == stage.transport.statistics["opened"] == 4, (
                unlike(len(stage.server.links), 4, "open as many ahead as asked for, and count them")
            )

        self.play(scene, OK)

    def test_nothing_is_opened_ahead_where_nothing_is_kept(self) -> None:
        async def scene(stage: Stage) -> None:
            await stage.transport.warm(3)
            await stage.ask()
            assert len(stage.server.links) == 1, unlike(len(stage.server.links), 1, "open nothing ahead where nothing is kept")

        self.play(scene, OK, reuse=False)

    def test_opening_ahead_leaves_errors_to_the_requests(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as taken:
            url = f"http://127.0.0.1:{taken.getsockname()[1]}"

        async def scene(stage: Stage) -> None:
            await stage.transport.warm(3)
            assert stage.ear.ends == {}, unlike(stage.ear.ends, {}, "an error while opening ahead ends no exchange")
            await stage.fail(url=f"{url}/v1")

        self.play(scene, OK, urls=(url,))

    def test_the_engine_may_send_from_inside_done(self) -> None:
        async def scene(stage: Stage) -> None:
            exchanges = [stage.exchange() for _ in range(4)]
            stage.ear.on_done = lambda _: stage.transport.send(exchanges.pop()) if exchanges else None
            await stage.ask()
            await stage.ear.until(lambda: len(stage.ear.ends) == 5)
            assert [ends for ends in stage.ear.ends.values() if ends != [None]] == [], (
                unlike(
                    [ends for ends in stage.ear.ends.values() if ends != [None]], [],
                    "end the exchange once, with None or its error",
                )
            )
            assert len(stage.server.links) == 1, (
                unlike(len(stage.server.links), 1, "use a connection again, and set REUSED then alone")
            )

        self.play(scene, OK * 5)

    def test_many_requests_share_nothing_but_the_loop(self) -> None:
        async def scene(stage: Stage) -> None:
            exchanges = [stage.exchange(b"%d" % i) for i in range(50)]
            for exchange in exchanges:
                stage.transport.send(exchange)
            await stage.ear.until(lambda: len(stage.ear.ends) == 50)
            assert {ends[0] for ends in stage.ear.ends.values()} == {None}, (
                unlike({ends[0] for ends in stage.ear.ends.values()}, {None}, "end the exchange once, with None or its error")
            )
            assert sorted(got.body for got in stage.server.requests) == sorted(each.body for each in exchanges), (
                "the server got other bodies than were sent: write each request whole, without others between"
            )

        self.play(scene, OK)

    def test_tls_with_a_trusted_certificate_works_and_is_reused(self, certificate: Certificate) -> None:
        async def scene(stage: Stage) -> None:
            first, second = await stage.ask(), await stage.ask()
            assert stage.ear.body(first) == stage.ear.body(second) == b'{"a":1}', (
                "an answer over TLS has another body: read it as one without TLS"
            )
            assert second.flags & REUSED, "use a connection again, and set REUSED then alone, over TLS, too"
            assert stage.server.requests[0].header("Host") == f"127.0.0.1:{stage.server.port}", (
                unlike(stage.server.requests[0].header("Host"), f"127.0.0.1:{stage.server.port}", "name host and port")
            )

        self.play(scene, OK * 2, certificate=certificate)

    def test_tls_without_verification_accepts_any_certificate(self, certificate: Certificate) -> None:
        async def scene(stage: Stage) -> None:
            await stage.ask()

        self.play(scene, OK, certificate=certificate, tls=TlsPlan(verify=False))

    def test_close_ends_what_is_open(self) -> None:
        async def scene(stage: Stage) -> None:
            await stage.ask()
            stage.transport.send(stage.exchange())
            await asyncio.sleep(0.01)
            await stage.transport.close()
            for link in stage.server.links:
                await asyncio.wait_for(link.closed.wait(), PATIENCE_S)

        self.play(scene, [*OK, Expect(), UntilClosed()])
