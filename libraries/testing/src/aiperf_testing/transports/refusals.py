"""Requests that never get a connection."""

from __future__ import annotations

import contextlib
import os
import resource
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from aiperf.sdk.plan import TlsPlan
from aiperf.sdk.transport import EXHAUSTED, REFUSED, REUSED

from aiperf_testing.findings import unlike
from aiperf_testing.server import (
    Certificate,
    Sleep,
)
from aiperf_testing.transports.stage import OK, PATIENCE_S, OnStage, Stage


@contextlib.contextmanager
def no_file_left() -> Iterator[None]:
    """No file or socket can be opened in this process."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    taken = [os.open(os.devnull, os.O_RDONLY)]
    resource.setrlimit(resource.RLIMIT_NOFILE, (taken[0] + 64, before[1]))
    try:
        with contextlib.suppress(OSError):
            while True:
                taken.append(os.dup(taken[0]))
        yield
    finally:
        for fd in taken:
            os.close(fd)
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


class RefusalTests(OnStage):
    """The server refuses, is silent, unknown or not trusted, or this process has no file left."""

    def test_a_refused_connection_is_an_error_that_names_the_server(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as taken:
            url = f"http://127.0.0.1:{taken.getsockname()[1]}"

        async def scene(stage: Stage) -> None:
            exchange, error = await stage.fail(url=f"{url}/v1")
            assert (exchange.status, exchange.sent_ns, error.cause) == (0, 0, REFUSED), (
                unlike(
                    (exchange.status, exchange.sent_ns, error.cause), (0, 0, REFUSED),
                    "end the exchange with a TransportError of that cause; nothing was sent",
                )
            )
            assert url.rpartition(":")[2] in error.message, unlike(error.message, url, "name the server in the message")

        self.play(scene, OK, urls=(url,))

    def test_a_server_that_is_gone_refuses_the_new_connection(self) -> None:
        async def scene(stage: Stage) -> None:
            await stage.ask()
            stage.server.stop_listening()
            stage.server.links[0].fin()
            exchange, error = await stage.fail()  # perhaps before the loop notices
            assert not exchange.flags & REUSED, "a connection that the server closed must not be used: open a new one"
            assert (exchange.sent_ns, exchange.sent_end_ns, error.cause) == (0, 0, REFUSED), (
                unlike((exchange.sent_ns, exchange.sent_end_ns, error.cause), (0, 0, REFUSED), "nothing was sent: say so")
            )

        self.play(scene, [*OK, Sleep(PATIENCE_S)])

    def test_an_exhausted_client_is_no_fault_of_the_server(self) -> None:
        async def scene(stage: Stage) -> None:
            with no_file_left():
                exchange, error = await stage.fail()
            assert (exchange.status, exchange.sent_ns, error.cause) == (0, 0, EXHAUSTED), (
                unlike(
                    (exchange.status, exchange.sent_ns, error.cause), (0, 0, EXHAUSTED),
                    "end the exchange with a TransportError of that cause; nothing was sent",
                )
            )
            assert "ulimit -n" in error.message, (
                unlike(error.message, "a message with ulimit -n", "say what to raise when files run out")
            )
            await stage.ask()

        self.play(scene, OK)

    def test_a_silent_handshake_ends_soon(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as silent:
            url = f"https://127.0.0.1:{silent.getsockname()[1]}"

            async def scene(stage: Stage) -> None:
                exchange, error = await stage.fail(url=f"{url}/v1")
                assert (exchange.status, exchange.sent_ns, error.cause) == (0, 0, REFUSED), (
                    unlike((exchange.status, exchange.sent_ns, error.cause), (0, 0, REFUSED), "nothing was sent: say so")
                )
                assert exchange.connect_ns > 0 and exchange.connected_ns == 0, (
                    "set connect_ns when TCP is open, and connected_ns behind the handshake: these tell a silent server"
                )
                assert "nothing answers TLS" in error.message and "0.5 s" in error.message, (
                    unlike(error.message, "a message with nothing answers TLS and 0.5 s", "name the cause and the limit")
                )

            self.play(scene, OK, urls=(url,), connect_s=0.5)

    @pytest.mark.parametrize("host", ["a." * 40 + "invalid", "x" * 70 + ".invalid"], ids=["no such name", "no name at all"])
    def test_a_name_that_cannot_be_resolved_is_every_requests_error(self, host: str) -> None:
        async def scene(stage: Stage) -> None:
            for _ in range(2):
                await stage.fail(url=f"http://{host}:1/v1")

        self.play(scene, OK, urls=(f"http://{host}:1",))

    def test_tls_with_an_unknown_certificate_is_an_error(self, certificate: Certificate) -> None:
        async def scene(stage: Stage) -> None:
            exchange, error = await stage.fail()
            assert exchange.status == 0, (
                unlike(exchange.status, 0, "a certificate that nobody knows ends the exchange with an error")
            )
            assert "certificate" in f"{error.type} {error.message}".lower(), (
                unlike(f"{error.type} {error.message}", "a message with certificate", "say what is wrong with it")
            )

        self.play(scene, OK, certificate=certificate, tls=TlsPlan())

    def test_a_missing_certificate_file_is_every_requests_error(self, certificate: Certificate, tmp_path: Path) -> None:
        async def scene(stage: Stage) -> None:
            await stage.fail()

        self.play(scene, OK, certificate=certificate, tls=TlsPlan(ca_file=str(tmp_path / "none.pem")))
