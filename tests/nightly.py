"""Runs the whole fault table, the kill table, the away table and the soaks, and writes all to docs/reliability.md.

usage: nightly.py [--jobs N] [--only TEXT] [--keep] [--page-only]

--jobs: cells that run at a time (default: half the processors, at least one).  --only: cells whose name has TEXT; the others
keep their results of before, and the page is written where all have one.  --keep: run only cells without a result, or with a
failure.  --page-only: write the page from the results there are.  Results are kept in artifacts/nightly.json.  Exits 1 where a
cell fails.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from threading import Lock

import away_table
import busy_table
import fault_table
import kill_table
import soak
from program import heed_endings

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "reliability.md"
RESULTS = ROOT / "artifacts" / "nightly.json"
_SHOWN, _ALIKE = 200, 24
"""Characters of a reason on the page; reasons that begin with as many equal ones, numbers aside, are alike."""


@dataclass
class Result:
    """*problems*: none for a cell that passes.  *commit*: of the program that ran.  *day*: ISO date.  *told*: what happened."""

    problems: list[str]
    commit: str
    day: str
    lost_ms: float = 0.0
    took_s: float = 0.0
    told: str = ""


class Results:
    """The results there are, by cell, on disk after each."""

    def __init__(self, path: Path = RESULTS) -> None:
        self._path = path
        known = json.loads(path.read_text()) if path.exists() else {}
        self.by_name = {name: Result(**each) for name, each in known.items()}
        self._lock = Lock()  # cells run in threads, and there is one draft

    def add(self, name: str, result: Result) -> None:
        with self._lock:
            self.by_name[name] = result
            self._path.parent.mkdir(exist_ok=True)
            draft = self._path.with_suffix(".draft")
            draft.write_text(json.dumps({name: asdict(each) for name, each in sorted(self.by_name.items())}, indent=1))
            draft.replace(self._path)
        print("ok    " if not result.problems else "FAILS ", name, *result.problems, sep="  ", flush=True)


class Nightly:
    """One run of the tables.  *wanted*: says which cells to run, by name."""

    def __init__(self, results: Results, folder: Path) -> None:
        self.results, self.folder = results, folder
        words = ["git", "rev-parse", "--short=9", "HEAD"]
        self.commit = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False).stdout.strip() or "unknown"

    def fault(self, cell: fault_table.FaultCell) -> None:
        folder = Path(tempfile.mkdtemp(dir=self.folder))
        self._add(fault_name(cell), fault_table.run(cell, folder))
        shutil.rmtree(folder)

    def kills(self, row: Sequence[kill_table.KillCell], clean: frozenset[str]) -> None:
        """The moments of one signal, process and mode."""
        for cell in row:
            folder = Path(tempfile.mkdtemp(dir=self.folder))  # a short name: sockets stand below
            killed = kill_table.run(cell, folder)
            if not killed.problems:
                killed.problems += kill_table.leftovers(folder, clean)
            self._add(kill_name(cell), killed.problems, killed.lost_ms)
            shutil.rmtree(folder)

    def busy(self, name: str) -> None:
        folder = Path(tempfile.mkdtemp(dir=self.folder))
        problems, took_s = busy_table.run(name, folder)
        self._add(name, problems, took_s=took_s)
        shutil.rmtree(folder)

    def away(self, cell: away_table.AwayCell) -> None:
        folder = Path(tempfile.mkdtemp(dir=self.folder))
        problems, told = away_table.run(cell, folder)
        self._add(away_name(cell), problems, told=told)
        shutil.rmtree(folder)

    def soak(self, transport: str) -> None:
        folder = Path(tempfile.mkdtemp(dir=self.folder))
        problems, told = soak.run(soak.SECONDS, soak.STREAMS, transport, folder)
        self._add(soak_name(transport), problems, told=told)
        shutil.rmtree(folder)

    def _add(self, name: str, problems: list[str], lost_ms: float = 0.0, took_s: float = 0.0, told: str = "") -> None:
        short = [" ".join(problem.split()).replace(str(self.folder), "…").replace(str(ROOT), "…") for problem in problems]
        day = time.strftime("%Y-%m-%d")
        self.results.add(name, Result(short, self.commit, day, round(lost_ms, 1), round(took_s, 1), told))


def fault_name(cell: fault_table.FaultCell) -> str:
    return f"fault {cell.name}"


def kill_name(cell: kill_table.KillCell) -> str:
    return f"kill {cell.name}"


def away_name(cell: away_table.AwayCell) -> str:
    return f"away {cell.name}"


def soak_name(transport: str) -> str:
    return f"soak {transport}"


def names() -> list[str]:
    """The names of all cells."""
    return [
        *map(fault_name, fault_table.cells()), *map(kill_name, kill_table.cells()), *map(away_name, away_table.cells()),
        *busy_table.CELLS, *map(soak_name, fault_table.TRANSPORTS),
    ]  # fmt: skip


def run(results: Results, jobs: int, only: str, keep: bool) -> None:
    def wanted(name: str) -> bool:
        known = results.by_name.get(name)
        return only in name and not (keep and known is not None and not known.problems)

    faults = [cell for cell in fault_table.cells() if wanted(fault_name(cell))]
    rows: dict[tuple[str, str, str], list[kill_table.KillCell]] = {}
    for cell in kill_table.cells():
        if wanted(kill_name(cell)):
            rows.setdefault((cell.signal, cell.process, cell.mode), []).append(cell)
    # Cells without a result come first.
    faults.sort(key=lambda cell: fault_name(cell) in results.by_name)
    kills = sorted(rows.values(), key=lambda row: sum(kill_name(cell) in results.by_name for cell in row))
    with tempfile.TemporaryDirectory(prefix="nightly-") as name, ThreadPoolExecutor(jobs) as pool:
        night = Nightly(results, Path(name))
        clean = kill_table.clean_names(Path(name) / "clean") if kills else frozenset()
        tasks = [pool.submit(night.kills, row, clean) for row in kills]
        tasks += [pool.submit(night.fault, cell) for cell in faults]
        for task in tasks:
            task.result()
        with ThreadPoolExecutor(away_table.AT_ONCE) as waiting:
            list(waiting.map(night.away, (cell for cell in away_table.cells() if wanted(away_name(cell)))))
        for each in filter(wanted, busy_table.CELLS):  # alone, because they are timed
            night.busy(each)
        for transport in fault_table.TRANSPORTS:
            if wanted(soak_name(transport)):
                night.soak(transport)  # alone, too: beside another run it would be the server that is measured


_AWAY = (
    "## A server that is away", "", "{count}", "",
    "The server closes its connections, and refuses others until it is back at its address. A cell passes where each arrival",
    "has one outcome, which is `completed` exactly where the server sent the whole answer; a run ends, with exit code 1 and",
    "the rest of its arrivals `never_sent`, exactly where its limit says; the lines come when they are due, and the one on the",
    "server's return has the gap and the number of requests that failed in it; `aiperf validate` finds nothing.", "",
    "{rows}", "",
    "- After 3 s without any connection a line says so, every 10 s again, with the failed requests and the last reason;",
    "  once the server is back, one has the length of the gap. Attempts to connect that nobody answers count, too.",
    "- A run that was never connected ends after 10 s, and one that was after 60 s without a connection. Where",
    "  `--benchmark-duration` ends the run, neither does: time ends it anyway. A warmup without a duration keeps the limits,",
    "  also before a profiling phase with one. A typed `--unreachable-timeout` always holds.", "",
    "Held by `tests/test_unreachable.py` and `core/tests/test_reach.py`, too.",
)
_ENDS = (
    "", "## Runs that fail", "",
    "Held by `tests/test_messages.py` and `tests/test_watching_the_load.py`:", "",
    "- No request succeeded: the verdict is `none` with its reason, and the exit code 1. More than half failed, or a larger",
    "  share than `--failed-request-threshold`: exit code 1, with a sentence.",
    "- A stop behind the end of the last arrival leaves complete results; the exit code is the signal's.",
)


_SITES = (
    "", "## Sites", "",
    "Workers on other machines: [what follows](sites.md#bad-days) when a site dies, is cut off, stops, or has a full",
    "disk. Held by tests, most of them marked `long`, which `make nightly` runs, and which the log of the server judges:",
    "`tests/test_sites.py`, `test_sites_gone_wrong.py`, `test_site_restarts.py`, `test_kept_sites.py`,",
    "`test_sites_lanes.py`, `test_far_sites.py` (in network namespaces, cut off for 10 s), `test_ssh_sites.py` (Debian's",
    "server on loopback) and `test_ray_sites.py` (a cluster of three nodes, one of which is removed).",
)


def page(results: Results) -> str:
    faults, kills = list(fault_table.cells()), list(kill_table.cells())
    return "\n".join([
        "# Reliability", "",
        "What a run says of itself on a bad day, judged by the log of the server it talked to. Written by `make nightly`",
        "(`tests/nightly.py`; the cells are in `tests/fault_table.py`, `kill_table.py` and `away_table.py`). A short form of",
        "faults and signals is part of `make test`. ✔ passes, ✘ fails, ? has not run; reasons of failures stand below each",
        "table.", "",
        *_provenance(results), "",
        "## Faults of the server", "", _count("fault", map(fault_name, faults), results), "",
        "Every third request meets the fault. A cell passes where each planned arrival has one outcome, which is `completed`",
        "exactly where the server sent the whole answer, every count of the results equals the server's log, `aiperf validate`",
        "finds nothing, and no process or file is left. No cell passes in which the server's program received a request twice,",
        "or in which a request went to a second connection though no idle one was closed.", "",
        *_fault_rows(results), "", *_reasons(map(fault_name, faults), results),
        "## Signals to the run", "", _count("kill", map(kill_name, kills), results), "",
        "A cell passes where the run, or a report of it, is called complete only if it was; each arrival has one outcome; what",
        f"the server had sent {kill_table.FRAME_MS:g} ms before the signal (and the lag of the machine, which is measured) is",
        "in the results; no process is left, and after the next start no file. The three signs of a cell are the modes",
        f"{', '.join(kill_table.MODES)}; – the process has ended by then.", "",
        *_kill_rows(results), "", *_losses(results), *_reasons(map(kill_name, kills), results),
        "## A busy machine", "", _count("busy", busy_table.CELLS, results), "",
        "Beside the run two processes never rest. Root plays the ordinary user without the capability to raise a priority.", "",
        *_busy_rows(results), "", *_reasons(busy_table.CELLS, results),
        "## Soak", "",
        f"{soak.STREAMS} streams for {soak.SECONDS} s; {soak.FAILING:.0%} of the requests fail at random, those that are reset",
        f"after the server read them among them, and behind {soak.CLOSING:.0%} of the answers the connection is closed. No",
        "request reaches the server's program twice; what it read stands once in the ledger; what it never read is a failure.",
        "A close that finds the next request unread in the server's system is a reset, and that request a failure.", "",
        *_soaks(results),
        *_away(results),
        *_ENDS,
        *_SITES,
    ]).rstrip() + "\n"  # fmt: skip


def _provenance(results: Results) -> list[str]:
    by = Counter((result.day, result.commit) for result in results.by_name.values())
    return [f"- {count} cells on {day} at commit {commit}" for (day, commit), count in sorted(by.items())] + [
        f"- {platform.system()} {platform.release().split('-')[0]}, Python {platform.python_version()}, {os.cpu_count()} cores"
    ]


def _count(kind: str, names: Iterable[str], results: Results) -> str:
    states = Counter(_sign(name, results) for name in names)
    total = states.total()
    return (
        f"**{kind.capitalize()} table: {states['✔']} of {total} cells pass, {states['✘']} fail, {states['?']} have not run.**"
    )


def _sign(name: str, results: Results) -> str:
    result = results.by_name.get(name)
    return "?" if result is None else "✘" if result.problems else "✔"


def _fault_rows(results: Results) -> list[str]:
    columns = [(mode, transport) for mode in fault_table.MODES for transport in fault_table.TRANSPORTS]
    lines = [
        f"| fault | {' | '.join(f'{mode}, {transport}' for mode, transport in columns)} |",
        f"|---|{'---|' * len(columns)}",
    ]
    for fault, told in fault_table.FAULTS.items():
        names = [fault_name(fault_table.FaultCell(fault, mode, transport)) for mode, transport in columns]
        lines.append(f"| {told} | {' | '.join(_sign(name, results) for name in names)} |")
    return lines


def _kill_rows(results: Results) -> list[str]:
    lines = [f"| process | signal | {' | '.join(kill_table.MOMENTS)} |", f"|---|---|{'---|' * len(kill_table.MOMENTS)}"]
    for process in kill_table.PROCESSES:
        for number in kill_table.SIGNALS:
            signs = []
            for moment in kill_table.MOMENTS:
                cells = [kill_table.KillCell(number, process, moment, mode) for mode in kill_table.MODES]
                there = kill_table.exists(process, moment)
                signs.append("".join(_sign(kill_name(cell), results) for cell in cells) if there else "–")
            lines.append(f"| {process} | {number} | {' | '.join(signs)} |")
    return lines


def _busy_rows(results: Results) -> list[str]:
    lines = ["| what | | longest |", "|---|---|---|"]
    for name, told in busy_table.CELLS.items():
        result = results.by_name.get(name)
        took = "–" if result is None else "; ".join(filter(None, (f"{result.took_s:.1f} s", result.told)))
        lines.append(f"| {told} | {_sign(name, results)} | {took} |")
    return lines


def _away(results: Results) -> list[str]:
    names = [away_name(cell) for cell in away_table.cells()]
    head = f"| the server is away for | ends after | {' | '.join(fault_table.TRANSPORTS)} |"
    rows = [head, f"|---|---|{'---|' * len(fault_table.TRANSPORTS)}"]
    for absence, about in away_table.ABSENCES.items():
        each = [away_name(away_table.AwayCell(absence, transport)) for transport in fault_table.TRANSPORTS]
        happened = [f"{_sign(name, results)} {results.by_name[name].told if name in results.by_name else ''}" for name in each]
        ends = "–" if about.ends_s is None else f"{about.ends_s} s"
        rows.append(f"| {about.told} | {ends} | {' | '.join(map(str.strip, happened))} |")
    values = {"count": _count("away", names, results), "rows": "\n".join([*rows, "", *_reasons(names, results)]).rstrip()}
    return [line.format_map(values) for line in _AWAY]


def _losses(results: Results) -> list[str]:
    lost = [result.lost_ms for name, result in results.by_name.items() if name.startswith("kill ") and result.lost_ms]
    if not lost:
        return ["No cell lost content that the server had sent before the signal.", ""]
    return [
        f"{len(lost)} cells lost content that was on its way to the disk: the oldest piece had been sent at most "
        f"{max(lost):.0f} ms before the signal.", "",
    ]  # fmt: skip


def _soaks(results: Results) -> list[str]:
    lines = []
    for transport in fault_table.TRANSPORTS:
        name = soak_name(transport)
        result = results.by_name.get(name)
        happened = "has not run" if result is None else result.told or "ended without results"
        lines.append(f"- {_sign(name, results)} {transport}: {happened}")
        lines += [f"  - {problem[:_SHOWN]}" for problem in (() if result is None else result.problems)]
    return [*lines, ""]


def _reasons(names: Iterable[str], results: Results) -> list[str]:
    failed = [(name, results.by_name[name]) for name in names if _sign(name, results) == "✘"]
    if not failed:
        return []
    alike: dict[str, list[tuple[str, str]]] = {}
    for name, result in failed:
        reason = "; ".join(result.problems)[:_SHOWN]
        alike.setdefault(re.sub(r"[\d, ]+", " ", result.problems[0])[:_ALIKE], []).append((name.partition(" ")[2], reason))
    lines = [f"- {group[0][1]}: {', '.join(f'`{name}`' for name, _ in group)}" for group in alike.values()]
    return ["Failures, and one reason for those that are alike:", "", *lines, ""]


def main(words: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(usage=(__doc__ or "").split("usage: ")[1].split("\n")[0])
    parser.add_argument("--jobs", type=int, default=max(1, (os.cpu_count() or 1) // 2))
    parser.add_argument("--only", default="")
    parser.add_argument("--keep", action="store_true")
    parser.add_argument("--page-only", action="store_true")
    given = parser.parse_args(words)
    heed_endings()
    results = Results()
    if not given.page_only:
        run(results, given.jobs, given.only, given.keep)
    if given.only and (unknown := [name for name in names() if name not in results.by_name]):
        print(f"{PAGE.relative_to(ROOT)} stays as it is: {len(unknown)} other cells have no result here; --page-only writes it")
    else:
        PAGE.write_text(page(results))
        print(f"{PAGE.relative_to(ROOT)} is written")
    return int(any(result.problems for result in results.by_name.values()))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
