"""Requests per second of this tool beside the least that a client in Python can do, in alternating pairs on one server.

usage: bare.py [--requests 100000] [--pairs 5] [--entries 1000] [--base CHECKOUT]

Answers without streaming over 64 connections.  Both send the same bytes: the bodies of this tool's data set behind the head of
its first request.  The rate is the server's own, from the first request that it read to the last answer that it sent.
"""

from __future__ import annotations

import argparse
import base64
import json
import os
import re
import socket
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from threading import Thread

from aiperf.results import open_run
from bench import machine
from tools import HERE, Load, Ours, profile_words, timed
from truth import Truth, truthd

_CONNECTIONS, _TOKENS = 64, 32


def words(program: str, port: int, requests: int, entries: int, folder: Path) -> list[str]:
    """The tool's command line."""
    load = Load(min(_CONNECTIONS, requests), requests, _TOKENS, streaming=False)
    found = profile_words(program, port, load, str(folder), "builtin")
    found[found.index("--num-dataset-entries") + 1] = str(entries)
    return found


def texts(program: str, entries: int, folder: Path) -> list[bytes]:
    """A request for each entry of the data set, whole."""
    heads: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(60)

        def answer() -> None:
            while not heads:  # a connection without a request looks whether somebody listens
                connection, _ = server.accept()
                with connection:
                    head, end, _ = connection.recv(1 << 20).partition(b"\r\n\r\n")
                    heads.extend([head + end] if end else [])
                    connection.sendall(b"HTTP/1.1 503 Enough\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")

        thread = Thread(target=answer)
        thread.start()
        told = words(program, server.getsockname()[1], 1, entries, folder)
        subprocess.run(told, check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        thread.join()
    bodies = [turns[0][0] for _, turns in open_run(folder).conversations()]
    length = re.compile(rb"(content-length: *)\d+", re.IGNORECASE)
    return [length.sub(rb"\g<1>%d" % len(body), heads[0]) + body for body in bodies]


def rate(truth: Truth, told: list[str], requests: int) -> tuple[float, float]:
    """Requests per second as the server saw them, and CPU time of the client per request in µs."""
    truth.reset()
    ran = timed(told)
    seen = truth.stats()
    if seen["completed"] != requests:
        raise SystemExit(f"the server completed {seen['completed']} of {requests}: {told}")
    return seen["rps"], ran.cpu_s / requests * 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--requests", type=int, default=100_000)
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--entries", type=int, default=1000)
    parser.add_argument("--base", type=Path, help="another checkout with its environment, as a third client")
    given = parser.parse_args()
    with truthd(0, 0) as truth, tempfile.TemporaryDirectory(prefix="bench-", dir=os.environ.get("BENCH_DIR")) as temporary:
        folder = Path(temporary)
        (folder / "texts").write_text(
            json.dumps([base64.b64encode(text).decode() for text in texts(Ours().program, given.entries, folder / "first")])
        )
        bare = [sys.executable, str(HERE / "epoll_loop.py"), truth.port, _CONNECTIONS, given.requests, folder / "texts"]
        clients: dict[str, Callable[[int], list[str]]] = {
            "this": lambda n: words(Ours().program, truth.port, given.requests, given.entries, folder / f"this-{n}"),
            "bare": lambda _: [str(word) for word in bare],
        }
        if given.base:
            other = str(given.base / ".venv/bin/aiperf")
            clients["base"] = lambda n: words(other, truth.port, given.requests, given.entries, folder / f"base-{n}")
        found: dict[str, list[tuple[float, float]]] = {name: [] for name in clients}
        for n in range(given.pairs):
            for name in sorted(clients, reverse=bool(n % 2)):
                found[name].append(rate(truth, clients[name](n), given.requests))
    for name, costs in found.items():
        rates, cpu = zip(*costs, strict=True)
        ratios = [one / other for (one, _), (other, _) in zip(costs, found["bare"], strict=True)]
        middle = statistics.median(ratios)
        print(
            f"{name}: {', '.join(f'{one:,.0f}' for one in rates)} requests/s; {statistics.median(cpu):.1f} µs CPU a request;"
            f" {middle:.2f} ({min(ratios):.2f}–{max(ratios):.2f}) × bare"
        )
    print(machine())


if __name__ == "__main__":
    main()
