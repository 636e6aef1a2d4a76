"""A server that speaks https."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from tools import AiohttpLoop, Load, LoadError, Ours, Tool
from truth import certificate

if TYPE_CHECKING:
    from bench import Bench


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
