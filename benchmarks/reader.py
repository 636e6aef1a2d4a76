"""Both readers of sockets against a server that knows the truth, one after the other, the reference beside them.

usage: reader.py [--rows NAME …] [--runs N] [--scale SHARE] [--json] [--page FILE]

The error of a time to first token is what a tool says minus what truthd knows: from the kernel's stamp of the request at the
server's socket until the first chunk is handed to the socket, so that the wait for the server to read is no error of the
client's.  Ours are percentiles of the errors request by request, without their signs; the reference's, which doesn't name its
requests, are its percentiles minus the server's.  ``busy`` rows have two processes beside that only compute.

AIPERF_REFERENCE names the reference's program; it gets a twentieth of the requests, and only the rows that it can do in time.
With --page the table takes the place of the one in that file (docs/performance.md).  All rows three times take 17 minutes
on two quiet cores; ``--runs 2 --scale 0.4`` without ``memory`` about 7, and ``--rows rate --runs 2`` about 3.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from bench import machine
from first import busy_processes
from tools import AiohttpLoop, Load, LoadError, Ours, Reference, Said, installed, profile_words, timed
from truth import Seen, built, truthd

Value: TypeAlias = Callable[[dict[str, Any], Said], float]
"""A figure, of what the server saw and the program took."""
READERS = "compiled", "python"
REFERENCE, PEER, BARE = "reference", AiohttpLoop.name, "bare thread"
_REFERENCE_SHARE = 20
RATE = 2000.0
SLIPS = (50, "≤ 0.05"), (99, "≤ 0.5")
"""Percentiles of the slip and what they must reach, in ms."""


class Figure(NamedTuple):
    """What is measured.  goal: of the compiled reader; with ``×`` of its ratio to the other."""

    what: str
    unit: str
    goal: str
    digits: int = 2


class Table:
    """The values of each figure by reader, a value per run."""

    def __init__(self) -> None:
        self.figures: dict[str, Figure] = {}
        self.values: dict[str, dict[str, list[float]]] = {}

    def add(self, figure: Figure, reader: str, value: float) -> None:
        self.figures[figure.what] = figure
        self.values.setdefault(figure.what, {}).setdefault(reader, []).append(value)

    def lines(self) -> Iterator[str]:
        sides = *READERS, REFERENCE, PEER, BARE
        yield f"| what | goal | {' | '.join(sides)} | compiled / python |"
        yield "|---" * (len(sides) + 3) + "|"
        for what, figure in self.figures.items():
            values = self.values[what]
            cells = [_cell(values.get(side, []), figure) for side in sides]
            pairs = [ours / theirs for ours, theirs in zip(*(values.get(side, []) for side in READERS), strict=False) if theirs]
            ratio = f"{statistics.median(pairs):.3f}" if pairs else "–"
            yield f"| {what} | {figure.goal} | {' | '.join(cells)} | {ratio} |"


def _cell(values: list[float], figure: Figure) -> str:
    if not values:
        return "–"
    middle = f"{statistics.median(values):,.{figure.digits}f} {figure.unit}".rstrip()
    return middle if len(values) == 1 else f"{middle} ({min(values):,.{figure.digits}f}–{max(values):,.{figure.digits}f})"


class Benchmark:
    """The rows, each with both readers in turn, *runs* times; *scale* shortens the loads."""

    def __init__(self, runs: int, scale: float) -> None:
        self.table, self.runs, self.scale = Table(), runs, scale
        references = [tool for tool in installed() if isinstance(tool, Reference)]
        self.reference = references[0] if references else None

    def turns(self) -> Iterator[str]:
        """The reader of each run, which is the program's as long as it is the turn's: each is first in every second pair."""
        for run in range(self.runs):
            for reader in READERS if run % 2 == 0 else reversed(READERS):
                os.environ["AIPERF_READER"] = reader
                yield reader
        os.environ.pop("AIPERF_READER", None)

    def errors(self, streams: int, requests: int, tokens: int, times_ms: tuple[float, float], busy: int) -> None:
        where = f"{streams} streams, {times_ms[0]:g} / {times_ms[1]:g} ms, {'two busy processes' if busy else 'quiet'}"
        load = Load(streams, max(2 * streams, int(requests * self.scale)), tokens)
        goals = ("≤ 0.1", "≤ 1") if busy else ("≤ python's", "≤ 0.3" if streams == 300 else "≤ python's")
        figures = [Figure(f"{where}: TTFT error p{n}", "ms", goal, 3) for n, goal in zip((50, 99), goals, strict=True)]
        with truthd(*times_ms) as server, busy_processes(busy):
            for reader in self.turns():
                server.reset()
                with tempfile.TemporaryDirectory(prefix="bench-", dir=os.environ.get("BENCH_DIR")) as folder:
                    words = profile_words(Ours().program, server.port, load, folder, "builtin")
                    timed([*words, "--export-level", "raw"])
                    found = JudgedRun(Path(folder), server.requests())
                for figure, share in zip(figures, (50, 99), strict=True):
                    self.table.add(figure, reader, float(np.percentile(np.abs(found.errors_ms), share)))
                self._stamps(where, reader, found, busy)
            if self.reference is not None:
                server.reset()
                fewer = Load(streams, max(streams, load.requests // _REFERENCE_SHARE), tokens)
                said, seen = self.reference.run(server.port, fewer), server.requests()
                truth_ms = (seen.first - seen.arrived) / 1e6
                for figure, told, share in zip(figures, (said.ttft_p50_ms, said.ttft_p99_ms), (50, 99), strict=True):
                    if told is not None:
                        self.table.add(figure, REFERENCE, told - float(np.percentile(truth_ms, share)))

    def _stamps(self, where: str, reader: str, found: JudgedRun, busy: int) -> None:
        for what, name, goal in (("first contents", "first", 99.9), ("chunks", "chunk", 99.0)):
            figure = Figure(f"{where}: {what} with a stamp of their own", "%", f"≥ {goal:g}" if busy else "")
            self.table.add(figure, reader, 100 * found.measurement[f"{name}_stamp_share"])
        suspect = float(any(each["kind"] == "merged_chunks" for each in found.measurement["findings"]))
        self.table.add(Figure(f"{where}: runs suspect for merging", "", "0" if busy else "", 0), reader, suspect)
        self.table.add(Figure(f"{where}: journal", "bytes/chunk", "≤ 1.3 ×", 1), reader, found.journal_bytes)

    def speed(self, name: str, load: Load, times_ms: tuple[float, float], *said: tuple[Figure, Value]) -> None:
        """A load whose answers are not kept."""
        with truthd(*times_ms) as server:
            for reader in self.turns():
                server.reset()
                ran = Ours().run(server.port, load, memory=name == "memory")
                for figure, value in said:
                    self.table.add(figure, reader, value(server.stats(), ran))
            if self.reference is not None and name in ("chunks", "requests"):
                server.reset()
                few = replace(load, requests=max(load.connections, load.requests // _REFERENCE_SHARE))
                ran = self.reference.run(server.port, few)
                for figure, value in said:
                    self.table.add(figure, REFERENCE, value(server.stats(), ran))

    def busy(self) -> None:
        for streams in (64, 300):
            self.errors(streams, 1200, 64, (50, 10), 2)

    def quiet(self) -> None:
        self.errors(10, 300, 32, (20, 5), 0)
        for streams in (100, 300):
            self.errors(streams, 1500, 128, (50, 10), 0)

    def cpu(self) -> None:
        load = Load(300, max(600, int(1500 * self.scale)), 128)
        figure = Figure("300 streams, 50 / 10 ms, quiet: CPU of all processes a chunk", "µs", "≤ 1.25 ×", 1)
        self.speed("cpu", load, (50, 10), (figure, lambda _, ran: ran.cpu_s * 1e6 / (load.requests * load.tokens)))

    def chunks(self) -> None:
        load = Load(64, int(6000 * self.scale), 128)
        figure = Figure("64 streams as fast as they come: chunks", "/s", "≥ 0.95 ×", 0)
        self.speed("chunks", load, (0, 0), (figure, lambda seen, _: float(seen["chunks_per_s"])))

    def requests(self) -> None:
        load = Load(64, int(60_000 * self.scale), 32, streaming=False)
        figure = Figure("64 connections, plain requests: requests", "/s", "≥ 1.0 ×", 0)
        self.speed("requests", load, (0, 0), (figure, lambda seen, _: load.requests / float(seen["duration_s"])))

    def memory(self) -> None:
        load = Load(10_000, 10_000, 20)
        figure = Figure("10,000 streams of a token a second: peak memory (summed PSS)", "MB", "≤ 1.1 ×", 0)
        self.speed("memory", load, (1000, 1000), (figure, lambda _, ran: ran.peak_mb or 0.0))

    def rate(self) -> None:
        """The peer sleeps until each request is due and starts a task for it, as the loop of ``vllm bench serve`` does.

        The bare thread, in C, sleeps and writes: no reader, no Python.  What it misses, no thread that sends could reach.
        """
        load = Load(0, round(20 * RATE * self.scale), 8, streaming=False, rate=RATE)
        what = f"{RATE:,.0f} requests/s, two busy processes: slip"
        own = [Figure(f"{what} in the report, p{n}", "ms", goal, 3) for n, goal in SLIPS]
        seen = [Figure(f"{what} by the server, p{n}", "ms", goal, 3) for n, goal in SLIPS]
        with truthd(1, 0) as server, busy_processes(2):
            for reader in self.turns():
                server.reset()
                with tempfile.TemporaryDirectory(prefix="bench-", dir=os.environ.get("BENCH_DIR")) as folder:
                    timed(profile_words(Ours().program, server.port, load, folder, "builtin"))
                    summary = json.loads((Path(folder) / "profile_export_aiperf.json").read_text())
                for figure, (percent, _) in zip(own, SLIPS, strict=True):
                    self.table.add(figure, reader, summary["measurement"]["schedule_slip_ms"][f"p{percent}"])
                self._slips(seen, reader, server.requests())
            for side, run in ((PEER, AiohttpLoop().run), (BARE, _send_bare)):
                for _ in range(self.runs):
                    server.reset()
                    run(server.port, load)
                    self._slips(seen, side, server.requests())

    def _slips(self, figures: list[Figure], side: str, seen: Seen) -> None:
        """How much later requests came to the server's socket than the one that came soonest for its turn."""
        arrived = np.sort(seen.arrived)
        late_ns = arrived - np.arange(len(arrived)) * 1e9 / RATE
        for figure, (percent, _) in zip(figures, SLIPS, strict=True):
            self.table.add(figure, side, float(np.percentile(late_ns - late_ns.min(), percent)) / 1e6)

    def start(self) -> None:
        wall, cpu = (Figure(f"ten requests: {what} of the program", "s", "≤ 1.03 ×", 3) for what in ("wall time", "CPU time"))
        self.speed("start", Load(10, 10, 32), (20, 5), (wall, lambda _, ran: ran.wall_s), (cpu, lambda _, ran: ran.cpu_s))


