"""Jobs that are polled, large uploads and long films through the real command line, beside plain requests.

usage: served_media.py [jobs] [uploads] [film] [--pairs N] [--folder DIR]

jobs      500 jobs polled at 0.1 s: the interval and the end of each job as the server saw them; processor time of the worker
          for a poll, beside that for a plain request (chat, not streamed) at the same rate
uploads   100 image edits of 4 MB in flight: largest memory of all processes (summed PSS), and loop lag, beside 100 chats, and
          beside a loop that does nothing but upload as much (upload_loop.py)
film      one film of 1 GB beside one of 1 MB: largest memory, and bytes of the run's directory

The server is a process of this file, which knows the truth.  Pairs alternate.  A film of 1 GB leaves nothing on the disk.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import os
import random
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from base64 import b64encode
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple

from bench import machine
from tools import Ours, pss_kb, tree

JOBS, POLL_S, JOB_S, JOB_WAVES = 500, 0.1, 4.0, 3
UPLOADS, UPLOAD_BYTES, HELD_S = 100, 4_000_000, 1.0
UPLOAD_WAVES = 24
"""A worker notes its lag 20 times a second: of four waves the p99 would be the second largest."""
FILMS_BYTES = (1_000_000, 1_000_000_000)
_SAMPLE_S = 0.2
"""The system walks through all pages of a process to tell its PSS, and needs a core for it."""
_PIECE = bytes(1 << 18)
_IMAGE = b'{"data":[{"b64_json":"iVBORw0K"}]}'
_CHAT = b'{"object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":"Hi"}}]}'


class _Server(asyncio.Protocol):
    """Answers by path.  *truth*: by job, its end and the stamps of its polls (CLOCK_MONOTONIC).

    job_s, film_bytes, held_s: of the run.
    """

    def __init__(self, settings: dict[str, float], truth: dict[str, list[float]]) -> None:
        self.settings, self.truth = settings, truth
        self.buffer, self.left, self.head, self.film_left = b"", 0, b"", 0

    def connection_made(self, transport: Any) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        if self.left:  # of an upload, which is counted and dropped
            self.left -= len(data)
        else:
            self.buffer += data
            head, mark, rest = self.buffer.partition(b"\r\n\r\n")
            if not mark:
                return
            at = head.lower().find(b"content-length:")
            length = int(head[at + 15 :].split(b"\r\n", 1)[0]) if at >= 0 else 0
            self.head, self.buffer, self.left = head, b"", length - len(rest)
        if not self.left:
            self.answer(*self.head.split(b" ", 2)[:2])

    def answer(self, method: bytes, path: bytes) -> None:
        name = path.rsplit(b"/", 1)[-1].decode()
        loop = asyncio.get_running_loop()
        if method == b"GET" and name == "content":
            self.film_left = int(self.settings["film_bytes"])
            self.transport.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % self.film_left)
            self.resume_writing()
        elif method == b"GET":
            now_s, (end_s, *_) = time.monotonic(), self.truth[name]
            self.truth[name].append(now_s)
            status = b"completed" if now_s >= end_s else b"in_progress"
            self.send(b'{"id":"%b","object":"video","status":"%b","progress":50}' % (name.encode(), status))
        elif name == "videos":
            name = f"v{len(self.truth)}"
            self.truth[name] = [time.monotonic() + self.settings["job_s"]]
            self.send(b'{"id":"%b","object":"video","status":"queued"}' % name.encode())
        else:
            body = _CHAT if name == "completions" else _IMAGE
            loop.call_later(self.settings["held_s"], self.send, body)

    def send(self, body: bytes) -> None:
        head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body)
        self.transport.write(head + body)

    def pause_writing(self) -> None:
        self.full = True

    def resume_writing(self) -> None:
        self.full = False
        while self.film_left and not self.full:
            piece = _PIECE[: self.film_left]
            self.film_left -= len(piece)
            self.transport.write(piece)


def _serve(settings: dict[str, float], line: Connection) -> None:
    async def serve() -> None:
        truth: dict[str, list[float]] = {}
        server = await asyncio.get_running_loop().create_server(lambda: _Server(settings, truth), "127.0.0.1", 0, backlog=1024)
        line.send(server.sockets[0].getsockname()[1])
        await asyncio.to_thread(line.recv)
        line.send(truth)

    import uvloop

    uvloop.run(serve())


@contextmanager
def server(**settings: float) -> Iterator[tuple[str, Callable[[], dict[str, list[float]]]]]:
    """Its URL, and what gives its truth, once."""
    ours, theirs = multiprocessing.Pipe()
    usual = {"job_s": 0.0, "film_bytes": 0.0, "held_s": 0.0}
    process = multiprocessing.Process(target=_serve, args=({**usual, **settings}, theirs), daemon=True)
    process.start()

    def truth() -> dict[str, list[float]]:
        ours.send(None)
        found: dict[str, list[float]] = ours.recv()
        return found

    try:
        yield f"http://127.0.0.1:{ours.recv()}", truth
    finally:
        process.terminate()
        process.join()


class Run(NamedTuple):
    """Results, largest sum of PSS (MB), and bytes of the directory."""

    results: dict[str, Any]
    memory_mb: float
    disk_mb: float

    @property
    def worker_cpu_s(self) -> float:
        """Processor time of the worker in its phase."""
        return float(self.results["measurement"]["worker_cpu_pct"][0] / 100 * self.results["benchmark_duration"]["avg"])


def profile(folder: Path, url: str, *words: str | float | Path) -> Run:
    """A run of one worker, its memory sampled.

    Raises:
        RuntimeError: It failed.
    """
    with tempfile.TemporaryDirectory(prefix="bench-", dir=folder) as place:
        command = [
            Ours().program, "profile", "--model", "m", "--url", url, "--tokenizer", "builtin", "--ui", "none", "--workers", "1",
            "--no-server-metrics", "--no-gpu-telemetry", "--artifact-dir", place, *map(str, words),
        ]  # fmt: skip
        none = subprocess.DEVNULL
        process = subprocess.Popen(command, stdout=none, stderr=subprocess.PIPE, stdin=none, text=True)
        said: list[str] = []
        reader = threading.Thread(target=lambda: said.append(process.stderr.read() if process.stderr else ""))
        reader.start()
        most_kb = 0.0
        while process.poll() is None:
            time.sleep(_SAMPLE_S)
            most_kb = max(most_kb, sum(map(pss_kb, tree(process.pid))))
        reader.join()
        if process.returncode:
            raise RuntimeError(f"it exits {process.returncode}: {said[0][-2000:]}")
        results = json.loads((Path(place) / "profile_export_aiperf.json").read_text())
        disk = sum(path.stat().st_size for path in Path(place).rglob("*") if path.is_file())
        return Run(results, most_kb / 1000, disk / 1e6)


def jobs(folder: Path, pairs: int) -> None:
    ratios, count = [], JOBS * JOB_WAVES
    for _ in range(pairs):
        with server(job_s=JOB_S) as (url, truth):
            run = profile(folder, url, "--endpoint-type", "video_generation", "--isl", 20, "--concurrency", JOBS,
                          "--request-count", count)  # fmt: skip
            seen = truth()
        polls = sum(len(stamps) - 1 for stamps in seen.values())
        gaps = [later - earlier for _, *stamps in seen.values() for earlier, later in pairwise(stamps)]
        late = [stamps[-1] - end for end, *stamps in seen.values()]
        each_us = 1e6 * run.worker_cpu_s / (polls + count)
        rate = polls / run.results["benchmark_duration"]["avg"]
        print(
            f"jobs: {polls:,} polls, {rate:,.0f}/s; interval {1000 * statistics.fmean(gaps):.2f} ms; an end is seen by the poll"
            f" {1000 * max(late):.1f} ms later at most; {each_us:.1f} us of the worker a poll; note of the report:"
            f" {any(each['kind'] == 'polled_answers' for each in run.results['measurement']['findings'])}", flush=True,
        )  # fmt: skip
        with server(held_s=JOBS / rate) as (url, _):
            run = profile(folder, url, "--endpoint-type", "chat", "--isl", 20, "--osl", 8, "--concurrency", JOBS,
                          "--request-count", polls)  # fmt: skip
        plain_us = 1e6 * run.worker_cpu_s / polls
        chats = polls / run.results["benchmark_duration"]["avg"]
        ratios.append(each_us / plain_us)
        print(f"chat: {chats:,.0f}/s; {plain_us:.1f} us of the worker a request; ratio {ratios[-1]:.2f}", flush=True)
    print(f"jobs: ratio {statistics.median(ratios):.2f} (median of {pairs}; at most 1.3)")


def _uploading(url: str, count: int) -> list[float]:
    """How late the ticks of a loop were that did nothing but upload, in ms."""
    words = [str(Path(__file__).with_name("upload_loop.py")), url.rsplit(":", 1)[1], *map(str, (UPLOADS, UPLOAD_BYTES, count))]
    lags: list[float] = json.loads(subprocess.run([sys.executable, *words], capture_output=True, check=True).stdout)
    return lags


def _percentile(values: list[float], share: int) -> float:
    return statistics.quantiles(values, n=100, method="inclusive")[share - 1]


def uploads(folder: Path, pairs: int) -> None:
    rows, dice = folder / "edits.jsonl", random.Random(1)
    with rows.open("w") as file:
        for number in range(UPLOADS):
            data = b64encode(b"\x89PNG\r\n\x1a\n" + dice.randbytes(UPLOAD_BYTES - 8)).decode()
            file.write(json.dumps({"text": f"edit {number}", "image": f"data:image/png;base64,{data}"}) + "\n")
    lags: list[tuple[float, float]] = []
    for _ in range(pairs):
        with server(held_s=HELD_S) as (url, _):
            count = UPLOAD_WAVES * UPLOADS
            common = ("--concurrency", UPLOADS, "--request-count", count)
            run = profile(folder, url, "--endpoint-type", "image_edit", "--input-file", rows, "--custom-dataset-type",
                          "single_turn", *common)  # fmt: skip
            beside = profile(folder, url, "--endpoint-type", "chat", "--isl", 20, "--osl", 8, *common)
            bare = _percentile(_uploading(url, count), 99)
        lag, usual = (each.results["measurement"]["loop_lag_ms"]["p99"] for each in (run, beside))
        lags.append((lag / usual, lag / bare))
        beyond = run.memory_mb - UPLOADS * UPLOAD_BYTES / 1e6
        print(
            f"uploads: {run.memory_mb:.0f} MB, {beyond:.0f} beyond those in flight (at most 300); loop lag p99 {lag:.2f} ms,"
            f" of chat {usual:.2f} ms, of a bare loop {bare:.2f} ms; chat {beside.memory_mb:.0f} MB", flush=True,
        )  # fmt: skip
    by_chat, by_bare = (statistics.median(each) for each in zip(*lags, strict=True))
    print(f"uploads: loop lag {by_chat:.2f} x that of chat (≤ 2), {by_bare:.2f} x that of a bare loop (of {pairs})")
    rows.unlink()


def film(folder: Path, pairs: int) -> None:
    for _ in range(pairs):
        found = []
        for length in FILMS_BYTES:
            with server(film_bytes=length) as (url, _):
                found.append(profile(folder, url, "--endpoint-type", "video_generation", "--isl", 20, "--request-count", 1,
                                     "--download-video-content"))  # fmt: skip
        small, large = found
        took_s = large.results["request_latency"]["avg"] / 1000
        more = large.memory_mb - small.memory_mb + large.disk_mb - small.disk_mb
        print(
            f"film: of 1 MB {small.memory_mb:.1f} MB of memory and {small.disk_mb:.2f} MB of files, of 1 GB"
            f" {large.memory_mb:.1f} and {large.disk_mb:.2f} in {took_s:.1f} s; {more:.1f} MB more (at most 20)", flush=True,
        )  # fmt: skip


PARTS = {"jobs": jobs, "uploads": uploads, "film": film}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"{', '.join(PARTS)}; all unless given")
    parser.add_argument("--pairs", type=int, default=3)
    parser.add_argument("--folder", default=os.environ.get("BENCH_DIR"), help="for files of runs, 2 GB")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="served-", dir=given.folder) as folder:
        for part in given.parts or PARTS:
            PARTS[part](Path(folder), given.pairs)
    print(f"{machine()}.")


if __name__ == "__main__":
    main()
