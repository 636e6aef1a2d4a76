"""The kill table: six ways to signal three processes of a run at eight moments, in three modes; the server's log is the truth.

A cell is one run that is signalled once, then a report of it where the run left none.  What is judged: no run is called
complete that was not; every arrival has one outcome; what the server had sent more than 50 ms before is there; nothing of the
run is left, neither processes nor, after the next start, files.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aiperf.rundir import journal
from fault_server import ANSWERED, IN_FLIGHT, FaultServer
from program import Done, Program, Running

SIGNALS = ("KILL", "INT", "2 x INT", "TERM", "HUP", "STOP+CONT")
PROCESSES = ("parent", "worker", "reducer")
BUILDING, WAITING, FIRST, LOAD, DRAINING, CHANGE, REDUCING, EXPORTING = MOMENTS = (
    "building", "waiting for the server", "first answer", "mid-load", "draining", "warmup to profiling", "reducing",
    "exporting",
)  # fmt: skip
MODES = ("burst", "request_rate", "fixed_schedule")
REQUESTS, WARMUP = 24, 4
FRAME_MS = 50.0
STEP_S = 0.01
PATIENCE_S = 120.0
_STOPPED_S = 0.5
_MODULES = {"worker": "aiperf.worker.process", "reducer": "aiperf.run.reducer_process"}
_CODES = {"INT": 130, "2 x INT": 130, "TERM": 143, "HUP": 129, "KILL": -signal.SIGKILL, "STOP+CONT": 0}
"""Exit codes after a signal to the parent."""


@dataclass(frozen=True)
class KillCell:
    signal: str
    process: str
    moment: str
    mode: str

    @property
    def name(self) -> str:
        return "-".join((self.signal, self.process, self.moment, self.mode)).replace(" ", "_")


def exists(process: str, moment: str) -> bool:
    """Whether the process runs at that moment: workers have ended before the reducing ends, reducers before the export."""
    return (process, moment) not in {("worker", REDUCING), ("worker", EXPORTING), ("reducer", EXPORTING)}


def cells() -> Iterator[KillCell]:
    for process in PROCESSES:
        for number in SIGNALS:
            for mode in MODES:
                yield from (KillCell(number, process, moment, mode) for moment in MOMENTS if exists(process, moment))


@dataclass
class Killed:
    """What became of a cell.  *lost_ms*: age of the oldest piece of content that is lost, at the signal; 0 for none."""

    problems: list[str] = field(default_factory=list)
    lost_ms: float = 0.0


class Lag:
    """How late a thread of this process wakes up: what a busy machine adds to every bound.  *worst_ns*: so far."""

    def __init__(self) -> None:
        self.worst_ns = 0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def _run(self) -> None:
        before = time.monotonic_ns()
        while not self._over.wait(0.002):
            now = time.monotonic_ns()
            self.worst_ns = max(self.worst_ns, now - before - 2_000_000)
            before = now

    def __enter__(self) -> Lag:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()


class Stage:
    """One cell being played: the run, its server, and what is known of both."""

    def __init__(self, cell: KillCell, folder: Path, server: FaultServer) -> None:
        self.cell, self.folder, self.server = cell, folder, server
        self.artifacts = folder / "artifacts"
        self.journal = self.artifacts / "journal"
        self.signalled_ns = 0
        self._stopped_reducer = 0
        self._stdout, self._full = os.pipe()
        self.running = self._start()

    def _start(self) -> Running:
        """The run; while it exports, nobody reads its standard output, which is full."""
        aiperf = Program(self.folder)
        aiperf.environment |= {"TMPDIR": str(self.folder / "temporary"), "PYTHONUNBUFFERED": "1"}
        if self.cell.moment == EXPORTING:
            os.set_blocking(self._full, False)
            with contextlib.suppress(BlockingIOError):
                while os.write(self._full, b"." * 4096):
                    pass
            os.set_blocking(self._full, True)
        process = subprocess.Popen(
            [*aiperf.program, *words(self.cell, self.server, self.folder), "--artifact-dir", str(self.artifacts)],
            cwd=self.folder, env=aiperf.environment, stdin=subprocess.DEVNULL, stdout=self._full,
            stderr=(self.folder / "stderr.txt").open("wb"), text=True, start_new_session=True,
        )  # fmt: skip
        os.close(self._full)
        return Running(process, self.artifacts)

    def until(self, condition: Callable[[], object]) -> None:
        """Wait for the condition, or for the end of the run."""
        over = time.monotonic() + PATIENCE_S
        while not condition() and self.running.process.poll() is None:
            if time.monotonic() > over:
                raise TimeoutError(f"the run never came to: {self.cell.moment}")
            time.sleep(0.002)

    def child(self, role: str, but: int = 0) -> int:
        """The process id of a worker or reducer; 0 for none."""
        pid = self.running.process.pid
        with contextlib.suppress(OSError):
            for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
                with contextlib.suppress(OSError):
                    if int(child) != but and _MODULES[role] in Path(f"/proc/{child}/cmdline").read_text().replace("\0", " "):
                        return int(child)
        return 0

    def reach(self) -> None:
        """Wait for the moment."""
        server, moment = self.server, self.cell.moment
        if moment == BUILDING:
            self.until((self.journal / "run.json").exists)
        elif moment == WAITING:
            self.until(lambda: server.looks)
        elif moment == FIRST:
            self.until(lambda: any(row.content for row in list(server.rows)))
        elif moment == LOAD:
            self.until(lambda: len(server.answered()) >= REQUESTS // 3)
        elif moment == DRAINING:
            self.until(lambda: len(server.rows) == REQUESTS and len(server.in_flight()) == len(self.held()))
        elif moment == CHANGE:
            self.until(lambda: len(server.answered()) >= WARMUP)
        else:
            self._reach_end()
        if self.cell.process != "parent":
            self.until(lambda: self.child(self.cell.process))

    def held(self) -> list[object]:
        return list(self.server.rows[REQUESTS - 4 :])

    def _reach_end(self) -> None:
        if self.cell.moment == REDUCING:
            self.until(lambda: len(self.server.answered()) >= REQUESTS // 3)
            self._stopped_reducer = self.child("reducer")
            os.kill(self._stopped_reducer, signal.SIGSTOP)
            self.until(lambda: len(self.server.answered()) == REQUESTS and not self.child("worker"))
        else:
            self.until((self.journal / "summary.msgpack").exists)
            self.until(lambda: not self.child("reducer"))

    def signal(self) -> None:
        """Send the cell's signal, and let everything go on that was held."""
        pid = self.running.process.pid if self.cell.process == "parent" else self.child(self.cell.process)
        self.signalled_ns = time.monotonic_ns()
        with contextlib.suppress(ProcessLookupError):
            if pid:
                self._send(pid)
        if self.cell.process == "parent" and self.cell.signal in ("INT", "TERM", "HUP"):
            self._until_heard()  # a busy machine may run a signal's handler behind the end of what is let go on
        self.server.ready = True
        self.server.release()
        if self._stopped_reducer:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._stopped_reducer, signal.SIGCONT)

    def _send(self, pid: int) -> None:
        name = self.cell.signal
        if name == "STOP+CONT":
            os.kill(pid, signal.SIGSTOP)
            time.sleep(_STOPPED_S)
            os.kill(pid, signal.SIGCONT)
        elif name == "2 x INT":
            os.kill(pid, signal.SIGINT)
            if self.cell.process == "parent":
                self._until_heard()
            os.kill(pid, signal.SIGINT)
        else:
            os.kill(pid, getattr(signal, f"SIG{name}"))

    def _until_heard(self) -> None:
        """Wait until the parent says that it heard a signal."""
        self.until(lambda: b"stopping" in (self.folder / "stderr.txt").read_bytes())

    def end(self) -> Done:
        """The end of the run, and of all its processes."""
        out: list[bytes] = []

        def read() -> None:
            while piece := os.read(self._stdout, 1 << 16):
                out.append(piece)
            os.close(self._stdout)

        reader = threading.Thread(target=read, daemon=True)
        reader.start()
        try:
            code = self.running.process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            self.kill_all()
            raise TimeoutError("the run did not end") from None
        over = time.monotonic() + PATIENCE_S
        while self.running.survivors() and time.monotonic() < over:
            time.sleep(0.02)
        reader.join(PATIENCE_S)
        return Done(code, b"".join(out).decode(), (self.folder / "stderr.txt").read_text(), self.artifacts)

    def kill_all(self) -> None:
        self.running.signal_all(signal.SIGKILL)
        self.running.process.wait()


