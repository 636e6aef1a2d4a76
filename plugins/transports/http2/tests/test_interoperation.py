"""grpcio as server of our calls, in all four kinds, and as client of a server on ``aiperf_http2``."""

from __future__ import annotations

import asyncio
import shutil
import socket
import subprocess
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from time import monotonic_ns
from typing import Any

import grpc
import grpc.aio
import pytest
from aiperf.sdk.plan import TlsPlan
from aiperf.sdk.transport import Exchange, Shape, TransportSettings
from aiperf_http2 import DataReceived, HeaderSet, HeadersReceived, Http2Connection
from aiperf_http2.grpc import MessageReader, framed
from aiperf_testing.server import Certificate
from aiperf_testing.transports import Ear
from aiperf_transport_http2 import Http2Transport

LONG = bytes(range(256)) * 8000


async def unary(request: bytes, context: Any) -> bytes:
    metadata = dict(context.invocation_metadata())
    if request == b"fail":
        context.set_trailing_metadata((("x-why-bin", b"\x00\x01"),))
        await context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, "voll: „100%“")
    if request == b"metadata":
        return repr((metadata["x-a"], metadata["x-b-bin"], context.time_remaining() < 11)).encode()
    return request[::-1]


async def server_stream(request: bytes, context: Any) -> AsyncIterator[bytes]:
    for number in range(int(request)):
        yield b"%d" % number


async def client_stream(requests: AsyncIterator[bytes], context: Any) -> bytes:
    return b"+".join([request async for request in requests])


async def both(requests: AsyncIterator[bytes], context: Any) -> AsyncIterator[bytes]:
    async for request in requests:
        yield request.upper()


HANDLERS = {
    "Unary": grpc.unary_unary_rpc_method_handler(unary), "Server": grpc.unary_stream_rpc_method_handler(server_stream),
    "Client": grpc.stream_unary_rpc_method_handler(client_stream), "Both": grpc.stream_stream_rpc_method_handler(both),
}  # fmt: skip


def calls(scene: Callable[[Callable[..., Any]], Any], certificate: Certificate | None = None, **options: Any) -> None:
    """Play *scene* with a function that calls a method of a server of grpcio: messages, error and trailers."""

    async def whole() -> None:
        server = grpc.aio.server(options=[("grpc.max_receive_message_length", -1), *options.get("server", ())])
        server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("t.T", HANDLERS),))
        if certificate is None:
            port = server.add_insecure_port("127.0.0.1:0")
        else:
            pair = Path(certificate.key).read_bytes(), Path(certificate.cert).read_bytes()
            port = server.add_secure_port("127.0.0.1:0", grpc.ssl_server_credentials([pair]))
        await server.start()
        scheme = "grpc" if certificate is None else "grpcs"
        tls = TlsPlan(ca_file=None if certificate is None else str(certificate.cert))
        ear, url = Ear(), f"{scheme}://127.0.0.1:{port}"
        transport = Http2Transport(TransportSettings(urls=(url,), tls=tls), ear, asyncio.get_running_loop())
        await transport.open()
        made = iter(range(1000))

        async def call(method: str, *parts: bytes, headers: dict[str, str] | None = None) -> tuple[list[bytes], Any, Any]:
            cuts = tuple((len(part), 1_000_000) for part in parts) if len(parts) > 1 else ()
            shape = Shape(f"{url}/t.T/{method}", {"Content-Type": "application/grpc", **(headers or {})}, (), parts=cuts)
            exchange = Exchange(next(made), shape, b"".join(parts), "id", "session", monotonic_ns())
            exchange.deadline_ns = monotonic_ns() + 10 * 10**9
            transport.send(exchange)
            await ear.until(lambda: exchange.request in ear.ends)
            got = [each[0] for each in ear.chunks.get(exchange.request, ())]
            return got, ear.ends[exchange.request][0], dict(ear.trails.get(exchange.request, ()))

        try:
            await asyncio.wait_for(scene(call), 60)
        finally:
            await transport.close()
            await server.stop(None)

    asyncio.run(whole())


async def four_kinds(call: Callable[..., Any]) -> None:
    got, error, trailers = await call("Unary", b"abc")
    assert (got, error, trailers["grpc-status"]) == ([b"cba"], None, "0")
    got, error, _ = await call("Unary", LONG)
    assert (got, error) == ([LONG[::-1]], None)
    got, error, _ = await call("Server", b"300")
    assert (got, error) == ([b"%d" % number for number in range(300)], None)
    got, error, _ = await call("Client", b"a", b"", b"c")
    assert (got, error) == ([b"a++c"], None)
    got, error, _ = await call("Both", b"a", b"b", LONG)
    assert (got, error) == ([b"A", b"B", LONG.upper()], None)


def test_grpcio_serves_all_four_kinds_of_call() -> None:
    calls(four_kinds)


def test_grpcio_serves_all_four_kinds_over_tls(tmp_path: Path) -> None:
    try:
        certificate = Certificate.made(tmp_path)
    except (FileNotFoundError, subprocess.CalledProcessError) as error:
        pytest.skip(str(error))
    calls(four_kinds, certificate)


