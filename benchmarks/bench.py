"""Every promise about speed, accuracy, memory and size, measured through the real command line and beside other tools.

usage: bench.py [--quick] [--rows NAME ...] [--runs N] [--json] [--list]

Prints a table and writes it to benchmarks/out/performance.md and .json; a run that isn't
quick adds its ratios to benchmarks/history.jsonl, which history.py shows.  The server is truthd; what it says of a load
(``/stats``) is the truth.  Needs two cores, a C compiler, and 3 GB of disk in the directory for temporary files
(``BENCH_DIR`` names another).  ``AIPERF_REFERENCE=path/to/bin/aiperf`` adds the reference, installed elsewhere;
``AIPERF_BEFORE=path/to/bin/python`` is of an earlier checkout, whose pictures are drawn in turn with those of this one.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import history
import pictures as drawing
import reduce as reducing
import scaling
import secure
import starts
from tools import HERE, AiohttpLoop, BareLoop, Load, LoadError, Ours, Reference, Said, Tool, installed, timed
from truth import Truth, truthd


@dataclass
class Row:
    """One figure.  *target*: what must be reached; *more*: whether more is better.  *values*: per tool, one per run.

    *loops*: whether a loop that makes no report may be compared with; it starts at once and keeps nothing.
    """

    name: str
    what: str
    unit: str
    target: float
    more: bool = False
    digits: int = 1
    loops: bool = True
    values: dict[str, list[float]] = field(default_factory=dict)
    notes: dict[str, str] = field(default_factory=dict)

    def add(self, tool: str, value: float | None) -> None:
        if value is not None:
            self.values.setdefault(tool, []).append(value)

    def middle(self, tool: str) -> float | None:
        return statistics.median(self.values[tool]) if self.values.get(tool) else None

    def plain(self) -> dict[str, Any]:
        return {
            "what": self.what,
            "unit": self.unit,
            "target": self.target,
            "more": self.more,
            "values": self.values,
            "notes": self.notes,
        }

    def reached(self) -> bool | None:
        ours = self.middle(Ours.name)
        return None if ours is None else ours >= self.target if self.more else abs(ours) <= self.target

    def ratio(self, others: list[Tool]) -> float | None:
        """How many times better than the best other one; None where there is none, or its figure is no measure."""
        names = [tool.name for tool in others if tool.reports or self.loops]
        ours, found = self.middle(Ours.name), [value for name in names if (value := self.middle(name)) is not None]
        if ours is None or not found:
            return None
        best = max(found) if self.more else min(found)
        if min(ours, best) <= 0:
            return None
        return ours / best if self.more else best / ours


class Bench:
    """The rows, filled group by group.  *scale*: share of the full number of requests."""

    def __init__(self, tools: list[Tool], runs: int, scale: float) -> None:
        self.tools, self.runs, self.scale = tools, runs, scale
        self.rows: dict[str, Row] = {}

    def row(self, name: str, what: str, unit: str, target: float, **more: Any) -> Row:
        return self.rows.setdefault(name, Row(name, what, unit, target, **more))

    def loads(
        self,
        ttft_ms: float,
        itl_ms: float,
        load: Load,
        tools: list[Tool],
        *,
        server: Mapping[str, float] | None = None,
        tls: Mapping[str, str] | None = None,
        shares: dict[str, float] | None = None,
        memory: bool = False,
        whole: bool = False,
        runs: int | None = None,
    ) -> Iterator[tuple[Tool, Said, Truth]]:
        """Every tool's every run of a load, with the server that saw it.

        *server*: further settings of it.  *tls*: its certificate, where it speaks https.
        *shares*: of the requests, for slow tools.  *whole*: all of them.
        """
        with truthd(ttft_ms, itl_ms, tls=tls, **(server or {})) as truth:
            for _ in range(runs or self.runs):
                for tool in tools:
                    share = (shares or {}).get(tool.name, 1.0) * self.scale
                    sized = load if whole else replace(load, requests=max(2 * load.connections, round(load.requests * share)))
                    truth.reset()
                    try:
                        said = tool.run(truth.port, sized, memory=memory)
                    except LoadError as failure:
                        print(f"  {tool.name}: {failure}", file=sys.stderr)
                        continue
                    completed = truth.stats()["completed"]
                    if completed != sized.requests:
                        print(f"  {tool.name}: the server completed {completed} of {sized.requests}", file=sys.stderr)
                        continue
                    yield tool, said, truth

    # The groups

    def start(self) -> None:
        row = self.row("overhead", "wall time of a 10-request run beyond the load itself", "s", 1.2, digits=2, loops=False)
        with truthd(20, 5) as server:
            for _ in range(max(3, self.runs)):
                for tool in self.tools:
                    server.reset()
                    try:
                        said = tool.run(server.port, Load(10, 10, 32))
                    except LoadError as failure:
                        print(f"  {tool.name}: {failure}", file=sys.stderr)
                        continue
                    row.add(tool.name, said.wall_s - server.stats()["duration_s"])

    def help(self) -> None:
        version = self.row("version", "`--version`", "s", 0.1, digits=3)
        text = self.row("help", "`profile --help`", "s", 0.25, digits=3)
        for tool in self.tools:
            if isinstance(tool, Ours | Reference):
                for row, words in ((version, ["--version"]), (text, ["profile", "--help"])):
                    for _ in range(1 + max(5, self.runs)):
                        row.add(tool.name, timed([tool.program, *words]).wall_s)
                    row.values[tool.name].pop(0)  # the first fills the caches

    def _ttft(self, streams: int, ttft_ms: float, itl_ms: float, tokens: int, requests: int, p50: float, p99: float) -> None:
        what = f"TTFT error, {streams} streams, {ttft_ms:g} / {itl_ms:g} ms, {tokens} tokens"
        middle = self.row(f"ttft{streams}-p50", f"{what}: p50", "ms", p50, digits=3)
        tail = self.row(f"ttft{streams}-p99", f"{what}: p99", "ms", p99, digits=3)
        for tool, said, server in self.loads(ttft_ms, itl_ms, Load(streams, requests, tokens), self.tools):
            seen = server.stats()
            if said.ttft_p50_ms is not None and said.ttft_p99_ms is not None:
                middle.add(tool.name, said.ttft_p50_ms - seen["ttft_ms"]["p50"])
                tail.add(tool.name, said.ttft_p99_ms - seen["ttft_ms"]["p99"])

    def ttft10(self) -> None:
        self._ttft(10, 20, 5, 32, 500, 0.05, 0.3)

    def ttft100(self) -> None:
        self._ttft(100, 50, 10, 128, 600, 0.1, 1.5)

    def ttft300(self) -> None:
        self._ttft(300, 50, 10, 128, 1500, 0.2, 4)

    def _rate(self, name: str, what: str, figure: str, target: float, load: Load, shares: dict[str, float]) -> None:
        row = self.row(name, what, "/s", target, more=True, digits=0)
        lag = self.row(f"{name}-reducer", "reducer done after the last answer, in the row above", "× load", 1, digits=2)
        for tool, said, server in self.loads(0, 0, load, self.tools, shares=shares):
            row.add(tool.name, server.stats()[figure])
            lag.add(tool.name, said.reducer_lag)

    def requests(self) -> None:
        shares = {AiohttpLoop.name: 0.1, Reference.name: 0.02}
        what = "requests/s, no streaming, 64 connections, 200,000 requests"
        self._rate("requests", what, "rps", 50_000, Load(64, 200_000, 32, False), shares)

    def chunks(self) -> None:
        shares = {AiohttpLoop.name: 0.25, Reference.name: 0.05}
        what = "chunks/s, 64 streams as fast as they come, 2.5 million chunks"
        self._rate("chunks", what, "chunks_per_s", 250_000, Load(64, 19_532, 128), shares)

    def memory(self) -> None:
        for name, requests in (("30,000", 30_000), ("300,000", 300_000)):
            what = f"peak memory (summed PSS), {name} streamed requests"
            row = self.row(f"memory-{requests}", what, "MB", 250, digits=0, loops=False)
            enough = (Ours, Reference, AiohttpLoop) if requests == 30_000 else (Ours,)
            tools: list[Tool] = [tool for tool in self.tools if isinstance(tool, enough)]
            for tool, said, _ in self.loads(0, 0, Load(64, requests, 32), tools, memory=True, runs=1):
                row.add(tool.name, said.peak_mb)

    def reduce(self) -> None:
        """``aiperf report`` of made-up runs; what there is to compare is the promise."""
        wall = self.row("columns", "1,000,000 reduced records of 128 chunks summarised: wall time", "s", 30)
        peak = self.row("columns-memory", "the same: largest resident size", "MB", 600, digits=0)
        small = self.row("report", "`aiperf report`, 100,000 records, per-request files included", "s", 5)
        decoded = self.row("segments", "raw segments reduced, tokens counted", "chunks/CPU-s", 500_000, more=True, digits=0)
        plain = self.row("plain", "raw answers without streaming reduced", "requests/CPU-s", 100_000, more=True, digits=0)
        for _ in range(self.runs):
            for kind, (_, requests, _) in reducing.KINDS.items():
                count = round(requests * self.scale)
                cost = reducing.measured(kind, count)
                if kind == "columns":
                    wall.add(Ours.name, cost.wall_s)
                    peak.add(Ours.name, cost.peak_mb)
                elif kind == "report":
                    small.add(Ours.name, cost.wall_s)
                elif kind == "segments":
                    decoded.add(Ours.name, count * 128 / cost.cpu_s)
                else:
                    plain.add(Ours.name, count / cost.cpu_s)

    def size(self) -> None:
        output = timed([sys.executable, str(HERE.parent / "tests" / "isolated.py"), "--sizes"]).output
        for label, what, target in (("default", "default install", 250), ("kernel", "kernel alone", 100)):
            found = json.loads(output)[label]
            row = self.row(f"size-{label}", f"installed size: {what}", "MB", target, digits=0)
            row.add(Ours.name, (found["bytes"] + found["bytecode_bytes"]) / 1e6)
            row.notes[Ours.name] = f"{found['bytes'] / 1e6:.0f} without bytecode"
        for tool in self.tools:
            if isinstance(tool, Reference):
                folder = Path(tool.program).resolve().parent.parent
                self.rows["size-default"].add(tool.name, sum(file.lstat().st_size for file in folder.rglob("*")) / 1e6)


GROUPS: dict[str, Callable[[Bench], None]] = {
    "start": Bench.start,
    "help": Bench.help,
    "ttft10": Bench.ttft10,
    "ttft100": Bench.ttft100,
    "ttft300": Bench.ttft300,
    "requests": Bench.requests,
    "chunks": Bench.chunks,
    "tls": secure.tls,
    "scaling": scaling.scaling,
    "pacing": starts.pacing,
    "burst": starts.burst,
    "replacement": starts.replacement,
    "waiting": starts.waiting,
    "streams": starts.streams,
    "freeze": starts.freeze,
    "memory": Bench.memory,
    "reduce": Bench.reduce,
    "pictures": drawing.pictures,
    "size": Bench.size,
}
"""The groups of rows in the order of the table."""


def machine() -> str:
    """One line about what this was measured on."""
    described = Path("/proc/cpuinfo").read_text().splitlines()
    model = next((line.partition(":")[2].strip() for line in described if line.startswith("model name")), "?")
    kernel = platform.release().partition("-")[0]
    cores = len(os.sched_getaffinity(0))
    return (
        f"{cores} cores ({model}), Linux {kernel}, CPython {platform.python_version()}, loopback, {time.strftime('%Y-%m-%d')}"
    )


def table(bench: Bench) -> str:
    """The rows as markdown: the median of the runs, and least to most where there are several."""
    tools = [tool.name for tool in bench.tools]
    others = [tool for tool in bench.tools if not isinstance(tool, Ours | BareLoop)]
    lines = [
        f"| what | must reach | {' | '.join(tools)} | better than the best other tool |",
        f"|---|---|{'---|' * len(tools)}---|",
    ]
    for row in bench.rows.values():
        goal = f"{'≥' if row.more else '≤'} {row.target:,g} {row.unit}"
        cells = [_cell(row, name) for name in tools]
        cells[0] += {True: "", False: " ✘", None: ""}[row.reached()]
        ratio = row.ratio(others)
        lines.append(f"| {row.what} | {goal} | {' | '.join(cells)} | {'–' if ratio is None else f'{ratio:,.1f} ×'} |")
    return "\n".join(lines)


def _cell(row: Row, name: str) -> str:
    values = row.values.get(name)
    if not values:
        return "–"
    number = f"{statistics.median(values):,.{row.digits}f}"
    if len(values) > 1:
        number += f" ({min(values):,.{row.digits}f}–{max(values):,.{row.digits}f})"
    return number + (f" [{row.notes[name]}]" if name in row.notes else "")


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="one run, a tenth of the requests: does it work?")
    parser.add_argument("--rows", nargs="+", choices=GROUPS, default=[*GROUPS], metavar="NAME", help=f"of {', '.join(GROUPS)}")
    parser.add_argument("--runs", type=int, default=3, help="runs of each load (default 3)")
    parser.add_argument("--tools", nargs="+", help="only these: this, aiohttp loop, socket loop, reference")
    parser.add_argument("--json", action="store_true", help="print JSON instead of the table")
    options = parser.parse_args()
    tools = [tool for tool in installed() if not options.tools or tool.name in options.tools]
    bench = Bench(tools, 1 if options.quick else options.runs, 0.1 if options.quick else 1.0)
    began = time.monotonic()
    for name in options.rows:
        print(f"{name} …", file=sys.stderr)
        try:
            GROUPS[name](bench)
        except (LoadError, subprocess.CalledProcessError) as failure:
            print(f"  {name}: {failure}", file=sys.stderr)
    found = {
        "machine": machine(), "seconds": round(time.monotonic() - began), "quick": options.quick,
        "rows": {row.name: row.plain() for row in bench.rows.values()},
    }  # fmt: skip
    text = f"{table(bench)}\n\n{found['machine']}. Median of {bench.runs} (least–most); ✘ marks what is not reached.\n"
    out = HERE / "out"
    out.mkdir(exist_ok=True)
    (out / "performance.md").write_text(text)
    (out / "performance.json").write_text(json.dumps(found, indent=2) + "\n")
    if not options.quick:
        history.add(found, Ours.name)
    print(json.dumps(found, indent=2) if options.json else text)
    return 0 if all(row.reached() is not False for row in bench.rows.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
