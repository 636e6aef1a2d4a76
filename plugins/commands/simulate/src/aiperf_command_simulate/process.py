"""The process around the server: its socket, its signals, its totals at the end."""

from __future__ import annotations

import asyncio
import errno
import gc
import signal
import socket
import sys
from pathlib import Path

from aiperf.sdk.errors import AiperfError

from aiperf_command_simulate.http2 import Front
from aiperf_command_simulate.scenario import ServerScenario
from aiperf_command_simulate.server import Server


def _listening(host: str, port: int) -> socket.socket:
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        sock = socket.socket(family, kind, protocol)
    except OSError as exc:
        raise AiperfError(f"--host {host} is no address of this machine: {exc.strerror or exc}") from exc
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind(address)
    except OSError as exc:
        sock.close()
        foreign = exc.errno == errno.EADDRNOTAVAIL
        hint = "--host is an address of this machine, or 0.0.0.0 for all" if foreign else "--port 0 picks a free port"
        raise AiperfError(f"can't listen on {host} port {port}: {exc.strerror or exc}", hint) from exc
    return sock


def _local(path: Path) -> socket.socket:
    """A socket of this machine at *path*; one that an earlier server left there goes."""
    sock = socket.socket(socket.AF_UNIX)
    try:
        if path.is_socket():
            if sock.connect_ex(str(path)) == 0:
                raise AiperfError(f"--unix {path}: another server listens there", "choose another path")
            path.unlink()
            sock.close()
            sock = socket.socket(socket.AF_UNIX)
        sock.bind(str(path))
    except OSError as exc:
        sock.close()
        raise AiperfError(f"can't listen on --unix {path}: {exc.strerror or exc}", "choose another path") from exc
    return sock


def _raise_file_limit() -> None:
    if sys.platform == "win32":
        return
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


async def _serve(scenario: ServerScenario, sock: socket.socket, local: socket.socket | None) -> str:
    loop = asyncio.get_running_loop()
    stop = asyncio.Event()
    if sys.platform != "win32":
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, stop.set)
    server = Server(scenario, loop)
    listeners = [await loop.create_server(lambda: Front(server), sock=sock, backlog=4096, ssl=scenario.tls)]
    if local is not None:
        listeners.append(await loop.create_unix_server(lambda: Front(server), sock=local, backlog=4096))
    host, port = sock.getsockname()[:2]
    scheme = "https" if scenario.tls else "http"
    addresses = [f"{scheme}://{f'[{host}]' if ':' in host else host}:{port}"]
    if local is not None:
        addresses.append(f"unix://{local.getsockname()}")
    # In one piece: who waits for the first line may close the pipe behind it.
    sys.stdout.write("".join(f"simulator: listening on {address}\n" for address in addresses))
    sys.stdout.flush()
    # What is here now stays: collections needn't look at it, and pause the engine less often.
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)
    try:
        await stop.wait()
    finally:
        for listener in listeners:
            listener.close()
        totals = server.truth.paragraph()
        server.close()
        await asyncio.sleep(0)  # lets closed transports go before the loop does
    return totals


def serve(scenario: ServerScenario) -> None:
    """Serve until Ctrl-C or SIGTERM, then print the totals to stderr.

    Raises:
        AiperfError: The address can't be had.
    """
    _raise_file_limit()
    sock = _listening(scenario.host, scenario.port)
    local = None if scenario.unix is None else _local(scenario.unix)
    if sys.platform == "win32":
        factory = None
    else:
        import uvloop

        factory = uvloop.new_event_loop
    try:
        with asyncio.Runner(loop_factory=factory) as runner:
            totals = runner.run(_serve(scenario, sock, local))
    except KeyboardInterrupt:  # where loops know no signal handlers
        return
    finally:
        sock.close()
        if local is not None and scenario.unix is not None:
            local.close()
            scenario.unix.unlink(missing_ok=True)
    print(f"simulator: {totals}", file=sys.stderr)
