"""A run under a load of several servers, and what each of its processes takes of the cores."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import threading
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from aiperf.rundir import journal
from aiperf_reducer_columns.reduce.batches import stored_batches
from tools import Load, LoadError, Ours, profile_words, tree
from truth import Truth

_LOOK_S, _SEARCH_LOOKS = 0.02, 10
"""Between two looks at the processes, and how many looks from one search for new processes to the next."""
_TICKS = os.sysconf("SC_CLK_TCK")
_ROLES = {"aiperf.worker.process": "worker", "aiperf.run.reducer_process": "reducer"}


class Took(NamedTuple):
    """A load of *workers* workers and *servers* servers.

    Times in s.  load_s: from the first request to the last answer, as the servers saw them.  server_shares, worker_shares: of a
    core while the load went on.  worker_s: processor time of workers in the load.  reducer_s, all_s: of reducers, and of the
    whole program, from begin to end.  merged: share of chunks without a stamp of their own.  behind: reducers' time behind the
    last answer, in units of the load's.
    """

    workers: int
    servers: int
    requests: int
    chunks: int
    load_s: float
    server_shares: tuple[float, ...]
    worker_shares: tuple[float, ...]
    worker_s: float
    reducer_s: float
    all_s: float
    reads: int
    wakeups: int
    merged: float
    journal_bytes: int
    behind: float

    @property
    def chunk_us(self) -> float:
        """Processor time of workers for a chunk, in µs."""
        return 1e6 * self.worker_s / self.chunks

    @property
    def busy_cores(self) -> float:
        """Cores that servers and workers kept busy."""
        return sum(self.server_shares) + sum(self.worker_shares)

    def line(self) -> str:
        """What limited it."""
        servers, workers = (
            f"{len(shares)} {name}{'' if len(shares) == 1 else 's'} at {100 * max(shares):.0f} % at most"
            for name, shares in (("server", self.server_shares), ("worker", self.worker_shares))
        )
        answers = self.chunks or self.requests
        return (
            f"{servers}, {workers}; reducers {self.reducer_s:.2f} s; {answers / self.load_s:,.0f}/s,"
            f" {1e6 * self.worker_s / answers:.1f} µs each, {answers / max(1, self.wakeups):.1f} a wake-up,"
            f" {100 * self.merged:.0f} % merged, {self.journal_bytes / answers:.1f} bytes of journal each"
        )


class ProcessTimes:
    """Follows the processor time of a program's processes, by role: worker, reducer, or other."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._times: dict[int, float] = {}
        self._roles: dict[int, str] = {}
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._follow, daemon=True)
        self._thread.start()

    def end(self) -> dict[str, float]:
        """Stop; the processor time of each role, in s, without the last 20 ms of a process that has ended."""
        self._over.set()
        self._thread.join()
        times: dict[str, float] = {}
        for pid, cpu_s in self._times.items():
            role = self._roles.get(pid, "other")
            times[role] = times.get(role, 0.0) + cpu_s
        return times

    def _follow(self) -> None:
        looks, known = 0, [self._pid]
        while not self._over.wait(_LOOK_S):
            if looks % _SEARCH_LOOKS == 0:
                known = tree(self._pid)
                for pid in known:  # a fork waits with its parent's command line until it knows what it is
                    self._roles[pid] = _role(pid) or self._roles.get(pid, "other")
            looks += 1
            for pid in known:
                if (cpu_s := cpu_of(pid)) is not None:
                    self._times[pid] = cpu_s


def _role(pid: int) -> str | None:
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace")
    except OSError:
        return None
    return next((role for module, role in _ROLES.items() if module in words), None)


def cpu_of(pid: int) -> float | None:
    """Processor time of a process so far, in s; None where there is none."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        return None
    return (int(fields[11]) + int(fields[12])) / _TICKS


def took(load: Load, servers: Sequence[Truth]) -> Took:
    """Run a load against all *servers*, which forget what was before.

    Raises:
        LoadError: The run failed, or the servers saw another number of requests.
    """
    for server in servers:
        server.reset()
    before = [cpu_of(server.pid) or 0.0 for server in servers]
    load = replace(load, further_ports=tuple(server.port for server in servers[1:]))
    with tempfile.TemporaryDirectory(prefix="bench-", dir=os.environ.get("BENCH_DIR")) as temporary:
        words = profile_words(Ours().program, servers[0].port, load, temporary, "builtin")
        times, all_s = _followed(words)
        server_s = [(cpu_of(server.pid) or 0.0) - cpu_s for server, cpu_s in zip(servers, before, strict=True)]
        seen = [server.stats() for server in servers]
        completed = sum(each["completed"] for each in seen)
        if completed != load.requests:
            raise LoadError(f"the servers completed {completed} of {load.requests}")
        report = json.loads((Path(temporary) / "profile_export_aiperf.json").read_text())
        stages = json.loads((Path(temporary) / "journal" / "run-times.json").read_text())
        loops = _loops(Path(temporary) / "journal")
    load_s = max(each["duration_s"] for each in seen)
    stamped = report["measurement"].get("chunk_stamp_share")
    return Took(
        workers=len(loops), servers=len(servers), requests=completed,
        chunks=completed * load.tokens if load.streaming else 0, load_s=load_s,
        server_shares=tuple(cpu_s / load_s for cpu_s in server_s),
        worker_shares=tuple(loop["cpu_ns"] / loop["wall_ns"] for loop in loops),
        worker_s=sum(loop["cpu_ns"] for loop in loops) / 1e9, reducer_s=times.get("reducer", 0.0), all_s=all_s,
        reads=sum(loop["reads"] for loop in loops), wakeups=sum(loop["wakeups"] for loop in loops),
        merged=0.0 if stamped is None else 1 - stamped, journal_bytes=sum(loop["journal_bytes"] for loop in loops),
        behind=(stages["reduced_ns"] - stages["last_answer_ns"]) / (stages["last_answer_ns"] - stages["begin_ns"]),
    )  # fmt: skip


def _followed(words: list[str]) -> tuple[dict[str, float], float]:
    """Processor times by role of a program that is run, and that of all of it."""
    with tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=errors)
        times = ProcessTimes(process.pid)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        found = times.end()
        if process.returncode:
            errors.seek(0)
            raise LoadError(f"aiperf exits {process.returncode}: {errors.read().strip()[-2000:]}")
    return found, used.ru_utime + used.ru_stime


def _loops(directory: Path) -> list[dict[str, int]]:
    """What each worker's LOOP frames say of the load: its processor time, time, reads, wake-ups, and bytes of journal."""
    frames: dict[int, list[dict[str, Any]]] = {}
    for batch in stored_batches(directory):
        for shard, kind, value in batch.events:
            if kind == journal.LOOP:
                frames.setdefault(shard, []).append(value)
    found = []
    for _, values in sorted(frames.items()):
        first = next(place for place, value in enumerate(values) if value["in_phase"])
        begin, end = values[max(0, first - 1)], values[-1]
        counters = {name: end["statistics"][name] - begin["statistics"][name] for name in ("reads", "wakeups", "journal_bytes")}
        found.append(counters | {name: end[name] - begin[name] for name in ("cpu_ns", "wall_ns")})
    return found
