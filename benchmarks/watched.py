"""What a run costs that 20 clients watch over its API, 10 times a second each, at idle priority.

usage: watched.py [--pairs 10] [--clients 20] [--hz 10] [--only streams10 streams300 requests]

Alternating pairs against truthd: `--ui none`, and the same with `--api-port` and the clients.  Prints medians: errors of TTFT
(what the client says less what the server saw) or requests/s, and peak memory of the API's process.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

from bench import machine
from truth import Truth, truthd

PATHS = ("/api/progress", "/api/metrics", "/api/workers", "/metrics")
PROGRAM = Path(sys.executable).with_name("aiperf")


class WatchedLoad(NamedTuple):
    """A closed loop.  ttft_ms, itl_ms: of the server.  tokens: of an answer; streams: whether it is streamed."""

    ttft_ms: float
    itl_ms: float
    connections: int
    requests: int
    tokens: int
    streams: bool = True


LOADS = {
    "streams10": WatchedLoad(20, 5, 10, 500, 32), "streams300": WatchedLoad(50, 10, 300, 1500, 128),
    "requests": WatchedLoad(0, 0, 64, 100_000, 32, streams=False),
}  # fmt: skip


async def _client(session: Any, base: str, period_s: float, number: int, count: list[int]) -> None:
    await asyncio.sleep(period_s * number / 20)
    turn = number
    while True:
        began_s = time.monotonic()
        try:
            async with session.get(base + PATHS[turn % len(PATHS)]) as answer:
                await answer.read()
                count[0] += answer.status == 200
        except OSError:
            pass
        turn += 1
        await asyncio.sleep(max(0.0, began_s + period_s - time.monotonic()))


async def poll(base: str, clients: int, hz: float) -> None:
    """Poll until standard input is closed; print how many answers came."""
    from aiohttp import ClientSession

    os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    count = [0]
    async with ClientSession() as session:
        tasks = [asyncio.create_task(_client(session, base, 1 / hz, number, count)) for number in range(clients)]
        await asyncio.to_thread(sys.stdin.read)
        for task in tasks:
            task.cancel()
    print(count[0])


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port: int = probe.getsockname()[1]
        return port


def _peak_mb(parent: int) -> float:
    """Peak memory of the view's process below *parent*; 0 where there is none."""
    for status in Path("/proc").glob("[0-9]*/status"):
        try:
            text, command = status.read_text(), status.with_name("cmdline").read_bytes()
        except OSError:
            continue
        if f"PPid:\t{parent}\n" in text and b"aiperf.run.viewing" in command:
            return int(re.findall(r"VmHWM:\s+(\d+)", text)[0]) / 1000
    return 0.0


def measured(server: Truth, load: WatchedLoad, clients: int, hz: float) -> dict[str, float]:
    """One run, watched by so many clients; by none without an API."""
    server.reset()
    port = _free_port()
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        words = [
            str(PROGRAM), "profile", "--model", "truth", "--url", f"http://127.0.0.1:{server.port}", "--endpoint-type", "chat",
            "--tokenizer", "builtin", "--isl", "32", "--osl", str(load.tokens), "--concurrency", str(load.connections),
            "--request-count", str(load.requests), "--ui", "none", "--stats-interval", "0", "--artifact-dir", folder,
            "--no-server-metrics", *(["--streaming"] if load.streams else []), *(["--api-port", str(port)] if clients else []),
        ]  # fmt: skip
        polling = None
        if clients:
            asked = ["--poll", f"http://127.0.0.1:{port}", "--clients", str(clients), "--hz", str(hz)]
            command = [sys.executable, __file__, *asked]
            polling = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        variables = {**os.environ, "AIPERF_API_SERVER_POST_COMPLETE_GRACE": "0"}
        run = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=variables)
        peak_mb = 0.0
        while run.poll() is None:
            time.sleep(0.5)
            peak_mb = max(peak_mb, _peak_mb(run.pid)) if clients else 0.0
        answers = float(polling.communicate("")[0]) if polling is not None else 0.0
        if run.returncode:
            raise SystemExit(f"watched.py: the run ended with {run.returncode}")
        summary = json.loads((Path(folder) / "profile_export_aiperf.json").read_text())
    seen = server.stats()
    found = {"answers": answers, "peak_mb": peak_mb, "rps": float(seen["rps"])}
    if load.streams:
        said = summary["time_to_first_token"]
        found |= {f"ttft_error_{name}_us": 1000 * (said[name] - seen["ttft_ms"][name]) for name in ("p50", "p99")}
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=10)
    parser.add_argument("--clients", type=int, default=20)
    parser.add_argument("--hz", type=float, default=10.0)
    parser.add_argument("--only", nargs="+", choices=LOADS, default=[*LOADS])
    parser.add_argument("--poll", metavar="URL", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.poll:
        asyncio.run(poll(given.poll, given.clients, given.hz))
        return 0
    print(machine())
    for name in given.only:
        load = LOADS[name]
        with truthd(load.ttft_ms, load.itl_ms) as server:
            pairs = [
                (measured(server, load, 0, 0), measured(server, load, given.clients, given.hz)) for _ in range(given.pairs)
            ]  # fmt: skip
        for figure in pairs[0][1]:
            bare, watched = ([pair[side][figure] for pair in pairs] for side in (0, 1))
            print(f"{name:>12} {figure:>20}  bare {statistics.median(bare):10.1f}  watched {statistics.median(watched):10.1f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