def words(cell: KillCell, server: FaultServer, folder: Path) -> list[str]:
    file = folder / "prompts.jsonl"
    rows = [{"timestamp": 25 * n, "text_input": f"line {n}", "output_length": 6} for n in range(REQUESTS)]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    load = {
        "burst": ["--concurrency", "4", "--no-fixed-schedule"],
        "request_rate": ["--request-rate", "40", "--no-fixed-schedule"],
        "fixed_schedule": ["--fixed-schedule"],
    }[cell.mode]
    if cell.moment == CHANGE:
        load += ["--warmup-request-count", str(WARMUP)]
    if cell.moment == WAITING:
        load += ["--wait-for-model-timeout", "600", "--wait-for-model-mode", "models", "--wait-for-model-interval", "0.1"]
    return [
        "profile", "--model", "m", "--url", server.url, "--endpoint-type", "chat", "--streaming", "--tokenizer", "builtin",
        "--use-server-token-count", "--input-file", str(file), *load, "--request-count", str(REQUESTS), "--random-seed", "1",
        "--export-level", "raw", "--ui", "none",
    ]  # fmt: skip


def run(cell: KillCell, folder: Path, *, quiescent: bool = False) -> Killed:
    """Play the cell in *folder*, whose ``temporary`` is the run's directory for temporary files.

    *quiescent*: hold the streams before the signal until everything sent is on disk; nothing at all may be lost then.
    """
    (folder / "temporary").mkdir(parents=True, exist_ok=True)
    with Lag() as lag, FaultServer(step_s=STEP_S) as server:
        server.ready = cell.moment != WAITING
        _hold(cell, server)
        stage = Stage(cell, folder, server)
        try:
            stage.reach()
            if quiescent:
                stage.until(lambda: _settled(server, stage.journal))
            stage.signal()
            done = stage.end()
        except TimeoutError as error:
            stage.kill_all()
            return Killed([str(error)])
        if left := stage.running.survivors():
            stage.kill_all()
            return Killed([f"process left: {command[:100]}" for command in left])
        bound_ms = 0.0 if quiescent else FRAME_MS + lag.worst_ns / 1e6
        return _Verdict(stage, done, bound_ms).killed()


