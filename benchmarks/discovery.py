"""How long it takes to know what is installed, with many plugin packages: half as wheels leave them, half editable.

usage: discovery.py [--packages N] [--runs N]

Each package has a manifest with a capability and two options, as real ones do.  Cold: without the cache; warm: with it.  Times
are those of importing the registry and discovering, in a fresh interpreter.  Beside it: what importing all of them would cost.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

_MANIFEST = """schema_version: 1
api: ">=1,<2"
plugins:
  - category: metrics
    name: bench_{n}
    summary: Package {n} of a benchmark.
    capabilities: {{unit: ms}}
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
_MEASURE = """
import site, sys, time, json
site.addsitedir(sys.argv[1])
began = time.perf_counter()
from aiperf.registry import Registry
registry = Registry.discover()
took = time.perf_counter() - began
found = sum(one.name.startswith("bench_") for one in registry.all("metrics"))
imported = sum(name.startswith("bench_") for name in sys.modules)
began = time.perf_counter()
for one in registry.all("metrics"):
    if one.name.startswith("bench_"):
        registry.load("metrics", one.name)
print(json.dumps({"ms": 1e3 * took, "found": found, "imported": imported, "import_ms": 1e3 * (time.perf_counter() - began)}))
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
        (package / "aiperf.yaml").write_text(_MANIFEST.format(n=n))
        about = site / f"bench_{n}-1.0.dist-info"
        about.mkdir()
        (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: bench-{n}\nVersion: 1.0\n")
        (about / "entry_points.txt").write_text(f"[aiperf.metrics]\nbench_{n} = bench_{n}:Bench\n")
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


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--packages", type=int, default=100)
    parser.add_argument("--runs", type=int, default=7)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        site = install(Path(folder), given.packages)
        measured(site, Path(folder) / "first")  # bytecode
        cold = [measured(site, Path(folder) / f"cold-{run}") for run in range(given.runs)]
        warm = [measured(site, Path(folder) / "first") for _ in range(given.runs)]
    for one in (*cold, *warm):
        if (one["found"], one["imported"]) != (given.packages, 0):
            print(f"{one['found']} of {given.packages} packages found, {one['imported']} imported", file=sys.stderr)
            return 1
    middle = {name: statistics.median(one["ms"] for one in each) for name, each in (("cold", cold), ("warm", warm))}
    importing = statistics.median(one["import_ms"] for one in cold)
    print(f"{given.packages} packages, none imported: cold {middle['cold']:.0f} ms (at most 250),", end=" ")
    print(f"warm {middle['warm']:.0f} ms (at most 60); importing them all takes {importing:.0f} ms more")
    return 0


if __name__ == "__main__":
    sys.exit(main())
