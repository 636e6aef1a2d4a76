"""What telemetry costs a run: time to its first request, its end, the accuracy of TTFT, and what samples take.

usage: telemetry.py [--only NAME …] [--runs 21] [--program PATH]

Runs with a source and without it take turns.  A source is *instant*, or its target *hangs* (it accepts and never answers), its
*start* takes 30 s, or a *sample* 5 s.  Each run sends ten requests; *ttft*: 300 at 100/s beside an instant source, whose TTFT
is held against the server's truth.  *page*: 1,040 histograms of 20 buckets, of which a tenth changes from sample to sample,
three a second; CPU time and bytes of a sample.  ``--program``: another ``aiperf``.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from bench import machine
from tools import Load, LoadError, Ours, profile_words
from truth import Truth, truthd

_SOURCE = '''
import json, math, os, resource, socket, threading, time
from aiperf.sdk.telemetry import Histogram, Point, SeriesKind, TelemetrySource

MODE = os.environ["BENCH_TELEMETRY"]
BOUNDS = (*(0.001 * 1.5**n for n in range(19)), math.inf)


class Source(TelemetrySource):
    interval_s = 0.333

    def start(self):
        self.taken = 0
        if MODE == "start":
            time.sleep(30)
        if MODE == "hangs":
            server = socket.create_server(("127.0.0.1", 0))
            self.server, self.url = server, f"http://127.0.0.1:{server.getsockname()[1]}/metrics"
        if MODE == "page":
            self.points = [self.point(n) for n in range(1040)]

    def point(self, n):
        counts = tuple(self.taken * 7 + (place + 1) * 991 for place in range(20))
        labels = {"model_name": "meta-llama/Llama-3.1-8B-Instruct", "engine": "0", "operation": f"operation_{n}"}
        name = f"server:latency_of_operation_{n % 26}_seconds"
        return Point(name, Histogram(BOUNDS, counts, 0.125 * counts[-1]), SeriesKind.HISTOGRAM, "s", labels)

    def sample(self):
        self.taken += 1
        if MODE == "sample":
            time.sleep(5)
        if MODE == "hangs":
            self.context.fetch(self.url, 60)
        if MODE == "page":
            spent = resource.getrusage(resource.RUSAGE_SELF)
            for n in range(self.taken % 10, 1040, 10):
                self.points[n] = self.point(n)
            return [*self.points, Point("cpu", spent.ru_utime + spent.ru_stime, SeriesKind.COUNTER, "s", flows=True)]
        return [Point("level", self.taken)]
'''
_MANIFEST = """schema_version: 1
api: ">=1,<2"
plugins:
  - {category: telemetry, name: bench, summary: A source for measurements.}
"""
_HANGING_S = 60.0
WAYS = ("instant", "hangs", "start", "sample")


class Took(NamedTuple):
    """Seconds from the start of the program to the first request, from the last answer to the end, and in all; the mean error
    of TTFT in µs."""

    first_s: float
    behind_s: float
    whole_s: float
    error_us: float = 0.0


def install(site: Path) -> None:
    """The source's package in a folder for PYTHONPATH."""
    package, about = site / "bench_source", site / "bench_source-1.0.dist-info"
    for folder in (package, about):
        folder.mkdir(parents=True)
    (package / "__init__.py").write_text(_SOURCE)
    (package / "aiperf.yaml").write_text(_MANIFEST)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: bench-source\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[aiperf.telemetry]\nbench = bench_source:Source\n")
    (about / "RECORD").write_text("bench_source/__init__.py,,\nbench_source/aiperf.yaml,,\n")


def run(program: str, server: Truth, load: Load, folder: Path, environment: Mapping[str, str]) -> Took:
    server.reset()
    words = profile_words(program, server.port, load, str(folder), "builtin")
    began_ns, began_s = time.time_ns(), time.monotonic()
    subprocess.run(
        words, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment, timeout=_HANGING_S
    )
    ended_ns, whole_s = time.time_ns(), time.monotonic() - began_s
    seen = server.requests()
    if len(seen.received) != load.requests:
        raise LoadError(f"{len(seen.received)} of {load.requests} requests were answered")
    error_us = 0.0
    if load.streaming:
        report = json.loads((folder / "profile_export_aiperf.json").read_text())
        error_us = 1000 * report["time_to_first_token"]["avg"] - float((seen.written - seen.arrived).mean()) / 1000
    first, last = int(seen.arrived.min()), int(seen.last.max())
    return Took((first - began_ns) / 1e9, (ended_ns - last) / 1e9, whole_s, error_us)