def _hold(cell: KillCell, server: FaultServer) -> None:
    """Streams that wait for the signal, so that the run cannot be past the moment before it comes."""
    if cell.moment == FIRST:
        server.hold(0, 1)
    elif cell.moment == LOAD:
        server.hold(REQUESTS - 6, 3)
    elif cell.moment == DRAINING:
        server.hold(REQUESTS - 4, 2)
    elif cell.moment == CHANGE:
        server.hold(WARMUP, 0)


def _settled(server: FaultServer, directory: Path) -> bool:
    """Whether all that was sent is on disk, and nothing is coming: a schedule goes on while streams are held."""
    rows = list(server.rows)
    latest_ns = max((row.received_ns for row in rows), default=0)
    if time.monotonic_ns() - latest_ns < 2 * FRAME_MS * 1e6:
        return False
    requests, content = _journaled(directory)
    return requests >= len(rows) and content >= sum(len(row.content) for row in rows)


def _journaled(directory: Path) -> tuple[int, int]:
    """Requests, and pieces of content, in the segments."""
    requests = content = 0
    for path in journal.numbered(directory, "shard-*.seg"):
        for frame in journal.frames(path):
            if frame.kind == journal.SENT:
                requests += frame.count
            elif frame.kind == journal.CHUNKS:
                content += frame.payload[frame.count * len(journal.CHUNK_FIELDS) * 8 :].count(b'"content"')
    return requests, content


