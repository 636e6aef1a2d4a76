"""What the service costs the runs that are posted to it, and what it costs itself.

usage: service.py [--pairs 10] [--only ROW ...] [--clients 20] [--hz 10] [--runs 1000] [--json FILE]

Alternating pairs against truthd: `aiperf profile --config FILE`, and the same file posted to `aiperf service`, while clients at
idle priority poll the service ten times a second each and one reads the run's events.

streams10: error of TTFT, what the client says less what the server saw, and whether the files of both runs are alike
(alike.py).  start: from the start of the program, or from the post, to the first request that the server read.  Either takes at
most five minutes with ten pairs.  many: memory of the service and of what it keeps ready, after *--runs* runs of ten requests
to the model, with as many to the service, and how long that took.  idle: CPU time of both in a minute without requests.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import io
import json
import os
import re
import secrets
import statistics
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple
from urllib.request import Request, urlopen

from alike import differing
from bench import machine
from truth import Truth, truthd
from watched import LOADS, PROGRAM, TICKS, WatchedLoad, beside, line, take_what_is_left

MUST_MB, MUST_IDLE_PCT = 80, 1.0
_IDLE_S = 60
_READY_S = 3.0
"""How long the service has to be without a run before one is posted: somebody's first run of the hour, not one of a queue."""
_LONGER = "telemetry:server_metrics,exporters:parquet"
"""Plugins that make a run longer whatever it sends, and are no part of the service: a thousand runs are without them."""
_UNDER_WAY = ("queued", "preparing", "running")


def file(server: Truth, load: WatchedLoad) -> bytes:
    """The file of a run."""
    return json.dumps({"benchmark": {
        "models": ["truth"], "randomSeed": 1, "tokenizer": {"name": "builtin"},
        "endpoint": {"url": f"http://127.0.0.1:{server.port}", "streaming": load.streams},
        "datasets": [{"name": "main", "type": "synthetic", "prompts": {"isl": 32, "osl": load.tokens}}],
        "phases": [{"name": "profiling", "type": "concurrency", "concurrency": load.connections, "requests": load.requests}],
    }}).encode()  # fmt: skip


class Running:
    """A service that runs.  url: its address."""

    def __init__(self, process: subprocess.Popen[str], url: str, token: str) -> None:
        self.process, self.url, self.token = process, url, token

    def ask(self, path: str, data: bytes | None = None) -> bytes:
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        with urlopen(Request(self.url + path, data, headers), timeout=120) as answer:
            found: bytes = answer.read()
        return found

    def post(self, content: bytes) -> str:
        id_: str = json.loads(self.ask("/runs", content))["id"]
        return id_

    def ended(self, id_: str, every_s: float = 0.2) -> dict[str, Any]:
        """What it says of the run once that has ended.

        Raises:
            SystemExit: The run has failed.
        """
        while (found := json.loads(self.ask(f"/runs/{id_}")))["state"] in _UNDER_WAY:
            time.sleep(every_s)
        if found["state"] != "done":
            raise SystemExit(f"service.py: the run {found['state']}: {found['reason']}")
        about: dict[str, Any] = found
        return about


@contextlib.contextmanager
def service(folder: Path, **variables: str) -> Iterator[Running]:
    """A service in a session of its own, as one that a system starts.  *variables*: more of its environment."""
    token = secrets.token_urlsafe(24)
    file = folder / "token"
    file.write_text(token)
    file.chmod(0o600)
    words = [str(PROGRAM), "service", "--port", "0", "--directory", str(folder / "service"), "--token-file", str(file)]
    environment = {**os.environ, **variables}
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, start_new_session=True, env=environment) as process:
        assert process.stdout is not None
        try:
            yield Running(process, process.stdout.readline().split()[-1], token)
        finally:
            if process.poll() is not None:
                print(f"service.py: the service has ended with {process.returncode}", file=sys.stderr)
            process.terminate()
            process.wait(60)


# Clients of the service


async def _client(session: Any, number: int, period_s: float, runs: list[str], count: list[int]) -> None:
    paths = ["/runs", "/metrics", "/runs/{}", "/runs/{}/api/progress", "/runs/{}/files", "/runs/{}/metrics"]
    await asyncio.sleep(period_s * number / 20)
    turn = number
    while True:
        began_s = time.monotonic()
        path = paths[turn % (len(paths) if runs else 2)]
        async with session.get(path.format(runs[0] if runs else "")) as answer:
            content = await answer.read()
            count[0] += answer.status == 200
        if path == "/runs" and (listed := json.loads(content)["runs"]):
            runs[:] = [listed[0]["id"]]
        turn += 1
        await asyncio.sleep(max(0.0, began_s + period_s - time.monotonic()))