def _send_bare(port: int, load: Load) -> None:
    messages = [{"role": "user", "content": "the " * 100}]
    body = json.dumps({"model": "m", "max_completion_tokens": load.tokens, "messages": messages})
    words = [str(built("sender")), str(port), str(load.requests), str(load.rate), body]
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL)


class JudgedRun:
    """The files of a run: errors of its times to first token in ms, its measurement, bytes of segments per chunk."""

    def __init__(self, folder: Path, seen: Seen) -> None:
        summary = json.loads((folder / "profile_export_aiperf.json").read_text())
        self.measurement: dict[str, Any] = summary["measurement"]
        places = {name: place for place, name in enumerate(seen.ids)}
        errors = []
        records = (folder / "profile_export.jsonl").read_text().splitlines()
        answers = (folder / "profile_export_raw.jsonl").read_text().splitlines()
        for record, answer in zip(map(json.loads, records), answers, strict=True):
            packets = json.loads(answer)["responses"][0]["packets"]
            place = places[json.loads(next(each["value"] for each in packets if each["name"] == "data"))["id"]]
            truth_ms = (seen.first[place] - seen.arrived[place]) / 1e6
            errors.append(record["metrics"]["time_to_first_token"]["value"] - truth_ms)
        self.errors_ms = np.array(errors)
        chunks = sum(len(record["metrics"]["inter_chunk_latency"]["value"]) + 1 for record in map(json.loads, records))
        self.journal_bytes = sum(path.stat().st_size for path in (folder / "journal").glob("shard-*.seg")) / chunks