class _Verdict:
    """Judges what a run, or a report of it, says, by the server's log."""

    def __init__(self, stage: Stage, done: Done, bound_ms: float) -> None:
        self.stage, self.cell, self.server, self.done = stage, stage.cell, stage.server, done
        self.bound_ms = bound_ms

    def killed(self) -> Killed:
        killed = Killed(list(self._exit()))
        if not list(self.done.artifacts.glob("*aiperf.json")):
            problem = self._report()
            if problem is not None:
                killed.problems += [problem] if problem else []
                return killed
        killed.lost_ms = self._lost_ms()
        if killed.lost_ms > self.bound_ms:
            killed.problems.append(f"content lost that was sent {killed.lost_ms:.0f} ms before the signal")
        killed.problems += [*self._completeness(), *self._arrivals()]
        return killed

    def _exit(self) -> Iterator[str]:
        code, cell = self.done.code, self.cell
        if "Traceback" in self.done.out + self.done.err:
            yield f"a traceback: {self.done.err.strip().splitlines()[-1]}"
        if cell.process == "parent":
            if code != _CODES[cell.signal]:
                yield f"exit code {code}, not {_CODES[cell.signal]}: {self.done.last_words}"
        elif code not in (0, 1):
            yield f"exit code {code}: {self.done.last_words}"

    def _report(self) -> str | None:
        """Make the report.  None where there is one then, an empty text where there can be none, else what is wrong."""
        if not (self.stage.journal / "run.json").exists():
            return f"{len(self.server.rows)} requests received, and no journal" if self.server.rows else ""
        command = [sys.executable, "-m", "aiperf", "report", str(self.done.artifacts)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False, cwd=self.stage.folder)
        if "Traceback" in done.stderr or done.returncode not in (0, 1):
            return f"report: {done.stderr.strip().splitlines()[-1:]}"
        if not list(self.done.artifacts.glob("*aiperf.json")):
            return f"no report of {len(self.server.rows)} requests: {done.stderr.strip()[-160:]}" if self.server.rows else ""
        return None

    def _completeness(self) -> Iterator[str]:
        summary = self.done.json()
        outcomes = Counter(row["outcome"] for row in self._ledger() if row["phase"] == "profiling")
        if summary["is_complete"] and outcomes != Counter(completed=REQUESTS):
            yield f"called complete: {dict(outcomes)}, of {len(self.server.rows)} requests received"
        if summary["is_complete"] and self.cell.process == "parent" and self.cell.signal != "STOP+CONT":
            recorded = self.cell.moment == EXPORTING or (self.cell.moment == REDUCING and not summary["was_cancelled"])
            if not recorded:
                yield "called complete, and its end was not recorded"
        over = self.cell.process == "parent" and self.cell.moment in (REDUCING, EXPORTING) and self.cell.signal != "KILL"
        if over and not summary["is_complete"]:
            yield f"called incomplete, though it was stopped behind its last arrival: {summary['incomplete_reason']}"
        if not summary["is_complete"] and self.done.code == 0:
            yield f"exit code 0 for an incomplete run: {summary['incomplete_reason']}"
        harmless = self.cell.signal == "STOP+CONT" or (self.cell.process == "reducer" and self.done.code == 0)
        if harmless and not summary["is_complete"]:
            yield f"called incomplete: {summary['incomplete_reason']}"

    def _ledger(self) -> list[dict[str, Any]]:
        return self.done.lines("profile_export_arrivals.jsonl")

    def _arrivals(self) -> Iterator[str]:
        """One outcome each; nothing of what the server saw early enough is missing or called unsent."""
        ledger = self._ledger()
        main = [row["n"] for row in ledger if row["phase"] == "profiling"]
        if sorted(main) != list(range(REQUESTS)):
            yield f"{len(main)} rows, {len(set(main))} arrivals, {REQUESTS} planned"
        by_id = {row["x_request_id"]: row for row in ledger if row.get("x_request_id")}
        seen = {row.request_id for row in self.server.rows}
        if strange := [name for name, row in by_id.items() if row["outcome"] == "completed" and name not in seen]:
            yield f"{len(strange)} completed that the server never received"
        until_ns = self.stage.signalled_ns - self.bound_ms * 1e6 if self._loses() else self.stage.signalled_ns
        early = [row for row in self.server.rows if row.received_ns < until_ns]
        if missing := [row for row in early if row.request_id not in by_id]:
            yield f"{len(missing)} requests that the server received are missing"
        ended = [row for row in self.server.rows if row.outcome == ANSWERED and (row.ended_ns or 0) < until_ns]
        known = [by_id[row.request_id]["outcome"] for row in ended if row.request_id in by_id]
        if late := Counter(outcome for outcome in known if outcome != "completed"):
            yield f"answered before the signal, and called {dict(late)}"
        unsent = sum(row["outcome"] == "never_sent" for row in ledger)
        if unsent > len(ledger) - len(self.server.rows):
            yield f"{unsent} called never sent; the server received {len(self.server.rows)} of {len(ledger)}"
        if self.server.rows and any(row.outcome == IN_FLIGHT for row in self.server.rows):
            yield "the server still answers"

    def _loses(self) -> bool:
        """Whether the signal ends the process that observes."""
        return self.cell.process == "worker" and self.cell.signal in ("KILL", "HUP", "TERM")

    def _lost_ms(self) -> float:
        """Age, at the signal, of the oldest content that was sent before it and is not in the journal."""
        sent = sorted(ns for row in self.server.rows for ns in row.content if ns < self.stage.signalled_ns)
        lost = len(sent) - _journaled(self.stage.journal)[1]
        return (self.stage.signalled_ns - sent[-lost]) / 1e6 if lost > 0 else 0.0