def pairs(program: str, way: str, load: Load, runs: int, base: Path) -> tuple[list[Took], list[Took]]:
    """Runs without and with the source, in turns."""
    install(base / way / "site")
    cache = {"AIPERF_CACHE_DIR": str(base / "cache")}
    bare = {**os.environ, **cache}
    given = {**os.environ, "AIPERF_CACHE_DIR": str(base / "cache-with")}
    given |= {"PYTHONPATH": str(base / way / "site"), "BENCH_TELEMETRY": way}
    without, with_source = list[Took](), list[Took]()
    with truthd(20 if load.streaming else 0, 0) as server:
        for number in range(-1, runs):  # the first fills caches
            order = [(without, bare), (with_source, given)]
            for found, environment in order if number % 2 else reversed(order):
                with tempfile.TemporaryDirectory(prefix="run-", dir=base) as folder:
                    took = run(program, server, load, Path(folder) / "out", environment)
                if number >= 0:
                    found.append(took)
    return without, with_source


def show(name: str, without: list[Took], with_source: list[Took]) -> None:
    def middle(found: list[Took], field: str) -> float:
        return float(statistics.median(getattr(took, field) for took in found))

    cells = []
    for field in ("first_s", "behind_s", "whole_s"):
        before, after = middle(without, field), middle(with_source, field)
        ratio = statistics.median(
            getattr(one, field) / getattr(other, field) for one, other in zip(with_source, without, strict=True)
        )
        cells.append(f"{before:.3f} → {after:.3f} s ({ratio:.2f} ×)")
    if any(took.error_us for took in without):
        cells.append(f"{middle(without, 'error_us'):.1f} → {middle(with_source, 'error_us'):.1f} µs")
    print(f"| {name} | {' | '.join(cells)} |", flush=True)


def page(program: str, base: Path) -> None:
    """A page's samples for 20 s: CPU time of the source's process and bytes of its file, by sample."""
    install(base / "page" / "site")
    environment = {**os.environ, "PYTHONPATH": str(base / "page" / "site"), "BENCH_TELEMETRY": "page"}
    folder = base / "paged"
    with truthd(0, 0) as server:
        run(program, server, Load(0, 200, 8, streaming=False, rate=10.0), folder, environment)
    lines = (folder / "journal" / "telemetry-0.jsonl").read_bytes().splitlines()
    samples = [json.loads(line) for line in lines if line.startswith(b'{"type":"sample"')]
    sizes = [len(line) for line in lines if line.startswith(b'{"type":"sample"')]
    headers = sum(len(line) for line in lines if line.startswith(b'{"type":"series"'))
    (cpu,) = (json.loads(line)["id"] for line in lines if line.startswith(b'{"type":"series"') and b'"name":"cpu"' in line)
    spent = [sample["values"][str(cpu)] for sample in samples[len(samples) // 4 :]]
    each_ms = 1000 * (spent[-1] - spent[0]) / (len(spent) - 1)
    print(
        f"\npage: {len(samples)} samples, {each_ms:.1f} ms CPU each without a parser; the first has {sizes[0] / 1000:.1f} kB"
        f" behind {headers / 1000:.0f} kB of headers, the others {statistics.median(sizes[1:]) / 1000:.1f} kB:"
        f" {10_800 * statistics.mean(sizes[1:]) / 1e6:.0f} MB an hour"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--only", nargs="*", default=[*WAYS, "ttft", "page"])
    parser.add_argument("--runs", type=int, default=21)
    parser.add_argument("--program", default=Ours().program, metavar="PATH")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="bench-") as temporary:
        base = Path(temporary)
        print("| source | to the first request | from the last answer to the end | in all | TTFT error |")
        print("|---|---|---|---|---|")
        for way in WAYS:
            if way in given.only:
                show(way, *pairs(given.program, way, Load(0, 10, 8, streaming=False), given.runs, base))
        if "ttft" in given.only:
            load = Load(0, 300, 8, streaming=True, rate=100.0)
            show("ttft", *pairs(given.program, "instant", load, min(10, given.runs), base / "ttft"))
        if "page" in given.only:
            page(given.program, base)
    print(f"\n{machine()}.")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
