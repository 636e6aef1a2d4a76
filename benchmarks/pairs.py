"""This checkout against another one, in alternating pairs: is it slower, and by how much at least?

usage: pairs.py BASE [--pairs N] [--rows NAME ...] [--scale SHARE] [--wheels] [--without KEY ...] [--json FILE]

BASE is a checkout of the commit before, with its environment (``make demo`` makes one).  *--wheels* compares what users have:
an editable package is a directory more on ``sys.path``, into which each import looks, so a checkout with more packages starts
later.  *--without* leaves plugins out of this checkout's runs, as ``telemetry:server_metrics``, to tell what they cost.

Each row runs base and this in turn against truthd, first one first and then the other.  A cost's figure is the ratio this/base
pair by pair: its median, and the bounds that hold the true median in 95 of 100 cases (order statistics of pairs; two-sided).
*Slower* is a lower bound above 1.03.  A latency error's figure is the median of this beside least and most of the base.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from math import comb
from pathlib import Path
from typing import Any

from bench import machine
from tools import HERE, Load, LoadError, Ours, Said, timed
from truth import Truth, truthd

SLOWER = 1.03


@dataclass
class Row:
    """One figure of both sides, a value per pair.  *cost*: whether less is better and the ratio counts; else it is an error."""

    what: str
    unit: str
    cost: bool = True
    base: list[float] = field(default_factory=list)
    this: list[float] = field(default_factory=list)

    def ratios(self) -> list[float]:
        return sorted(this / base for base, this in zip(self.base, self.this, strict=True))

    def passed(self) -> bool:
        """Not shown to be slower; of an error, the median lies within the base's range or below it."""
        if self.cost:
            return interval(self.ratios())[0] <= SLOWER
        return statistics.median(self.this) <= max(self.base)

    def line(self) -> str:
        ours, theirs = statistics.median(self.this), statistics.median(self.base)
        if self.cost:
            ratios = self.ratios()
            low, high = interval(ratios)
            figure = f"{statistics.median(ratios):.3f} ({low:.3f}–{high:.3f})"
        else:
            figure = f"base's range {min(self.base):.3f}–{max(self.base):.3f}"
        mark = "" if self.passed() else "✘"
        return f"| {self.what} | {theirs:,.3f} {self.unit} | {ours:,.3f} {self.unit} | {figure} | {mark} |"


def interval(values: list[float], share: float = 0.95) -> tuple[float, float]:
    """Bounds of the median of sorted *values* by order statistics; with five or fewer, least and most."""
    count, outside, rank = len(values), 0.0, 0
    while 2 * (outside + comb(count, rank) / 2**count) <= 1 - share:
        outside += comb(count, rank) / 2**count
        rank += 1
    rank = max(rank - 1, 0)
    return values[rank], values[count - 1 - rank]


class Without(Ours):
    """``aiperf profile`` without these plugins."""

    def __init__(self, keys: Sequence[str]) -> None:
        super().__init__()
        self._keys = keys

    def run(self, port: int, load: Load, *, memory: bool = False) -> Said:
        before = os.environ["AIPERF_DISABLE_PLUGINS"]
        os.environ["AIPERF_DISABLE_PLUGINS"] = ",".join((before, *self._keys))
        try:
            return super().run(port, load, memory=memory)
        finally:
            os.environ["AIPERF_DISABLE_PLUGINS"] = before


_PACKAGES = ("core", "templates", "suite", "libraries/*", "plugins/*/*")
"""Folders of a checkout that have a project file each; one that is older has fewer."""


