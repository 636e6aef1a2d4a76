"""How long it takes to know what is installed, with many plugin packages: half as wheels leave them, half editable.

usage: discovery.py [--packages N] [--runs N]

Each package has a manifest with a capability and two options, as real ones do.  Cold: without the cache; warm: with it.  Times
are those of importing the registry and discovering, in a fresh interpreter.  Beside it: what importing all of them would cost.

Then what each package costs the start of a run: the CPU time of ``aiperf profile`` up to a plan that is refused, in alternating
pairs without and with the packages, the cache being there.  The packages are endpoints, which such a run does not import.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

_MANIFEST = """schema_version: 1
api: ">=1,<2"
plugins:
  - category: endpoints
    name: bench_{n}
    summary: Package {n} of a benchmark.
    capabilities: {{path: /bench}}
    options_model: "bench_{n}.options:Options"
    options:
      - field: low_{n}
        flags: [--bench-low-{n}]
        help: A lower bound.
        type: float
        metavar: MS
      - field: high_{n}
        flags: [--bench-high-{n}]
        help: An upper bound.
        type: float
        metavar: MS
"""
_OPTIONS = """from aiperf import Options, option


class Options(Options):
    low_{n}: float | None = option("--bench-low-{n}", metavar="MS", help="A lower bound.")
    high_{n}: float | None = option("--bench-high-{n}", metavar="MS", help="An upper bound.")
"""
_MEASURE = """
import site, sys, time, json
site.addsitedir(sys.argv[1])
began = time.perf_counter()
from aiperf.registry.registry import Registry
registry = Registry.discover()
took = time.perf_counter() - began
found = sum(one.name.startswith("bench_") for one in registry.all("endpoints"))
imported = sum(name.startswith("bench_") for name in sys.modules)
began = time.perf_counter()
for one in registry.all("endpoints"):
    if one.name.startswith("bench_"):
        registry.load("endpoints", one.name)
print(json.dumps({"ms": 1e3 * took, "found": found, "imported": imported, "import_ms": 1e3 * (time.perf_counter() - began)}))
"""

_START = """
import site, sys
site.addsitedir(sys.argv.pop(1))
from aiperf.cli.main import main
sys.exit(main(["profile", "--model", "m", "--concurrency", "3", "--request-count", "2"]))
"""


def install(directory: Path, count: int) -> Path:
    """*count* packages below *directory*; the folder to be a site directory."""
    site, sources = directory / "site", directory / "sources"
    site.mkdir()
    for n in range(count):
        editable = n % 2 == 1
        package = (sources / str(n) if editable else site) / f"bench_{n}"
        package.mkdir(parents=True)
        (package / "__init__.py").write_text("class Bench:\n    tag = 'bench'\n")
        (package / "options.py").write_text(_OPTIONS.format(n=n))
        (package / "aiperf.yaml").write_text(_MANIFEST.format(n=n))
        about = site / f"bench_{n}-1.0.dist-info"
        about.mkdir()
        (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: bench-{n}\nVersion: 1.0\n")
        (about / "entry_points.txt").write_text(f"[aiperf.endpoints]\nbench_{n} = bench_{n}:Bench\n")
        (about / "RECORD").write_text("" if editable else f"bench_{n}/__init__.py,,\nbench_{n}/aiperf.yaml,,\n")
        if editable:
            (site / f"bench_{n}.pth").write_text(f"{package.parent}\n")
    return site


def measured(site: Path, cache: Path) -> dict[str, Any]:
    environment = {**os.environ, "XDG_CACHE_HOME": str(cache)}
    done = subprocess.run(
        [sys.executable, "-c", _MEASURE, str(site)], env=environment, capture_output=True, text=True, check=True, timeout=60
    )
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def start_ms(site: Path, cache: Path) -> float:
    """CPU time of a run's start."""
    environment = {**os.environ, "XDG_CACHE_HOME": str(cache)}
    words = [sys.executable, "-c", _START, str(site)]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(words, env=environment, capture_output=True, timeout=60, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if b"can never be reached" not in done.stderr:
        raise SystemExit(done.stderr.decode())
    return 1e3 * (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--packages", type=int, default=115)
    parser.add_argument("--runs", type=int, default=9)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        site = install(Path(folder), given.packages)
        measured(site, Path(folder) / "first")  # bytecode
        cold = [measured(site, Path(folder) / f"cold-{run}") for run in range(given.runs)]
        warm = [measured(site, Path(folder) / "first") for _ in range(given.runs)]
        empty, cache = Path(folder) / "empty", Path(folder) / "first"
        empty.mkdir()
        start_ms(empty, cache), start_ms(site, cache)  # what they compile and remember
        pairs = [(start_ms(empty, cache), start_ms(site, cache)) for _ in range(3 * given.runs)]
    for one in (*cold, *warm):
        if (one["found"], one["imported"]) != (given.packages, 0):
            print(f"{one['found']} of {given.packages} packages found, {one['imported']} imported", file=sys.stderr)
            return 1
    middle = {name: statistics.median(one["ms"] for one in each) for name, each in (("cold", cold), ("warm", warm))}
    importing = statistics.median(one["import_ms"] for one in cold)
    print(f"{given.packages} packages, none imported: cold {middle['cold']:.0f} ms (at most 250),", end=" ")
    print(f"warm {middle['warm']:.0f} ms (at most 60); importing them all takes {importing:.0f} ms more")
    each = sorted((with_ms - without_ms) / given.packages for without_ms, with_ms in pairs)
    low, middle_ms, high = each[len(each) // 4], statistics.median(each), each[3 * len(each) // 4]
    print(f"each costs a run's start {middle_ms:.2f} ms of CPU time (quartiles {low:.2f}-{high:.2f}; at most 0.5),", end=" ")
    print(f"in {len(pairs)} pairs; a start without them takes {statistics.median(without for without, _ in pairs):.0f} ms")
    return 0


if __name__ == "__main__":
    sys.exit(main())
