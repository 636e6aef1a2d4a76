"""Runs each package's tests in an environment with only the kernel, that package and its declared dependencies.

usage: isolated.py [--sizes] [DISTRIBUTION ...]

It also checks that the kernel starts alone, that wheels are discovered like editable installs, and that the requirements
of the meta-package can be met.  ``--sizes`` prints installed sizes in bytes as JSON instead.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from environments import SUITE, Shelf, installed_bytes, projects
from requirements import ROOT, test_group

KERNEL = "aiperf-core"
TOOLS = ("pytest", "hypothesis")
"""Packages that tests use without a declaration."""


class Faults(list[str]):
    def note(self, what: str, detail: str) -> None:
        self.append(what)
        print(f"FAULT  {what}\n{detail.rstrip()}", flush=True)


def run(python: Path | str, *words: str, cache: Path) -> subprocess.CompletedProcess[str]:
    """Run an environment's Python without variables of the current environment."""
    keep = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "AIPERF_", "VIRTUAL_ENV"))}
    keep["XDG_CACHE_HOME"] = str(cache)
    return subprocess.run([str(python), "-P", *words], cwd=ROOT, env=keep, capture_output=True, text=True, check=False)


def tests_alone(shelf: Shelf, name: str, folder: Path, faults: Faults) -> None:
    project = projects()[name]
    python = shelf.environment(folder, [name, *TOOLS, *test_group(project)])
    began = time.monotonic()
    done = run(python, "-m", "pytest", "-p", "no:cacheprovider", str(project / "tests"), cache=folder / "cache")
    said = done.stdout.strip().splitlines()
    if done.returncode:
        faults.note(f"{name} alone: pytest exits {done.returncode}", done.stdout + done.stderr)
    else:
        print(f"ok     {name} alone: {said[-1] if said else ''} ({time.monotonic() - began:.0f} s)", flush=True)


def kernel_alone(shelf: Shelf, folder: Path, faults: Faults) -> None:
    python = shelf.environment(folder, [KERNEL])
    for words in (["--version"], ["--help"], ["profile", "--help"], ["plugins"]):
        done = run(python, "-m", "aiperf", *words, cache=folder / "cache")
        if done.returncode or "Traceback" in done.stderr or not done.stdout.strip():
            faults.note(f"the kernel alone: aiperf {' '.join(words)} exits {done.returncode}", done.stdout + done.stderr)


def discovered(python: Path | str, cache: Path) -> set[str]:
    """The first-party plugins in an environment, as ``category:name distribution version``."""
    show = (
        "from aiperf.registry.registry import Registry\n"
        "registry = Registry.discover()\n"
        "for found in [one for category in registry.categories() for one in registry.all(category)] + registry.broken:\n"
        "    print(f'{found.key} {found.distribution} {found.version} {found.broken}')"
    )
    done = run(python, "-c", show, cache=cache)
    if done.returncode:
        raise RuntimeError(done.stderr)
    return set(done.stdout.splitlines())


def same_discovery(shelf: Shelf, folder: Path, faults: Faults) -> None:
    python = shelf.environment(folder, projects())
    wheels, editable = discovered(python, folder / "cache"), discovered(sys.executable, folder / "cache")
    ours = {line for line in editable if line.split()[1] in projects()}
    if wheels != ours:
        faults.note("wheels and editable installs are not discovered alike", "\n".join(sorted(wheels ^ ours)))
    else:
        print(f"ok     {len(wheels)} plugins found in wheels as in editable installs", flush=True)


def sizes(shelf: Shelf) -> dict[str, dict[str, int]]:
    found = {}
    for label, name in (("kernel", KERNEL), ("default", SUITE)):
        files, bytecode = installed_bytes(shelf.closure([name]))
        found[label] = {"bytes": files, "bytecode_bytes": bytecode}
    return found


def main(words: list[str]) -> int:
    faults = Faults()
    with tempfile.TemporaryDirectory(prefix="isolated-") as temporary:
        work = Path(temporary)
        shelf = Shelf(work)
        if "--sizes" in words:
            print(json.dumps(sizes(shelf)))
            return 0
        wanted = words or [name for name, project in projects().items() if (project / "tests").is_dir() and name != SUITE]
        with ThreadPoolExecutor(max_workers=min(4, os.cpu_count() or 1)) as pool:
            jobs = [pool.submit(tests_alone, shelf, name, work / name, faults) for name in wanted]
            if not words:
                jobs.append(pool.submit(kernel_alone, shelf, work / "kernel", faults))
                jobs.append(pool.submit(same_discovery, shelf, work / "everything", faults))
            for job in jobs:
                job.result()
        if not words:
            shelf.closure([SUITE])
    if faults:
        print(f"{len(faults)} faults: {'; '.join(faults)}")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