class Checkout:
    """``aiperf`` of a checkout with an environment of its own."""

    def __init__(self, folder: Path, without: Sequence[str] = ()) -> None:
        self.folder, self.benchmarks = folder, folder / "benchmarks"
        self.tool = Without(without) if without else Ours()
        self._use(folder / ".venv")
        if not Path(self.tool.program).exists():
            raise SystemExit(f"{folder} has no environment: run make demo there")

    def _use(self, environment: Path) -> None:
        self.python, self.tool.program = environment / "bin" / "python", str(environment / "bin" / "aiperf")

    def install_wheels(self, where: Path) -> None:
        """Use an environment *where* with wheels of all packages, and with what this checkout's environment has beside them."""
        packages = [str(each.parent) for place in _PACKAGES for each in self.folder.glob(f"{place}/pyproject.toml")]
        shutil.copytree(self.folder / ".venv", where, symlinks=True)
        for each in (where / "pyvenv.cfg", *(where / "bin").iterdir()):
            if each.is_file() and not each.is_symlink():
                each.write_bytes(each.read_bytes().replace(bytes(self.folder / ".venv"), bytes(where)))
        install = ["install", "--no-deps", "--no-build-isolation", "--force-reinstall"]
        path = f"{where / 'bin'}{os.pathsep}{os.environ['PATH']}"
        words = [str(where / "bin" / "python"), "-m", "pip", "--quiet", "--disable-pip-version-check", *install, *packages]
        subprocess.run(words, env={**os.environ, "PATH": path}, check=True)
        self._use(where)

    def reduced(self, kind: str, requests: int) -> dict[str, float]:
        """Cost of reducing a made-up run, by that checkout's own program (their journals differ)."""
        code = f"import json, reduce; print(json.dumps(reduce.measured({kind!r}, {requests})._asdict()))"
        environment = {**os.environ, "PYTHONPATH": str(self.benchmarks)}
        done = subprocess.run([self.python, "-c", code], env=environment, capture_output=True, text=True, check=True)
        cost: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
        return cost


class Pairs:
    def __init__(self, base: Checkout, this: Checkout, pairs: int, scale: float) -> None:
        self.sides = {"base": base, "this": this}
        self.pairs, self.scale = pairs, scale
        self.rows: dict[str, Row] = {}

    def add(self, side: str, name: str, what: str, unit: str, value: float, *, cost: bool = True) -> None:
        row = self.rows.setdefault(name, Row(what, unit, cost))
        (row.base if side == "base" else row.this).append(value)

    def turns(self) -> Iterator[tuple[str, Checkout]]:
        """Both sides so many times, each first in every second pair."""
        for pair in range(self.pairs):
            for side in ("base", "this") if pair % 2 == 0 else ("this", "base"):
                yield side, self.sides[side]

    def load(self, name: str, what: str, ttft_ms: float, itl_ms: float, load: Load, *, errors: bool) -> None:
        with truthd(ttft_ms, itl_ms) as truth:
            for side, checkout in self.turns():
                truth.reset()
                said = checkout.tool.run(truth.port, load)
                seen = self._whole(truth, load)
                if errors:
                    assert said.ttft_p50_ms is not None
                    assert said.ttft_p99_ms is not None
                    p50, p99 = (said.ttft_p50_ms - seen["ttft_ms"]["p50"], said.ttft_p99_ms - seen["ttft_ms"]["p99"])
                    self.add(side, f"{name}-p50", f"{what}: TTFT error, p50", "ms", p50, cost=False)
                    self.add(side, f"{name}-p99", f"{what}: TTFT error, p99", "ms", p99, cost=False)
                else:
                    self.add(side, f"{name}-load", f"{what}: time of the load", "s", seen["duration_s"])
                    self.add(side, f"{name}-cpu", f"{what}: CPU time, all processes", "s", said.cpu_s)

    def _whole(self, truth: Truth, load: Load) -> dict[str, Any]:
        seen = truth.stats()
        if seen["completed"] != load.requests:
            raise LoadError(f"the server completed {seen['completed']} of {load.requests}")
        return seen

    # The rows

    def start(self) -> None:
        load = Load(10, 10, 32)
        with truthd(20, 5) as truth:
            for side, checkout in self.turns():
                truth.reset()
                said = checkout.tool.run(truth.port, load)
                self.add(side, "start-cpu", "ten requests: CPU time, all processes", "s", said.cpu_s)
                wall = said.wall_s - self._whole(truth, load)["duration_s"]
                self.add(side, "start-wall", "ten requests: wall time beyond the load", "s", wall)

    def help(self) -> None:
        for side, checkout in self.turns():
            self.add(side, "help", "`profile --help`: CPU time", "s", timed([checkout.tool.program, "profile", "--help"]).cpu_s)

    def requests(self) -> None:
        count = round(200_000 * self.scale)
        self.load("requests", f"{count:,} requests, 64 connections", 0, 0, Load(64, count, 32, False), errors=False)

    def chunks(self) -> None:
        count = round(19_532 * self.scale)
        self.load("chunks", f"{count * 128:,} chunks, 64 streams", 0, 0, Load(64, count, 128), errors=False)

    def streamed(self) -> None:
        count = round(30_000 * self.scale)
        self.load("streamed", f"{count:,} streams of 32 tokens, 64 connections", 0, 0, Load(64, count, 32), errors=False)

    def ttft(self) -> None:
        for streams, first, gap, tokens, requests in ((10, 20, 5, 32, 500), (100, 50, 10, 128, 600), (300, 50, 10, 128, 1500)):
            self.load(f"ttft{streams}", f"{streams} streams", first, gap, Load(streams, requests, tokens), errors=True)

    def reduce(self) -> None:
        for kind, requests in (("columns", 1_000_000), ("report", 100_000), ("segments", 40_000)):
            count = round(requests * self.scale)
            for side, checkout in self.turns():
                cost = checkout.reduced(kind, count)
                self.add(side, f"{kind}-cpu", f"{kind} of {count:,} requests: CPU time", "s", cost["cpu_s"])
                self.add(side, f"{kind}-memory", f"{kind} of {count:,} requests: largest resident size", "MB", cost["peak_mb"])


