"""Which reader a transport takes, and what it says of it."""

from __future__ import annotations

import asyncio
import logging
import resource
import socket
import threading
import time
from pathlib import Path

import aiperf_reader
import pytest
from aiperf.sdk.errors import ConfigError
from aiperf.sdk.model import ErrorDetails
from aiperf.sdk.plan import TlsPlan
from aiperf.sdk.transport import Exchange, Shape, TransportSettings
from aiperf_reader import ReaderError
from aiperf_transport_sockets import KernelTransport, poller
from aiperf_transport_sockets.poller import chosen_reader

WHY = "it was installed where there is no C compiler, or no headers of Python"


@pytest.fixture
def missing(monkeypatch: pytest.MonkeyPatch) -> None:
    """There is no compiled file."""
    monkeypatch.setattr(aiperf_reader, "_missing", WHY)


@pytest.mark.parametrize("value", [None, "", " AUTO "])
def test_without_a_word_the_thread_reads(value: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AIPERF_READER") if value is None else monkeypatch.setenv("AIPERF_READER", value)
    try:
        aiperf_reader.SocketReader.opened().close()
    except ReaderError as error:
        pytest.skip(str(error))
    reader = chosen_reader()
    assert reader is not None
    reader.close()


@pytest.mark.usefixtures("missing")
def test_without_a_compiled_file_the_loop_reads_and_one_line_says_why(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.delenv("AIPERF_READER")
    with caplog.at_level(logging.INFO, "aiperf"):
        assert chosen_reader() is None
    (record,) = caplog.records
    assert record.levelno == logging.INFO
    assert record.getMessage() == (
        "the workers' loops read the sockets, so that more chunks merge on a busy machine:"
        f" aiperf-reader has no compiled file for this machine: {WHY}"
    )


def test_a_compiled_file_of_earlier_sources_is_told(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, tmp_path: Path, reader: str
) -> None:
    monkeypatch.setattr(aiperf_reader, "stale_sources", lambda: tmp_path)
    with caplog.at_level(logging.WARNING, "aiperf"):
        if (made := chosen_reader()) is not None:
            made.close()
    says = f"the sockets' reader was compiled from other sources than {tmp_path} has; compile it again: make install"
    assert [record.getMessage() for record in caplog.records] == ([says] if reader == "compiled" else [])


@pytest.mark.usefixtures("missing")
def test_a_thread_that_is_demanded_and_missing_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIPERF_READER", "compiled")
    with pytest.raises(ConfigError) as caught:
        chosen_reader()
    assert str(caught.value) == (
        f"AIPERF_READER is compiled, and aiperf-reader has no compiled file for this machine: {WHY};"
        " AIPERF_READER=python reads without it"
    )
    monkeypatch.setenv("AIPERF_READER", "python")
    assert chosen_reader() is None


def test_another_word_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIPERF_READER", "fast")
    with pytest.raises(ConfigError, match="AIPERF_READER is 'fast'; it must be auto, compiled or python"):
        chosen_reader()


@pytest.mark.parametrize("sockets", [3, 16, 100])
def test_long_writes_leave_the_loop_its_turns_and_no_socket_out(
    sockets: int, monkeypatch: pytest.MonkeyPatch, reader: str
) -> None:
    """Each write takes 0.1 ms by the poller's clock: so many in one turn as take 0.2 ms, of four that are ready together."""
    if reader == "python":
        pytest.skip("its turns are of 16 sockets")
    clock = [0]
    monkeypatch.setattr(poller, "monotonic_ns", lambda: clock[0])

    async def scene() -> None:
        made = chosen_reader()
        assert made is not None
        turns, written = [0], [0] * sockets
        tested = poller.ReaderPoller(asyncio.get_running_loop(), lambda: turns.append(0), made)
        pairs = [socket.socketpair() for _ in range(sockets)]

        def write(number: int) -> None:
            clock[0] += 100_000
            turns[-1] += 1
            written[number] += 1

        for number, (near, _) in enumerate(pairs):
            tested.watch(near.fileno(), None, lambda number=number: write(number))  # type: ignore[misc]
        while min(written) < 5:
            await asyncio.sleep(0)
        for near, far in pairs:
            tested.watch(near.fileno(), None)
            near.close()
            far.close()
        tested.close()
        assert max(turns) <= 4
        assert max(written) <= min(written) + 2

    asyncio.run(asyncio.wait_for(scene(), PATIENCE_S))


FLOOD_BYTES, PATIENCE_S = 64 << 20, 60.0
"""Far more than the ring; against hanging."""


class Slow:
    """A sink that stands still at the first piece until reading pauses, where a thread reads."""

    def __init__(self) -> None:
        self.received, self.over = 0, asyncio.Event()
        self.error: ErrorDetails | None = None
        self.transport: KernelTransport | None = None

    def chunk(self, exchange: Exchange, body: bytes, kernel_ns: int, read_ns: int, hidden: int) -> None:
        assert self.transport is not None
        reader, until_s = self.transport.reader, time.monotonic() + PATIENCE_S
        while reader is not None and not reader.pauses[0] and time.monotonic() < until_s:
            time.sleep(0.001)
        self.received += len(body)

    def done(self, exchange: Exchange, error: ErrorDetails | None) -> None:
        self.error = error
        self.over.set()

    def message(self, exchange: Exchange, data: bytes, kernel_ns: int, read_ns: int, hidden: int = 0) -> None: ...
    def trailers(self, exchange: Exchange, trailers: list[tuple[str, str]]) -> None: ...
    def head(self, exchange: Exchange, status: int, reason: str, headers: list[tuple[str, str]]) -> None: ...
    def written(self, exchange: Exchange) -> None: ...


def flood(listening: socket.socket) -> None:
    """Answers one request with as much as goes, as fast as it goes."""
    near, _ = listening.accept()
    with near:
        near.recv(65536)
        near.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % FLOOD_BYTES)
        for _ in range(FLOOD_BYTES >> 20):
            near.sendall(bytes(1 << 20))


def test_a_server_faster_than_the_worker_is_slowed_down_and_nothing_is_lost(reader: str) -> None:
    before_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    async def scene(url: str) -> dict[str, int]:
        sink = Slow()
        transport = sink.transport = KernelTransport(TransportSettings((url,), TlsPlan()), sink, asyncio.get_running_loop())
        await transport.open()
        transport.send(Exchange(0, Shape(f"{url}/ask", {}, ()), b"", "r", "s", 0))
        await asyncio.wait_for(sink.over.wait(), PATIENCE_S)
        assert (sink.error, sink.received) == (None, FLOOD_BYTES)
        counts = transport.statistics
        await transport.close()
        return counts

    with socket.create_server(("127.0.0.1", 0)) as listening:
        server = threading.Thread(target=flood, args=(listening,))
        server.start()
        counts = asyncio.run(scene(f"http://127.0.0.1:{listening.getsockname()[1]}"))
        server.join()
    assert (counts["reader_pauses"] > 0, counts["reader_paused_ns"] > 0) == (reader == "compiled",) * 2
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before_kb < FLOOD_BYTES >> 11, "half of the flood, in KiB"