BEGIN, END = "<!-- both readers -->", "<!-- end of both readers -->"
ROWS = "busy", "quiet", "cpu", "chunks", "requests", "memory", "rate", "start"


def main() -> int:
    parser = argparse.ArgumentParser(description="both readers of sockets against a server that knows the truth")
    parser.add_argument("--rows", nargs="+", choices=ROWS, default=list(ROWS))
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--page", type=Path)
    given = parser.parse_args()
    if given.page is not None and not (BEGIN in (text := given.page.read_text()) and END in text):
        parser.error(f"{given.page} has no {BEGIN} … {END}, between which the table stands")
    benchmark = Benchmark(given.runs, given.scale)
    for row in given.rows:
        try:
            getattr(benchmark, row)()
        except LoadError as error:
            print(f"{row}: {error}", file=sys.stderr)
    rows = "" if tuple(given.rows) == ROWS else f" --rows {' '.join(given.rows)}"
    command = f"benchmarks/reader.py --runs {given.runs} --scale {given.scale:g}{rows}"
    words = f"`{command}`: median (least–most). {machine()}."
    table = "\n".join([words, "", *benchmark.table.lines()])
    if given.page is not None:
        before, _, behind = given.page.read_text().partition(f"{BEGIN}\n")
        given.page.write_text(f"{before}{BEGIN}\n\n{table}\n\n{END}{behind.partition(END)[2]}")
    print(json.dumps({"machine": machine(), "values": benchmark.table.values}, indent=2) if given.json else table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
