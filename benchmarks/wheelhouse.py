"""How long a fresh environment takes to install from a wheelhouse, of what pip needs for the wheels of others alone.

usage: wheelhouse.py FOLDER [--pairs 3] [--no-compile] [--pip PYTHON] [--empty]

FOLDER is what ``make wheelhouse`` makes.  Alternating pairs, without an index: ``pip install aiperf-suite``, and the packages
of others that the first of these brought, by name and version.  Wall and CPU time of pip, its children included; making
the empty environment is in neither.  *--no-compile*: without bytecode on both sides, to tell what that is of it.
*--pip*: an interpreter whose pip is used instead of the one that each environment comes with.  *--empty*: also the suite with
wheels of ours that have their metadata and nothing else: what as many packages cost, whatever is in them.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import zipfile
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
    subprocess.run([*program, *words], check=True, env=variables)
    wall_s, after = time.monotonic() - began_s, resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall_s, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def emptied(wheelhouse: Path, folder: Path) -> Path:
    """A copy of *wheelhouse* in *folder*, in which the wheels of ours have their metadata alone."""
    folder.mkdir()
    for wheel in wheelhouse.glob("*.whl"):
        if not wheel.name.startswith(f"{OURS}_"):
            shutil.copy2(wheel, folder)
            continue
        with zipfile.ZipFile(wheel) as whole, zipfile.ZipFile(folder / wheel.name, "w", zipfile.ZIP_DEFLATED) as bare:
            about = [name for name in whole.namelist() if name.partition("/")[0].endswith(".dist-info")]
            for name in about:
                content = whole.read(name)
                if name.endswith("/RECORD"):
                    content = b"".join(row for row in content.splitlines(True) if row.split(b",")[0].decode() in about)
                bare.writestr(name, content)
    return folder


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
    parser.add_argument("--empty", action="store_true")
    given = parser.parse_args()
    if not [*given.wheelhouse.glob("aiperf_suite-*.whl")]:
        parser.error(f"{given.wheelhouse}: no wheel of {SUITE} is there; make wheelhouse makes such a folder")
    more, ours, others = ["--no-compile"] if given.no_compile else [], list[str](), list[str]()
    sides = ["suite", "others", *(["empty"] if given.empty else [])]
    times: dict[str, list[tuple[float, float]]] = {side: [] for side in sides}
    print(machine())
    with tempfile.TemporaryDirectory(prefix="bench-") as kept:
        empty = emptied(given.wheelhouse, Path(kept) / "empty") if given.empty else given.wheelhouse
        for at in range(given.pairs):
            for side in sides if at % 2 == 0 else reversed(sides):
                with tempfile.TemporaryDirectory(prefix="bench-") as scratch:
                    folder = Path(scratch) / "venv"
                    wheels, packages = empty if side == "empty" else given.wheelhouse, others if side == "others" else [SUITE]
                    times[side].append(took(given.pip, folder, wheels, more, packages))
                    if not others:
                        ours, others = brought(folder)
            cells = (f"{side} {times[side][-1][0]:.1f} s, {times[side][-1][1]:.1f} s CPU" for side in sides)
            print(f"pair {at + 1}: {'; '.join(cells)}", flush=True)
    for side in (side for side in sides if side != "others"):
        for place, what in enumerate(("wall", "CPU")):
            ratios = sorted(mine[place] / alone[place] for mine, alone in zip(times[side], times["others"], strict=True))
            allowed = f"  allowed {MUST}" if side == "suite" else ""
            print(f"{side}, {what}: {statistics.median(ratios):.2f} ({ratios[0]:.2f}–{ratios[-1]:.2f}){allowed}")
    print(f"{len(ours)} packages of ours, {len(others)} of others")
    return 0


if __name__ == "__main__":
    sys.exit(main())
