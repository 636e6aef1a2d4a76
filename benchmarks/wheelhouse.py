"""How long a fresh environment takes to install from a wheelhouse, of what pip needs for the wheels of others alone.

usage: wheelhouse.py FOLDER [--pairs 3] [--no-compile] [--pip PYTHON]

FOLDER is what ``make wheelhouse`` makes.  Alternating pairs, without an index: ``pip install aiperf-suite``, and the packages
of others that the first of these brought, by name and version.  Wall and CPU time of pip, its children included; making
the empty environment is in neither.  *--no-compile*: without bytecode on both sides, to tell what that is of it.
*--pip*: an interpreter whose pip is used instead of the one that each environment comes with.
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
import time
from pathlib import Path

from bench import machine

SUITE, OURS, MUST = "aiperf-suite", "aiperf", 1.5


def took(pip: Path | None, folder: Path, wheelhouse: Path, more: list[str], packages: list[str]) -> tuple[float, float]:
    """Install into a new environment at *folder*; wall and CPU time in s."""
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    words = [
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "--no-index",
        "--find-links",
        str(wheelhouse),
        *more,
        *packages,
    ]
    variables = {"HOME": str(folder), "PATH": os.environ["PATH"], "LANG": "C.UTF-8"}
    before, began_s = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    own = folder / "bin" / "python"
    program = [str(own), "-m", "pip"] if pip is None else [str(pip), "-m", "pip", "--python", str(own)]
    subprocess.run([*program, *words, *more, *packages], check=True, env=variables)
    wall_s, after = time.monotonic() - began_s, resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall_s, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def brought(folder: Path) -> tuple[list[str], list[str]]:
    """Packages of an environment as requirements: ours, and those of others that did not come with it."""
    words = [str(folder / "bin" / "python"), "-m", "pip", "--disable-pip-version-check", "list", "--format", "json"]
    listed = json.loads(subprocess.run(words, check=True, capture_output=True, text=True).stdout)
    named = [f"{each['name']}=={each['version']}" for each in listed if each["name"] not in ("pip", "setuptools")]
    ours = [name for name in named if name.startswith((f"{OURS}-", f"{OURS}=="))]
    return ours, [name for name in named if name not in ours]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("wheelhouse", type=Path)
    parser.add_argument("--pairs", type=int, default=3)
    parser.add_argument("--no-compile", action="store_true")
    parser.add_argument("--pip", type=Path, metavar="PYTHON")
    given = parser.parse_args()
    if not [*given.wheelhouse.glob("aiperf_suite-*.whl")]:
        parser.error(f"{given.wheelhouse}: no wheel of {SUITE} is there; make wheelhouse makes such a folder")
    more, ours, others = ["--no-compile"] if given.no_compile else [], list[str](), list[str]()
    times: dict[str, list[tuple[float, float]]] = {"suite": [], "others": []}
    print(machine())
    for at in range(given.pairs):
        for side in ("suite", "others") if at % 2 == 0 else ("others", "suite"):
            with tempfile.TemporaryDirectory(prefix="bench-") as scratch:
                folder = Path(scratch) / "venv"
                times[side].append(took(given.pip, folder, given.wheelhouse, more, [SUITE] if side == "suite" else others))
                if not others:
                    ours, others = brought(folder)
        cells = (f"{side} {times[side][-1][0]:.1f} s, {times[side][-1][1]:.1f} s CPU" for side in times)
        print(f"pair {at + 1}: {'; '.join(cells)}", flush=True)
    for place, what in enumerate(("wall", "CPU")):
        ratios = sorted(suite[place] / alone[place] for suite, alone in zip(times["suite"], times["others"], strict=True))
        print(f"{what}: {statistics.median(ratios):.2f} ({ratios[0]:.2f}–{ratios[-1]:.2f})  allowed {MUST}")
    print(f"{len(ours)} packages of ours, {len(others)} of others")
    return 0


if __name__ == "__main__":
    sys.exit(main())
