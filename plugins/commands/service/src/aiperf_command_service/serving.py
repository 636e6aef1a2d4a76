"""The service on its ports, from its first line to its exit code."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import aiohttp
from aiohttp import web
from aiperf import ConfigError
from aiperf.parts.processes import ask_for_short_slices, set_session_nice
from aiperf_pages.guard import Guard, Refusal
from aiperf_pages.ports import address_of, listen
from aiperf_pages.server import Doors, Server

from aiperf_command_service.book import ENDED, Book, Entry
from aiperf_command_service.child import words
from aiperf_command_service.intake import Faulty, Limits
from aiperf_command_service.keeper import Keeper
from aiperf_command_service.ready import Ready
from aiperf_command_service.routes import PROBES, PROBLEM, ServiceRoutes, TokenGuard, as_problem

_NICE = 5
"""How far the service stands back behind its run (Linux: of a thread)."""


class Addresses(NamedTuple):
    """Where the service listens, and where the probes do, if that is elsewhere (a host of None is the service's)."""

    host: str
    port: int
    health_host: str | None
    health_port: int | None


async def serve(
    book: Book, limits: Limits, addresses: Addresses, token: str, file: Path | None, grace_s: float, *, shown: bool
) -> int:  # fmt: skip
    """Serve until a signal, or until the run of *file* has ended; the exit code.  *shown*: the token is printed."""
    launcher = ThreadPoolExecutor(1)
    launcher.submit(threading.get_ident).result()  # it begins now, with the priority that runs have
    os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICE)
    ask_for_short_slices()  # who has only few of a core's leaves it sooner
    set_session_nice(os.getpid(), _NICE)  # where it leads one, as the only program of a system's unit or a container does
    keeper, ended = Keeper(book, limits, launcher), asyncio.Event()
    if file is None:  # the operator's own run begins at once
        following = Entry("the-run-that-comes-next-", 0, "", [])  # an id as long as others
        own = words(book.file(following), book.results(following))
        keeper.intake.ready = Ready(launcher, lambda: (keeper.intake.variables, keeper.intake.where), own)
    loop = asyncio.get_running_loop()

    def signalled() -> None:
        keeper.hurry() if ended.is_set() else ended.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, signalled)
    listening = listen(addresses.host, addresses.port)
    async with aiohttp.ClientSession(auto_decompress=False) as client:
        routes = ServiceRoutes(keeper, client)
        servers = [Server(routes.application(), TokenGuard(addresses.host, token), listening, Doors(media=PROBLEM))]
        if addresses.health_port is not None:
            host = addresses.health_host or addresses.host
            probes = web.Application()
            probes.on_response_prepare.append(as_problem)
            routes.add_probes(probes)
            port = listen(host, addresses.health_port)
            servers.append(Server(probes, Guard(host, token, PROBES), port, Doors(media=PROBLEM)))
        for server in servers:
            await server.start()
        print(f"the service is on {address_of(addresses.host, listening)}", flush=True)
        if shown:
            print(f"the token, printed once: {token}", flush=True)
        await keeper.recover()
        work = asyncio.create_task(keeper.work())
        work.add_done_callback(lambda _: ended.set())
        code = await _until(keeper, ended, file, grace_s)
        failed = work.done() and not work.cancelled() and work.exception() is not None
        work.cancel()
        for server in servers:
            await server.stop()
        if failed:
            await work  # with its traceback: a service that runs nothing must not look well
    return code


async def _until(keeper: Keeper, ended: asyncio.Event, file: Path | None, grace_s: float) -> int:
    """Until the service is to end; its exit code."""
    if file is None:
        await ended.wait()
        await keeper.drain(grace_s)
        print("stopped", file=sys.stderr)
        return 0
    try:
        entry = await keeper.intake.take_own(file)
    except Faulty as faulty:
        hints = [
            f"{fault.path}{f' (line {fault.line})' if fault.line else ''}: {fault.sentence}" for fault in faulty.found.faults
        ]
        raise ConfigError(f"{file} has {len(hints)} fault{'' if len(hints) == 1 else 's'}", *hints) from None
    except Refusal as refusal:
        raise ConfigError(f"{file} can't be run: {refusal.sentence}") from None
    waiting = asyncio.create_task(ended.wait())
    while entry.state not in ENDED:
        async with keeper.changed:
            changed = asyncio.ensure_future(keeper.changed.wait())
            await asyncio.wait([changed, waiting], return_when=asyncio.FIRST_COMPLETED)
            if not changed.done():
                changed.cancel()
                await asyncio.gather(changed, return_exceptions=True)
        if ended.is_set():
            await keeper.drain(grace_s)
            break
    waiting.cancel()
    return 1 if entry.code is None else entry.code


__all__ = ["Addresses", "serve"]