async def _read_events(session: Any, runs: list[str], count: list[int]) -> None:
    """Events of each run that comes, to its end."""
    read = ""
    while True:
        if runs and runs[0] != read:
            read = runs[0]
            async with session.get(f"/runs/{read}/events") as answer:
                async for piece in answer.content:
                    count[1] += piece.startswith(b"event: snapshot")
        await asyncio.sleep(0.05)


async def poll(base: str, clients: int, hz: float) -> None:
    """Poll until standard input is closed; print how many answers and snapshots came."""
    take_what_is_left()
    from aiohttp import ClientSession, ClientTimeout

    headers = {"Authorization": f"Bearer {os.environ['SERVICE_TOKEN']}"}
    print("ready", flush=True)
    count, runs = [0, 0], list[str]()
    async with ClientSession(base, headers=headers, timeout=ClientTimeout(total=None)) as session:
        tasks = [asyncio.create_task(_client(session, number, 1 / hz, runs, count)) for number in range(clients)]
        tasks.append(asyncio.create_task(_read_events(session, runs, count)))
        ends = asyncio.create_task(asyncio.to_thread(sys.stdin.read))
        await asyncio.wait([*tasks, ends], return_when=asyncio.FIRST_COMPLETED)
        if not ends.done():
            await next(task for task in tasks if task.done())  # its error
        for task in tasks:
            task.cancel()
    print(*count)


@contextlib.contextmanager
def polled(running: Running, clients: int, hz: float) -> Iterator[list[int]]:
    """Clients of the service; the list has how many answers and snapshots they had, afterwards."""
    os.environ["SERVICE_TOKEN"] = running.token
    counts: list[int] = []
    with beside("--poll", running.url, "--clients", str(clients), "--hz", str(hz), script=__file__) as process:
        assert process.stdout is not None
        process.stdout.readline()
        yield counts
        counts += map(int, process.communicate("")[0].split())


# Rows


class Side(NamedTuple):
    """Figures of a run, and its files."""

    figures: dict[str, float]
    files: Path


def bare(server: Truth, load: WatchedLoad, folder: Path) -> Side:
    server.reset()
    config, results = folder / "run.json", folder / "bare"
    config.write_bytes(file(server, load))
    words = [str(PROGRAM), "profile", "--config", str(config), "--output-artifact-dir", str(results), "--ui", "none"]
    began_ns = time.time_ns()
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
    return Side(_figures(server, results, began_ns), results)


def posted(server: Truth, load: WatchedLoad, folder: Path, running: Running, clients: int, hz: float) -> Side:
    """The same by the service; the files as it gives them, in an archive."""
    server.reset()
    time.sleep(_READY_S)
    with polled(running, clients, hz) as counts:
        began_ns = time.time_ns()
        id_ = running.post(file(server, load))
        running.ended(id_)
    with tarfile.open(fileobj=io.BytesIO(running.ask(f"/runs/{id_}/archive"))) as archive:
        archive.extractall(folder / "posted", filter="data")
    results = folder / "posted" / id_
    return Side(_figures(server, results, began_ns) | {"answers": counts[0], "snapshots": counts[1]}, results)


def _figures(server: Truth, results: Path, began_ns: int) -> dict[str, float]:
    said = json.loads((results / "profile_export_aiperf.json").read_text())["time_to_first_token"]
    seen = server.stats()["ttft_ms"]
    return {f"ttft_error_{name}_us": 1000 * (said[name] - seen[name]) for name in ("p50", "p99")} | {
        "start_ms": (int(server.requests().received.min()) - began_ns) / 1e6
    }


def pairs(name: str, count: int, clients: int, hz: float) -> list[tuple[dict[str, float], dict[str, float]]]:
    load, found = LOADS[name], []
    with contextlib.ExitStack() as stack:
        server = stack.enter_context(truthd(load.ttft_ms, load.itl_ms))
        running = stack.enter_context(service(Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="bench-")))))
        for at in range(count):
            with tempfile.TemporaryDirectory(prefix="bench-") as scratch:
                folder = Path(scratch)
                if at % 2:
                    after = posted(server, load, folder, running, clients, hz)
                    before = bare(server, load, folder)
                else:
                    before = bare(server, load, folder)
                    after = posted(server, load, folder, running, clients, hz)
                # A server that writes all at once is read in other pieces each time, and other metrics have values then.
                for difference in differing(before.files, after.files) if load.itl_ms else ():
                    print(f"{name:>11} pair {at + 1}: {difference}", flush=True)
                found.append((before.figures, after.figures))
    return found


