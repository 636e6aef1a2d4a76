"""Runs each package's tests in an environment with the test package and what the package itself declares, nothing else.

usage: isolated.py [--sizes] [DISTRIBUTION ...]

Tests that fail run once more, alone.  Tests that are skipped for want of something run in the current environment, which
has every package, so each test runs where it can.  Tests marked ``timing`` are left to those that run nothing beside them.

It also checks that the kernel starts alone, that wheels are discovered like editable installs, and that the requirements
of the meta-package can be met.  ``--sizes`` prints installed sizes in bytes as JSON instead.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from environments import SUITE, Shelf, installed_bytes, projects
from requirements import ROOT, test_group
from suite_run import Failures

KERNEL = "aiperf-core"
TOOLS = (f"{KERNEL}[testing]",)
"""What tests use without a declaration: the test package, which brings pytest."""
PART_BYTES = 100_000
"""A package with more than these bytes of tests is divided, so that all processors have something to do until the end."""
WORDS = ("-p", "no:cacheprovider", "-m", "not timing")


class Faults(list[str]):
    def note(self, what: str, detail: str) -> None:
        self.append(what)
        print(f"FAULT  {what}\n{detail.rstrip()}", flush=True)


def variables(cache: Path) -> dict[str, str]:
    """Variables for an environment's Python, without those of the current environment."""
    keep = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "AIPERF_", "VIRTUAL_ENV"))}
    return keep | {"XDG_CACHE_HOME": str(cache)}


def run(python: Path | str, *words: str, cache: Path) -> subprocess.CompletedProcess[str]:
    """Run an environment's Python without variables of the current environment."""
    words = (str(python), "-P", *words)
    return subprocess.run(words, cwd=ROOT, env=variables(cache), capture_output=True, text=True, check=False)


@dataclass
class Part:
    """Tests of the package *name*: these *paths*, of *size* bytes, in the environment *folder*.  *log*: where pytest writes."""

    name: str
    folder: Path
    log: Path
    paths: list[Path]
    size: int


def parts(name: str, folder: Path) -> list[Part]:
    """The tests of a package; many tests are divided, by files."""
    tests = projects()[name] / "tests"
    files = {file: file.stat().st_size for file in sorted(tests.rglob("*.py"))}
    if sum(files.values()) <= PART_BYTES:
        return [Part(name, folder, folder / "log", [tests], sum(files.values()))]
    found: list[Part] = []
    for file, size in files.items():
        if not (file.stem.startswith("test_") or file.stem.endswith("_test")):
            continue
        if not found or found[-1].size + size > PART_BYTES:
            found.append(Part(name, folder, folder / f"log-{len(found)}", [], 0))
        found[-1].paths.append(file)
        found[-1].size += size
    return found


@contextlib.contextmanager
def forks(shelf: Shelf, folder: Path) -> Iterator[Path]:
    """A server that runs the tests of parts; the path of its socket."""
    python = shelf.environment(folder, TOOLS)
    address = folder / "socket"
    with (folder / "log").open("wb") as log:
        server = subprocess.Popen(
            [str(python), "tests/forks.py", str(address)],
            cwd=ROOT, env=variables(folder / "cache"), stdin=subprocess.DEVNULL, stdout=log, stderr=log,
        )  # fmt: skip
    try:
        while not address.exists():
            if server.poll() is not None:
                raise SystemExit(f"forks.py exits {server.returncode}\n{(folder / 'log').read_text()}")
            time.sleep(0.01)
        yield address
    finally:
        server.terminate()
        server.wait()


def run_part(address: Path, part: Part) -> dict[str, Any]:
    """What ``Outcome`` of forks.py says of a part; without it, the process has died."""
    part.log.touch()
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(str(address))
        job = {"folder": str(part.folder), "words": [*WORDS, *map(str, part.paths)], "log": str(part.log)}
        client.sendall(json.dumps(job).encode() + b"\n")
        answer = client.makefile().readline()
    outcome: dict[str, Any] = json.loads(answer) if answer else {"code": "without a word"}
    if outcome["code"] == 0:
        last = part.log.read_text().strip().splitlines()[-1]
        print(f"ok     {part.name} alone: {last}, {outcome['cpu_s']:.1f} s of CPU", flush=True)
    return outcome


def judge(outcomes: list[tuple[Part, dict[str, Any]]], faults: Faults) -> None:
    """Run the tests that failed once more, now that nothing runs beside them, and those that were skipped, in full company."""
    failed = [(part, outcome) for part, outcome in outcomes if outcome["code"] != 0]
    together = Failures()
    for _, outcome in failed:
        for name, names in vars(together).items():
            names.update(dict.fromkeys(outcome.get(name, ())))
    for part, outcome in failed:
        again = outcome.get("tests", ())
        if not again or together.final():
            faults.note(f"{part.name} alone: pytest exits {outcome['code']}", part.log.read_text())
            continue
        print(part.log.read_text(), flush=True)
        done = run(part.folder / "bin" / "python", "-m", "pytest", *WORDS, *again, cache=part.folder / "cache")
        if done.returncode:
            faults.note(f"{part.name} alone: failed twice: {', '.join(again)}", done.stdout + done.stderr)
        else:
            print(f"failed once and passed when nothing ran beside them: {', '.join(again)}", flush=True)
    skipped = [name for _, outcome in outcomes for name in outcome.get("skipped", ())]
    if skipped:
        print(f"{len(skipped)} skipped tests and files run with every package:", flush=True)
        code = subprocess.run([sys.executable, "-m", "pytest", *WORDS, "-rs", *skipped], cwd=ROOT, check=False).returncode
        if code:
            faults.note(f"with every package: pytest exits {code}", "")


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
        if unknown := [word for word in words if word not in projects()]:
            print(f"no package of this repository is called {unknown[0]!r}; names are as aiperf-core has one", file=sys.stderr)
            return 2
        wanted = words or [name for name, project in projects().items() if (project / "tests").is_dir() and name != SUITE]
        tests = {name: parts(name, work / name) for name in wanted}
        with forks(shelf, work / "forks") as address, ThreadPoolExecutor(max_workers=1 + (os.cpu_count() or 1)) as pool:
            jobs = []
            for name in sorted(tests, key=lambda name: -sum(part.size for part in tests[name])):
                shelf.environment(work / name, [name, *TOOLS, *test_group(projects()[name])])
                jobs += [(part, pool.submit(run_part, address, part)) for part in tests[name]]
            checks = [] if words else [
                pool.submit(kernel_alone, shelf, work / "kernel", faults),
                pool.submit(same_discovery, shelf, work / "everything", faults),
            ]  # fmt: skip
            outcomes = [(part, job.result()) for part, job in jobs]
            for check in checks:
                check.result()
        judge(outcomes, faults)
        if not words:
            shelf.closure([SUITE])
    if faults:
        print(f"{len(faults)} faults: {'; '.join(faults)}")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
