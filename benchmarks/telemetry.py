"""What telemetry costs a run: time to its first request, its end, the accuracy of TTFT, and what samples take.

usage: telemetry.py [--only NAME …] [--runs 21] [--program PATH]

Runs with a source and without it take turns.  A source is *instant*, or its target *hangs* (it accepts and never answers), its
*start* takes 30 s, or a *sample* 5 s; *default*: the source of servers' metrics, which reads truthd's page, and with
``--no-server-metrics`` doesn't; *absent*: the same where truthd has no page.  Each run sends ten requests; *ttft*: 300 at
100/s beside the page of truthd, whose TTFT is held against the server's truth.  *page*: 1,040 histograms of 20 buckets, 2 MB
of text, of which a tenth changes from one reading to the next, three a second for 30 s; CPU time of a reading with all that
becomes of it, and its bytes, with counts of two to five digits and of six.  *wait*: 10,000 readings in 100 s, and 10, and how
long the results take behind the last answer.

*dcgm*: the two default exporters, with eight GPUs each, three times a second, beside ten requests; *dcgm-named*: named by
``--gpu-telemetry``, so that the load waits for them for up to 0.5 s; *dcgm-ttft*: as *dcgm* beside 300 at 100/s; *scrape*:
for 30 s, CPU time of a reading of one exporter with all of it.

``--program``: another ``aiperf``.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec
from bench import machine
from tools import Load, LoadError, Ours, profile_words
from truth import Truth, truthd

_SOURCE = '''
import os, socket, time
from aiperf.sdk.telemetry import Point, TelemetrySource

MODE = os.environ["BENCH_TELEMETRY"]


class Source(TelemetrySource):
    interval_s = 0.333

    def start(self):
        self.taken = 0
        if MODE == "start":
            time.sleep(30)
        if MODE == "hangs":
            server = socket.create_server(("127.0.0.1", 0))
            self.server, self.url = server, f"http://127.0.0.1:{server.getsockname()[1]}/metrics"

    def sample(self):
        self.taken += 1
        if MODE == "sample":
            time.sleep(5)
        if MODE == "hangs":
            self.context.fetch(self.url, 60)
        return [Point("level", self.taken)]
'''
_MANIFEST = """schema_version: 1
api: ">=1,<2"
plugins:
  - {category: telemetry, name: bench, summary: A source for measurements.}
"""
_PAGE = """
import http.server, itertools, random, sys

BOUNDS = [*(f"{0.001 * 1.5**n:g}" for n in range(19)), "+Inf"]
FAMILIES, EACH = 26, 40
taken = 0
changing = "changing" in sys.argv
draw = random.Random(7)
before = {}
for at in itertools.product(range(FAMILIES), range(EACH)):
    shares = [draw.expovariate(1) for _ in BOUNDS]
    most = draw.uniform(2e5, 1e6) / sum(shares) if "large" in sys.argv else 0
    before[at] = [int(most * share) for share in itertools.accumulate(shares)]

def histogram(family, n, told):
    name = f"server:latency_{family}_seconds"
    labels = f'engine="0",model_name="llama-3.1-8b",place="{n}"'
    counts = [count + told * 7 + (place + 1) * 3 for place, count in enumerate(before[family, n])]
    buckets = "".join(f'{name}_bucket{{{labels},le="{le}"}} {count}.0\\n' for le, count in zip(BOUNDS, counts))
    return f"{buckets}{name}_sum{{{labels}}} {0.125 * counts[-1]}\\n{name}_count{{{labels}}} {counts[-1]}.0\\n"

series = [[histogram(family, n, 0) for n in range(EACH)] for family in range(FAMILIES)]

class Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        global taken
        taken += 1
        for at in range(taken % 10, FAMILIES * EACH, 10) if changing else ():
            series[at % FAMILIES][at // FAMILIES] = histogram(at % FAMILIES, at // FAMILIES, taken)
        text = "".join(
            f"# HELP server:latency_{family}_seconds Latency.\\n"
            f"# TYPE server:latency_{family}_seconds histogram\\n{''.join(series[family])}" for family in range(FAMILIES)
        ).encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/plain; version=0.0.4")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *words):
        pass

server = http.server.HTTPServer(("127.0.0.1", 0), Page)
print(server.server_address[1], flush=True)
server.serve_forever()
"""
"""A server with the page of *page*; ``changing``: a tenth of its series changes from one reading to the next; ``large``:
counts of six digits."""
_EXPORTER = """
import http.server, sys, time

FIELDS = (
    ("SM_CLOCK", "gauge", 1980), ("MEM_CLOCK", "gauge", 2619), ("GPU_TEMP", "gauge", 61), ("POWER_USAGE", "gauge", 512.25),
    ("TOTAL_ENERGY_CONSUMPTION", "counter", 0), ("GPU_UTIL", "gauge", 97), ("MEM_COPY_UTIL", "gauge", 41),
    ("ENC_UTIL", "gauge", 0), ("DEC_UTIL", "gauge", 0), ("XID_ERRORS", "gauge", 0), ("FB_FREE", "gauge", 20000),
    ("FB_USED", "gauge", 61000), ("CLOCKS_EVENT_REASONS", "gauge", 4), ("POWER_VIOLATION", "counter", 0),
    ("PCIE_REPLAY_COUNTER", "counter", 0), ("NVLINK_BANDWIDTH_TOTAL", "counter", 0), ("VGPU_LICENSE_STATUS", "gauge", 0),
)
begin = time.time()
first = int(sys.argv[1])

def value(name, gpu, still):
    at = time.time() - begin
    if name == "TOTAL_ENERGY_CONSUMPTION":
        return int(512e3 * at) + gpu
    if name == "POWER_USAGE":
        return round(512 + 40 * (at % 1), 3)
    if name == "SM_CLOCK":
        return 1980 - 15 * int(at * 3 % 3)
    return still

class Page(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        lines = []
        for name, kind, still in FIELDS:
            lines += (f"# HELP DCGM_FI_DEV_{name} About it.", f"# TYPE DCGM_FI_DEV_{name} {kind}")
            for gpu in range(first, first + 8):
                labels = (f'gpu="{gpu}",UUID="GPU-{gpu:08d}-0000",pci_bus_id="00000000:{gpu:02X}:00.0",device="nvidia{gpu}",'
                          'modelName="NVIDIA H100 80GB HBM3",Hostname="node",DCGM_FI_DRIVER_VERSION="580.1"')
                lines.append(f"DCGM_FI_DEV_{name}{{{labels}}} {value(name, gpu, still)}")
        text = ("\\n".join(lines) + "\\n").encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/plain; version=0.0.4")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *words):
        pass

server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Page)
server.handle_error = lambda *about: None  # a run has ended in the middle of an answer
print(server.server_address[1], flush=True)
server.serve_forever()
"""
"""A DCGM exporter with eight GPUs, whose first one has this number."""
_DCGM_HZ = 3
_HANGING_S = 170.0
WAYS = ("instant", "hangs", "start", "sample")
GPU_ROWS = ("dcgm", "dcgm-named", "dcgm-ttft", "scrape")


class Took(NamedTuple):
    """Seconds from the start of the program to the first request, from the last answer to the end, and in all; CPU time of all
    its processes in s; the mean error of TTFT in µs."""

    first_s: float
    behind_s: float
    whole_s: float
    cpu_s: float
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


def run(
    program: str, server: Truth, load: Load, folder: Path, environment: Mapping[str, str], more: Sequence[str] = ()
) -> Took:
    server.reset()
    words = [*profile_words(program, server.port, load, str(folder), "builtin"), *more]
    began_ns, began_s, before = time.time_ns(), time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(
        words, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment, timeout=_HANGING_S
    )
    ended_ns, whole_s, after = time.time_ns(), time.monotonic() - began_s, resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    seen = server.requests()
    if len(seen.received) != load.requests:
        raise LoadError(f"{len(seen.received)} of {load.requests} requests were answered")
    error_us = 0.0
    if load.streaming:
        report = json.loads((folder / "profile_export_aiperf.json").read_text())
        error_us = 1000 * report["time_to_first_token"]["avg"] - float((seen.written - seen.arrived).mean()) / 1000
    first, last = int(seen.arrived.min()), int(seen.last.max())
    return Took((first - began_ns) / 1e9, (ended_ns - last) / 1e9, whole_s, cpu_s, error_us)


@contextlib.contextmanager
def exporters() -> Iterator[list[str]]:
    """The places of two exporters with eight GPUs each."""
    with contextlib.ExitStack() as stack:
        places = []
        for first in (0, 8):
            serving = stack.enter_context(
                subprocess.Popen([sys.executable, "-c", _EXPORTER, str(first)], stdout=subprocess.PIPE)
            )
            stack.callback(serving.kill)
            assert serving.stdout is not None
            places.append(f"127.0.0.1:{int(serving.stdout.readline())}")
        yield places


def pairs(
    program: str, way: str, load: Load, runs: int, base: Path, gpus: Sequence[str] = ()
) -> tuple[list[Took], list[Took]]:
    """Runs without and with the source, in turns.  *gpus*: places of exporters, for the ways ``dcgm…``."""
    bare, given = ({**os.environ, "AIPERF_CACHE_DIR": str(base / name)} for name in ("cache", f"cache-{way}"))
    off: tuple[str, ...] = ("--no-server-metrics", *(["--no-gpu-telemetry"] if gpus else []))
    on = off if way in WAYS else ()
    if gpus:
        given |= {"AIPERF_GPU_DEFAULT_DCGM_ENDPOINTS": "" if way == "dcgm-named" else ",".join(gpus)}
        on = ("--no-server-metrics", *(["--gpu-telemetry", *gpus] if way == "dcgm-named" else []))
    if way in WAYS:
        install(base / way / "site")
        given |= {"PYTHONPATH": str(base / way / "site"), "BENCH_TELEMETRY": way}
    without, with_source = list[Took](), list[Took]()
    with truthd(20 if load.streaming else 0, 0, page=float(way != "absent")) as server:
        for number in range(-1, runs):  # the first fills caches
            order = [(without, bare, off), (with_source, given, on)]
            for found, environment, more in order if number % 2 else reversed(order):
                with tempfile.TemporaryDirectory(prefix="run-", dir=base) as folder:
                    took = run(program, server, load, Path(folder) / "out", environment, more)
                if number >= 0:
                    found.append(took)
    return without, with_source


def show(name: str, without: list[Took], with_source: list[Took]) -> None:
    def middle(found: list[Took], field: str) -> float:
        return float(statistics.median(getattr(took, field) for took in found))

    cells = []
    for field in ("first_s", "behind_s", "whole_s", "cpu_s"):
        before, after = middle(without, field), middle(with_source, field)
        ratio = statistics.median(
            getattr(one, field) / getattr(other, field) for one, other in zip(with_source, without, strict=True)
        )
        cells.append(f"{before:.3f} → {after:.3f} s ({ratio:.2f} ×)")
    if any(took.error_us for took in without):
        cells.append(f"{middle(without, 'error_us'):.1f} → {middle(with_source, 'error_us'):.1f} µs")
    print(f"| {name} | {' | '.join(cells)} |", flush=True)


class Spent(threading.Thread):
    """CPU time (s) of the process that reads pages, ten times a second while it lives.  program: its parent."""

    def __init__(self, program: subprocess.Popen[bytes]) -> None:
        super().__init__(daemon=True)
        self._program, self.seen = program, list[tuple[float, float]]()

    def run(self) -> None:
        while self._program.poll() is None:
            time.sleep(0.1)
            with contextlib.suppress(OSError):
                children = Path(f"/proc/{self._program.pid}/task/{self._program.pid}/children").read_text().split()
                for child in children:
                    with contextlib.suppress(OSError):
                        if b"telemetry.process" in Path(f"/proc/{child}/cmdline").read_bytes():
                            fields = Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()
                            ticks = int(fields[11]) + int(fields[12])
                            self.seen.append((time.monotonic(), ticks / os.sysconf("SC_CLK_TCK")))

    def between(self, first_s: float, last_s: float) -> tuple[float, float]:
        """Seconds between the looks nearest to these times behind the first one, and the CPU time spent then."""
        begin = self.seen[0][0]
        (one, spent), (other, spent_then) = (
            min(self.seen, key=lambda look: abs(look[0] - begin - at)) for at in (first_s, last_s)
        )
        return other - one, spent_then - spent


def sizes_of(folder: Path, target: str) -> list[int]:
    """Bytes on the disk of each sample of the target whose name ends so, and last those of the headers of all series."""
    data, found, headers, number = (folder / "journal" / "telemetry-0.samples").read_bytes(), list[int](), 0, 0
    while data:
        end = 4 + int.from_bytes(data[:4], "little")
        piece = data[4:end]
        for line in msgspec.msgpack.decode(zlib.decompress(piece) if piece.startswith(b"\x78") else piece):
            if line["type"] == "source":
                number = next(place for place, one in enumerate(line["targets"]) if one["name"].endswith(target))
            elif line["type"] == "sample" and line.get("target", 0) == number:
                found.append(end)
        headers += end if line["type"] == "series" else 0
        data = data[end:]
    return [*found, headers]


def page(program: str, base: Path) -> None:
    """Reading a large page for 30 s: CPU time of the process, bytes of its file, by reading."""
    for number_of, way in enumerate(("changing", "still", "changing large", "still large")):
        folder, interval_s = base / f"paged-{number_of}", 0.333
        with truthd(0, 0) as server:
            serving = subprocess.Popen([sys.executable, "-c", _PAGE, *way.split()], stdout=subprocess.PIPE)
            try:
                assert serving.stdout is not None
                port = int(serving.stdout.readline())
                words = profile_words(program, server.port, Load(0, 300, 8, streaming=False, rate=10.0), str(folder), "builtin")
                running = subprocess.Popen(
                    [*words, "--server-metrics", f"127.0.0.1:{port}"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
                )
                spent = Spent(running)
                spent.start()
                running.wait()
                spent.join()
            finally:
                serving.kill()
                serving.wait()
        *sizes, headers = sizes_of(folder, f":{port}/metrics")
        first, later = sizes[0], sizes[1:]
        took_s, cpu_s = spent.between(6.0, 26.0)
        print(
            f"\npage, {way}: {len(sizes)} readings; {1000 * cpu_s / took_s * interval_s:.1f} ms CPU each, all in all;"
            f" the first has {first / 1000:.1f} kB behind {headers / 1000:.0f} kB of headers,"
            f" the others {statistics.median(later) / 1000:.2f} kB, {max(later) / 1000:.1f} kB at most:"
            f" {10_800 * statistics.mean(later) / 1e6:.0f} MB an hour",
            flush=True,
        )


def scrape(program: str, base: Path, gpus: Sequence[str]) -> None:
    """Reading two exporters for 30 s: CPU time of a reading of one of them."""
    with truthd(0, 0) as server:
        words = profile_words(program, server.port, Load(0, 300, 8, streaming=False, rate=10.0), str(base / "gpus"), "builtin")
        named = ["--gpu-telemetry", *gpus, "--no-server-metrics"]
        running = subprocess.Popen([*words, *named], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        spent = Spent(running)
        spent.start()
        running.wait()
        spent.join()
    took_s, cpu_s = spent.between(6.0, 26.0)
    print(f"\nscrape: {1000 * cpu_s / took_s / _DCGM_HZ / 2:.2f} ms CPU a reading of an exporter with eight GPUs", flush=True)


def wait(program: str, base: Path) -> None:
    """From the last answer to the end of the program, after few readings and after many."""
    for interval, requests in (("0.333", 33), ("0.01", 1000)):
        found = []
        with truthd(0, 0) as server:
            for more in ((), ("--no-server-metrics",)):
                folder = base / f"wait-{interval}-{len(more)}"
                environment = {**os.environ, "AIPERF_SERVER_METRICS_COLLECTION_INTERVAL": interval}
                load = Load(0, requests, 8, streaming=False, rate=10.0)
                found.append(run(program, server, load, folder, environment, more))
                if not more:
                    *sizes, _ = sizes_of(folder, f":{server.port}/metrics")
                    samples = len(sizes)
        with_any, without = (each.behind_s for each in found)
        print(f"\nwait: {samples} readings: {with_any:.3f} s to the end; without any {without:.3f} s", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--only", nargs="*", default=["default", "absent", *WAYS, "ttft", "page", "wait", *GPU_ROWS])
    parser.add_argument("--runs", type=int, default=21)
    parser.add_argument("--program", default=Ours().program, metavar="PATH")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="bench-") as temporary:
        base = Path(temporary)
        print("| source | to the first request | from the last answer to the end | in all | CPU | TTFT error |")
        print("|---|---|---|---|---|---|")
        for way in ("default", "absent", *WAYS):
            if way in given.only:
                show(way, *pairs(given.program, way, Load(0, 10, 8, streaming=False), given.runs, base))
        if "ttft" in given.only:
            load = Load(0, 300, 8, streaming=True, rate=100.0)
            show("ttft", *pairs(given.program, "default", load, min(10, given.runs), base))
        if "page" in given.only:
            page(given.program, base)
        if "wait" in given.only:
            wait(given.program, base)
        if not set(GPU_ROWS).isdisjoint(given.only):
            with exporters() as gpus:
                for row in [row for row in GPU_ROWS[:3] if row in given.only]:
                    ten, many = Load(0, 10, 8, streaming=False), Load(0, 300, 8, streaming=True, rate=100.0)
                    load, runs = (many, min(10, given.runs)) if row == "dcgm-ttft" else (ten, given.runs)
                    show(row, *pairs(given.program, row, load, runs, base, gpus))
                if "scrape" in given.only:
                    scrape(given.program, base, gpus)
    print(f"\n{machine()}.")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
