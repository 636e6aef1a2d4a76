"""The default transport keeps the contract, on both loops it may run on."""

import asyncio
import errno
import os
import socket
from typing import Any

import pytest
import uvloop
from aiperf.registry.registry import Registry
from aiperf.testing import HttpTransportContract, TransportContract
from aiperf_testing.manifests import check_row
from aiperf_testing.server import UntilClosed
from aiperf_testing.transports import OK, Stage, play
from aiperf_transport_sockets import KernelTransport


class TestKernelTransportOnUvloop(HttpTransportContract):
    transport = KernelTransport
    loop_factory = uvloop.new_event_loop


class TestKernelTransportOnAsyncio(HttpTransportContract):
    transport = KernelTransport
    loop_factory = asyncio.new_event_loop


class Misdeclared(KernelTransport):
    stamps = "read"


def test_a_transport_that_misdeclares_its_stamps_is_caught() -> None:
    contract = type("Contract", (TransportContract,), {"transport": Misdeclared})
    for _ in range(100):  # the system begins to stamp a little behind the first socket that asks for it
        try:
            contract().test_its_stamps_are_those_that_it_declares()
        except AssertionError as error:
            assert "it declares read stamps" in str(error)
            return
    pytest.fail("stamps of the kernel passed for those of reads")


def test_its_name_is_that_of_the_time_in_the_kernel() -> None:
    row = check_row("transports", KernelTransport)
    assert (row.name, row.aliases) == ("kernel", ("http",))
    assert Registry.discover(cache=False).descriptor("transports", "http").name == "kernel"


def test_a_peer_that_is_gone_is_noticed_as_the_environment_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIPERF_HTTP_TCP_KEEPIDLE", "7")
    monkeypatch.setenv("AIPERF_HTTP_SO_RCVBUF", "65536")

    async def scene(stage: Stage) -> None:
        await stage.ask(b"{}")
        transport = stage.transport
        assert isinstance(transport, KernelTransport)
        (connection,) = transport.open_connections
        assert connection.sock is not None
        read = connection.sock.getsockopt
        assert read(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
        assert (read(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE), read(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL)) == (7, 30)
        assert read(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) == 30_000
        assert read(socket.SOL_SOCKET, socket.SO_RCVBUF) == 2 * 65536, "Linux doubles it"

    play(KernelTransport, scene, [*OK, UntilClosed()])


class NoPortLeft(socket.socket):
    def connect_ex(self, address: Any) -> int:
        return errno.EADDRNOTAVAIL


class NoFileLeft(socket.socket):
    def __init__(self, *family_and_kind: int) -> None:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))


@pytest.mark.parametrize(("kind", "limit"), [(NoPortLeft, "net.ipv4.ip_local_port_range"), (NoFileLeft, "ulimit -n")])
def test_a_limit_of_the_machine_is_named(monkeypatch: pytest.MonkeyPatch, kind: type[socket.socket], limit: str) -> None:
    async def scene(stage: Stage) -> None:
        monkeypatch.setattr("aiperf_transport_sockets.connection.socket.socket", kind)
        exchange, error = await stage.fail()
        assert exchange.status == 0
        assert limit in error.message and str(stage.server.port) in error.message

    play(KernelTransport, scene, OK)