def test_metadata_deadline_and_status_cross() -> None:
    async def scene(call: Callable[..., Any]) -> None:
        got, error, _ = await call("Unary", b"metadata", headers={"X-A": "1", "X-B-Bin": "AAECAw"})
        assert error is None and got == [repr(("1", b"\x00\x01\x02\x03", True)).encode()]
        _, error, trailers = await call("Unary", b"fail")
        assert (error.type, error.code, error.message) == ("RESOURCE_EXHAUSTED", 429, "voll: „100%“")
        assert trailers["x-why-bin"].rstrip("=") == "AAE" and trailers["grpc-message"] == "voll: „100%“"
        _, error, _ = await call("Nothing", b"")
        assert (error.type, error.code) == ("UNIMPLEMENTED", 501)

    calls(scene)


def test_many_calls_share_one_connection_of_grpcio() -> None:
    async def scene(call: Callable[..., Any]) -> None:
        answers = await asyncio.gather(*(call("Server", b"20") for _ in range(64)))
        assert all((len(got), error) == (20, None) for got, error, _ in answers)

    calls(scene, server=[("grpc.max_concurrent_streams", 7)])


async def served(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """A server of calls that echoes each message in capitals, as it comes."""
    http, readers = Http2Connection(client=False), dict[int, MessageReader]()
    writer.write(http.take())
    while data := await reader.read(1 << 16):
        for event in http.receive(data):
            if isinstance(event, HeadersReceived):
                http.head(event.stream, HeaderSet([(":status", "200"), ("content-type", "application/grpc")]))
                readers[event.stream.number] = MessageReader()
            elif isinstance(event, DataReceived):
                for message in readers[event.stream.number].feed(event.data):
                    http.send(event.stream, framed(message.upper()))
                if event.end:
                    http.finish(event.stream, HeaderSet([("grpc-status", "0")]))
        while data := http.take():
            writer.write(data)
    writer.close()


def test_grpcio_calls_a_server_of_ours_in_all_four_kinds() -> None:
    async def whole() -> None:
        server = await asyncio.start_server(served, "127.0.0.1", 0)
        async with grpc.aio.insecure_channel(f"127.0.0.1:{server.sockets[0].getsockname()[1]}") as channel:
            assert await channel.unary_unary("/t.T/M")(b"abc") == b"ABC"
            assert await channel.unary_unary("/t.T/M")(b"y" * 300_000) == b"Y" * 300_000
            assert [each async for each in channel.unary_stream("/t.T/M")(b"abc")] == [b"ABC"]
            assert await channel.stream_unary("/t.T/M")(iter([b"abc"])) == b"ABC"
            assert [each async for each in channel.stream_stream("/t.T/M")(iter([b"a", b"b"]))] == [b"A", b"B"]
        server.close()

    asyncio.run(whole())


NGHTTPX = shutil.which("nghttpx") or shutil.which("nghttpx", path="/usr/sbin")


@pytest.mark.skipif(NGHTTPX is None, reason="nghttpx is not installed (Debian: nghttp2-proxy)")
def test_nghttpx_before_a_server_carries_calls(tmp_path: Path) -> None:
    async def whole() -> None:
        server = await asyncio.start_server(served, "127.0.0.1", 0)
        back = server.sockets[0].getsockname()[1]
        with socket.create_server(("127.0.0.1", 0)) as free:
            front = free.getsockname()[1]
        words = [
            str(NGHTTPX), f"--conf={tmp_path}/none", f"--frontend=127.0.0.1,{front};no-tls",
            f"--backend=127.0.0.1,{back};;proto=h2", "--workers=1", f"--errorlog-file={tmp_path}/log", "--single-process",
        ]  # fmt: skip
        proxy = await asyncio.create_subprocess_exec(*words)
        ear, url = Ear(), f"grpc://127.0.0.1:{front}"
        transport = Http2Transport(TransportSettings(urls=(url,), tls=TlsPlan()), ear, asyncio.get_running_loop())
        await transport.open()
        made = iter(range(1000))

        def sent(kind: str, *parts: bytes) -> Exchange:
            cuts = tuple((len(part), 1_000_000) for part in parts) if len(parts) > 1 else ()
            exchange = Exchange(next(made), Shape(f"{url}/t.T/M", {"Content-Type": kind}, (), parts=cuts), b"".join(parts),
                                "id", "session", monotonic_ns())  # fmt: skip
            transport.send(exchange)
            return exchange

        async def over(exchange: Exchange) -> Any:
            await asyncio.wait_for(ear.until(lambda: exchange.request in ear.ends), 60)
            return ear.ends[exchange.request][0]

        try:
            while (error := await over(sent("application/grpc", b"up?"))) is not None:
                assert error.cause == "refused" and proxy.returncode is None, error
                await asyncio.sleep(0.01)
            calls = [sent("application/grpc", b"call %d" % number, b"more", LONG) for number in range(20)]
            assert [await over(call) for call in calls] == [None] * 20
            assert [[each[0] for each in ear.chunks[call.request]] for call in calls] == [
                [b"CALL %d" % number, b"MORE", LONG.upper()] for number in range(20)
            ]
        finally:
            server.close()
            await transport.close()
            proxy.terminate()
            await proxy.wait()

    asyncio.run(whole())