ROWS: dict[str, Callable[[Pairs], None]] = {
    "start": Pairs.start,
    "help": Pairs.help,
    "requests": Pairs.requests,
    "chunks": Pairs.chunks,
    "streamed": Pairs.streamed,
    "ttft": Pairs.ttft,
    "reduce": Pairs.reduce,
}


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("base", type=Path, help="a checkout with its environment")
    parser.add_argument("--pairs", type=int, default=9, help="pairs of each row (default 9)")
    parser.add_argument("--rows", nargs="+", choices=ROWS, default=[*ROWS], metavar="NAME", help=f"of {', '.join(ROWS)}")
    parser.add_argument("--scale", type=float, default=1.0, help="share of the full number of requests (default 1)")
    parser.add_argument("--wheels", action="store_true", help="install both sides' packages from wheels first, as users do")
    parser.add_argument("--without", nargs="+", default=(), metavar="KEY", help="plugins that this checkout's runs don't have")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every value there, too")
    options = parser.parse_args()
    base, this = Checkout(options.base.resolve()), Checkout(HERE.parent, options.without)
    pairs = Pairs(base, this, options.pairs, options.scale)
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # else each process compiles its modules anew, the larger side longer
    with tempfile.TemporaryDirectory(prefix="pairs-") as folder:
        if options.wheels:
            base.install_wheels(Path(folder, "base"))
            this.install_wheels(Path(folder, "this"))
        os.chdir(folder)  # neither side finds the other's files
        for name in options.rows:
            print(f"{name} …", file=sys.stderr, flush=True)
            ROWS[name](pairs)
            print(*(row.line() for row in pairs.rows.values()), sep="\n", file=sys.stderr, flush=True)
    print("| what | base | this | this/base: median (95 %) | |\n|---|---|---|---|---|")
    print(*(row.line() for row in pairs.rows.values()), sep="\n")
    print(f"\n{machine()}. {options.pairs} alternating pairs; ✘ marks what is slower.")
    if options.json:
        values = {name: {"base": row.base, "this": row.this} for name, row in pairs.rows.items()}
        options.json.write_text(json.dumps(values, indent=2) + "\n")
    return 0 if all(row.passed() for row in pairs.rows.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