def leftovers(folder: Path, clean: frozenset[str]) -> list[str]:
    """Files that a run leaves in *folder* and a clean one does not, after one more start where there are any."""
    temporary = folder / "temporary"
    if names(folder / "artifacts") <= clean and not any(temporary.iterdir()):
        return []
    aiperf = Program(folder)
    aiperf.environment["TMPDIR"] = str(temporary)
    with FaultServer() as server:
        cell = KillCell("none", "parent", LOAD, "burst")
        done = aiperf(*words(cell, server, folder))
    problems = [] if done.code == 0 else [f"the next start: exit code {done.code}: {done.last_words}"]
    problems += [f"file left: {name}" for name in sorted(names(done.artifacts) - clean)]
    return problems + [f"temporary file left: {path.name}" for path in temporary.iterdir()]


def names(artifacts: Path) -> frozenset[str]:
    """Files and folders below *artifacts*, any number in their names as 0."""
    return frozenset(re.sub(r"\d+", "0", str(path.relative_to(artifacts))) for path in artifacts.rglob("*"))


def clean_names(folder: Path) -> frozenset[str]:
    """What a run leaves that nobody disturbed."""
    folder.mkdir(parents=True, exist_ok=True)
    with FaultServer() as server:
        done = Program(folder)(*words(KillCell("none", "parent", LOAD, "burst"), server, folder))
    assert done.code == 0, done.err
    return names(done.artifacts)
