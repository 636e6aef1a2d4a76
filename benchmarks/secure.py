"""A server that speaks https, and a load that several workers share."""

from __future__ import annotations

import os
import tempfile
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tools import AiohttpLoop, Load, LoadError, Ours, Tool
from truth import certificate, truthd

if TYPE_CHECKING:
    from bench import Bench

WORKERS = (1, 2, 4)
CORES = 8
"""Fewer would be shared by workers, reducers and servers."""
SERVERS = 4
"""One is a single thread, which four workers would wait for."""


def tls(bench: Bench) -> None:
    """Beside the loop on aiohttp, which trusts the same certificate."""
    what = "https: TTFT error, 100 streams, 50 / 10 ms, 128 tokens"
    middle = bench.row("tls-p50", f"{what}: p50", "ms", 0.15, digits=3)
    tail = bench.row("tls-p99", "the same: p99", "ms", 3, digits=3)
    chunks = bench.row("tls-chunks", "https: chunks/s, 64 streams as fast as they come", "/s", 50_000, more=True, digits=0)
    tools: list[Tool] = [tool for tool in bench.tools if isinstance(tool, Ours | AiohttpLoop)]
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        try:
            names = certificate(Path(folder))
        except OSError as failure:
            raise LoadError(f"openssl, which makes the certificate, can't be run: {failure}") from failure
        load = Load(100, 600, 128, ca_file=names["TRUTHD_CERT"])
        for tool, said, server in bench.loads(50, 10, load, tools, tls=names):
            seen = server.stats()["ttft_ms"]
            if said.ttft_p50_ms is not None and said.ttft_p99_ms is not None:
                middle.add(tool.name, said.ttft_p50_ms - seen["p50"])
                tail.add(tool.name, said.ttft_p99_ms - seen["p99"])
        load = replace(load, connections=64, requests=4000)
        for tool, _, server in bench.loads(0, 0, load, tools, tls=names, shares={AiohttpLoop.name: 0.5}):
            chunks.add(tool.name, server.stats()["chunks_per_s"])


def workers(bench: Bench) -> None:
    """What two and four workers do, as a share of so many times what one does; and whether the reducers keep pace."""
    cores = len(os.sched_getaffinity(0))
    if cores < CORES:
        raise LoadError(f"workers are compared on {CORES} cores or more, and there are {cores}")
    for name, load, figure in (
        ("requests/s, no streaming", Load(256, 200_000, 32, streaming=False), "rps"),
        ("chunks/s", Load(256, 20_000, 128), "chunks_per_s"),
    ):
        for _ in range(bench.runs):
            alone = 0.0
            for count in WORKERS:
                size = replace(load, requests=round(load.requests * bench.scale) * count, workers=count)
                rate, lag = _shared(size, figure)
                alone = alone or rate
                if count > 1:
                    row = bench.row(
                        f"workers{count}-{figure}", f"{name}: {count} workers ÷ {count} × one", "", 0.8, more=True, digits=2
                    )
                    row.add(Ours.name, rate / (count * alone))
                behind = f"{name}, {'a worker' if count == 1 else f'{count} workers'}: reducer done after the last answer"
                bench.row(f"workers{count}-{figure}-reducer", behind, "× load", 1, digits=2).add(Ours.name, lag)


def _shared(load: Load, figure: str) -> tuple[float, float]:
    """What all servers saw together, per second; how long the reducers took behind the load, as a share of it."""
    with ExitStack() as stack:
        servers = [stack.enter_context(truthd(0, 0)) for _ in range(SERVERS)]
        said = Ours().run(servers[0].port, replace(load, further_ports=tuple(server.port for server in servers[1:])))
        seen: list[dict[str, Any]] = [server.stats() for server in servers]
    completed = sum(each["completed"] for each in seen)
    if completed != load.requests or said.reducer_lag is None:
        raise LoadError(f"the servers completed {completed} of {load.requests}")
    amount = completed * (load.tokens if figure == "chunks_per_s" else 1)
    return amount / max(each["duration_s"] for each in seen), said.reducer_lag