def programs(pid: int) -> Iterator[tuple[int, str]]:
    """A process and those below it, with their command lines."""
    with contextlib.suppress(OSError):
        yield pid, Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ").strip()
        for task in Path(f"/proc/{pid}/task").glob("*/children"):
            for child in task.read_text().split():
                yield from programs(int(child))


def memory_mb(pid: int) -> tuple[float, float]:
    """Resident memory of the service, and the proportional share of all that it keeps."""
    resident = int(re.findall(r"VmRSS:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())[0]) * 1024 / 1e6
    shares = (Path(f"/proc/{each}/smaps_rollup").read_text() for each, _ in programs(pid))
    return resident, sum(int(re.findall(r"\nPss:\s+(\d+)", text)[0]) for text in shares) * 1024 / 1e6


def cpu_s(pid: int) -> float:
    """CPU time of the service and of what it keeps ready."""
    spent = (Path(f"/proc/{each}/stat").read_text().rpartition(")")[2].split()[11:13] for each, _ in programs(pid))
    return sum(int(user) + int(system) for user, system in spent) / TICKS


def many(runs: int) -> None:
    """*runs* runs, one after the other, each of ten requests; ten requests to the service for each."""
    began_s = time.monotonic()
    with contextlib.ExitStack() as stack:
        server = stack.enter_context(truthd(0, 0))
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="bench-")))
        running = stack.enter_context(service(scratch, AIPERF_DISABLE_PLUGINS=_LONGER))
        content = file(server, WatchedLoad(0, 0, 10, 10, 4))
        at_first = memory_mb(running.process.pid)
        for number in range(runs):
            id_ = running.post(content)
            for path in ("/runs", f"/runs/{id_}", "/metrics", "/readyz", "/openapi.json"):
                running.ask(path)
            running.ended(id_, 0.05)
            for path in (f"/runs/{id_}/files", f"/runs/{id_}/archive", f"/runs/{id_}/events"):
                running.ask(path)
            if not (number + 1) % 100:
                resident, share = memory_mb(running.process.pid)
                print(f"{'many':>11} {number + 1:,} runs: {resident:.1f} MB, PSS {share:.1f} MB", flush=True)
        time.sleep(_READY_S)
        after = memory_mb(running.process.pid)
        completed = server.stats()["completed"]
    if completed < 10 * runs:
        raise SystemExit(f"service.py: the server saw {completed} of {10 * runs} requests")
    took_s = time.monotonic() - began_s
    print(f"{'many':>11} {runs:,} runs, {completed:,} requests to the model, {took_s:.0f} s")
    for what, first, last in zip(("the service, resident", "all that it keeps, PSS"), at_first, after, strict=True):
        print(f"{'many':>11} {what}: {last:.1f} MB, at first {first:.1f}  allowed {MUST_MB}", flush=True)


def idle() -> None:
    with tempfile.TemporaryDirectory(prefix="bench-") as scratch, service(Path(scratch)) as running:
        time.sleep(_READY_S)
        before = cpu_s(running.process.pid)
        time.sleep(_IDLE_S)
        share = 100 * (cpu_s(running.process.pid) - before) / _IDLE_S
    print(f"{'idle':>11} {share:.2f} % of a core in {_IDLE_S} s  allowed {MUST_IDLE_PCT:g} %", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=10)
    parser.add_argument("--clients", type=int, default=20)
    parser.add_argument("--hz", type=float, default=10.0)
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--only", nargs="+", choices=("streams10", "start", "many", "idle"), metavar="ROW",
                        default=["streams10", "start", "many", "idle"])  # fmt: skip
    parser.add_argument("--json", type=Path, help="write the figures of every run")
    parser.add_argument("--poll", metavar="URL", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.poll:
        asyncio.run(poll(given.poll, given.clients, given.hz))
        return 0
    print(machine())
    every = {}
    for name in given.only:
        if name == "many":
            many(given.runs)
        elif name == "idle":
            idle()
        else:
            every[name] = pairs(name, given.pairs, given.clients, given.hz)
            figures = ("ttft_error_p50_us", "ttft_error_p99_us", "start_ms") if name == "streams10" else ("start_ms",)
            for figure in figures:
                before, after = ([pair[side][figure] for pair in every[name]] for side in (0, 1))
                print(line(name, figure, before, after, ALLOWED[figure]), flush=True)
            for figure in ("answers", "snapshots"):
                print(f"{name:>11} {figure}: {statistics.median(pair[1][figure] for pair in every[name]):.0f} a run")
    if given.json:
        given.json.write_text(json.dumps(every, indent=2))
    return 0


ALLOWED = {"ttft_error_p50_us": "1.1 × or 20 µs", "ttft_error_p99_us": "1.1 × or 20 µs", "start_ms": "1.15 ×"}


if __name__ == "__main__":
    sys.exit(main())
