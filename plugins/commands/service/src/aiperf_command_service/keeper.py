"""The keeper: runs what waits, one after the other, and writes down what became of it."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import shlex
import signal
import sys
import time
from concurrent.futures import Executor
from typing import Any

from aiperf_command_service.book import (
    CANCELLED,
    DONE,
    ENDED,
    FAILED,
    INTERRUPTED,
    PREPARING,
    QUEUED,
    RUNNING,
    UNDER_WAY,
    Book,
    Entry,
)
from aiperf_command_service.child import Child, born, environment
from aiperf_command_service.intake import Intake, Limits

CANCEL_S = 30.0
"""Longest time in which a cancelled run ends; then it is killed."""
_REPORT_S, _RESULTS_S = 600.0, 60.0
"""Longest times for a report of a half run, and for the results of a stopped one."""
_NUMBERS = ("request_throughput", "time_to_first_token", "inter_token_latency", "request_latency", "goodput", "request_count")
_STOPPED = frozenset((128 + signal.SIGINT, 128 + signal.SIGTERM, 128 + signal.SIGHUP))


class Keeper:
    """Runs of the service."""

    def __init__(self, book: Book, limits: Limits, launcher: Executor) -> None:
        self.book, self.limits, self._launcher, self._clock = book, limits, launcher, time.time
        self.intake = Intake(book, limits, self._taken)
        self.child: Child | None = None
        self._come, self.changed = asyncio.Event(), asyncio.Condition()
        self._hurried = 0
        self._works = False

    async def _taken(self) -> None:
        """A run has come into the queue."""
        self._come.set()
        await self.tell()

    async def end(self, entry: Entry) -> tuple[str, bool]:
        """``DELETE``: what was done, and whether the run is gone."""
        if entry.state == QUEUED or entry.state in ENDED:
            was = entry.state
            self.book.remove(entry)
            self.intake.secrets.pop(entry.id, None)
            await self.tell()
            return ("removed from the queue" if was == QUEUED else "its files are removed"), True
        entry.asked += 1
        self._save(entry)
        if self.child is not None:
            self._interrupt(self.child, entry)
        await self.tell()
        return (
            "stopping: requests in flight may end, and the results are written" if entry.asked == 1 else "cancelling"
        ), False

    def _interrupt(self, child: Child, entry: Entry) -> None:
        """Tell a run's program once more that it is to end; one that was told twice is killed after a while."""
        child.interrupt()
        if entry.asked >= 2:
            asyncio.get_running_loop().call_later(CANCEL_S, self._end_late, child)

    def _end_late(self, child: Child) -> None:
        if self.child is child:
            child.kill()

    async def tell(self) -> None:
        """Wake those who wait for a change."""
        async with self.changed:
            self.changed.notify_all()

    async def recover(self) -> None:
        """After a killed service: its half run is interrupted, with a report; runs whose keys are lost can't be run."""
        for entry in list(self.book.entries.values()):
            if entry.state in UNDER_WAY:
                await self._outlived(entry)
                entry.state, entry.ended_s = INTERRUPTED, self._clock()
                entry.reason = "the service was ended while it ran"
                if self.book.results(entry).is_dir():
                    await self._reported(entry)
                self._note_results(entry)
            elif entry.state == QUEUED and entry.secrets:
                entry.state, entry.ended_s = INTERRUPTED, self._clock()
                entry.reason = "its key was kept in memory alone, and the service was started again; post it once more"
            else:
                continue
            entry.pid = None
            self._save(entry)

    async def _outlived(self, entry: Entry) -> None:
        """Wait for the run's program, which ends with its service; kill what does not."""
        until_s = time.monotonic() + 30
        while entry.pid is not None and entry.born and born(entry.pid) == entry.born:
            if time.monotonic() > until_s:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(entry.pid, signal.SIGKILL)
            await asyncio.sleep(0.05)

    async def _reported(self, entry: Entry) -> None:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-P", "-m", "aiperf", "report", str(self.book.results(entry)), stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL, env=environment({}),
        )  # fmt: skip
        try:
            await asyncio.wait_for(process.wait(), _REPORT_S)
        except TimeoutError:
            process.kill()

    async def work(self) -> None:
        """Run what waits, one after the other, until the service ends."""
        self._works = True
        try:
            while not self.intake.ending:
                if waiting := self.book.waiting():
                    await self._run(waiting[0])
                    self._tidy()
                else:
                    self._come.clear()
                    if self.intake.ready is not None:
                        await self.intake.ready.prepare()
                    await self._come.wait()
        finally:
            self._works = False
            if self.intake.ready is not None:
                self.intake.ready.close()
            if self.child is not None:
                self.child.kill()

    def _tidy(self) -> None:
        """Remove what is not kept."""
        for old in self.book.outdated(self.limits.keep):
            self.book.remove(old)
        self.intake.measure_again()

    async def _run(self, entry: Entry) -> None:
        entry.state, entry.started_s = PREPARING, self._clock()
        file, results, log_file = self.book.file(entry), self.book.results(entry), self.book.log(entry)
        held = self.intake.secrets.pop(entry.id, {})
        variables = {**self.intake.variables, **held}
        self._save(entry)
        try:
            ready = self.intake.ready
            child = None if ready is None else await Child.of_ready(ready, file, results, log_file, variables)
            self.child = child or await Child.begin(self._launcher, file, results, log_file, variables, self.intake.where)
        except OSError as error:
            entry.state, entry.reason = FAILED, f"it can't be started: {error.strerror or error}"
        else:
            await self._follow(entry, self.child)
        self.child = None
        entry.pid, entry.ended_s = None, self._clock()
        self._save(entry)
        await self.tell()

    async def _follow(self, entry: Entry, child: Child) -> None:
        """From the start of a run's program to its end."""
        entry.pid, entry.born = child.pid, born(child.pid)
        self._save(entry)
        if entry.asked:
            self._interrupt(child, entry)
        await self.tell()
        running = asyncio.create_task(self._note_running(entry, child))
        code = await child.ended()
        running.cancel()
        if code < 0 and not self.intake.ending and self.book.results(entry).is_dir():
            await self._reported(entry)
        self._note_end(entry, code, child)

    def _save(self, entry: Entry) -> None:
        """Write a state; on a full disk it is told alone, and written with the next change: a run goes on, and can be ended."""
        with contextlib.suppress(OSError):
            self.book.save(entry)

    async def _note_running(self, entry: Entry, child: Child) -> None:
        await child.begun.wait()
        if entry.state == PREPARING:
            entry.state = RUNNING
            self._save(entry)
            await self.tell()
        await child.served.wait()
        await self.tell()

    def _note_end(self, entry: Entry, code: int, child: Child) -> None:
        entry.code = code if code >= 0 else 128 - code
        self._note_results(entry)
        stopped = entry.code in _STOPPED or child.killed
        late = "; it went on all the same, and was killed" if child.killed else ""
        if code == 0:
            entry.state = DONE
        elif entry.asked and stopped:
            entry.state, entry.reason = CANCELLED, f"somebody asked for its end{late}"
        elif self.intake.ending and stopped:
            entry.state, entry.reason = INTERRUPTED, f"the service ended{late}"
        elif code < 0:
            entry.state, entry.reason = FAILED, f"its program was killed by {signal.Signals(-code).name}"
        else:
            entry.state, entry.reason = FAILED, child.last_words.removeprefix("error:").strip()

    def _note_results(self, entry: Entry) -> None:
        """Verdict and key numbers of the run, or of a study's first."""
        results = self.book.results(entry)
        paths = [results / "profile_export_aiperf.json", *sorted(results.glob("*/profile_export_aiperf.json"))]
        for path in paths:
            try:
                found: dict[str, Any] = json.loads(path.read_bytes())
            except (OSError, ValueError):
                continue
            entry.verdict = str(found.get("measurement", {}).get("verdict", ""))
            rows = ((name, found.get(name)) for name in _NUMBERS)
            entry.numbers = {
                f"{name}_{stat}": float(row[stat]) for name, row in rows if isinstance(row, dict)
                for stat in ("avg", "p50", "p99") if isinstance(row.get(stat), int | float)
            }  # fmt: skip
            return

    async def drain(self, grace_s: float) -> None:
        """Take no run any more, and let the one under way end within *grace_s*; then stop it, with its results."""
        self.intake.ending = True
        self._come.set()
        await self.tell()
        stop_s, sent = time.monotonic() + grace_s, 0
        while self._works and self.book.under_way() is not None:
            now_s = time.monotonic()
            wanted = 2 if self._hurried > 1 or now_s >= stop_s + _RESULTS_S else int(self._hurried > 0 or now_s >= stop_s)
            if self.child is not None and sent < wanted:
                self.child.interrupt()
                sent += 1
            if self.child is not None and now_s >= stop_s + 1.25 * _RESULTS_S:
                self.child.kill()
            await asyncio.sleep(0.05)

    def hurry(self) -> None:
        """A further signal: stop the run at once, then cancel it."""
        self._hurried += 1


def size_of(text: str) -> int | None:
    """Bytes of ``20GB``, ``500MiB`` or ``1000000``; None where it is no size."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(?:([KMGT])(i?)B?|B)?", text.strip(), re.IGNORECASE)
    if match is None:
        return None
    base = 1024 if match[3] else 1000
    return int(float(match[1]) * base ** (" KMGT".index(match[2].upper()) if match[2] else 0))


def shown(entry: Entry, position: int | None) -> dict[str, Any]:
    """What a route says of a run."""
    own = {
        "id": entry.id, "state": entry.state, "label": entry.label, "command": shlex.join(entry.command),
        "posted_at": entry.posted_s, "started_at": entry.started_s, "ended_at": entry.ended_s, "exit_code": entry.code,
        "reason": entry.reason or None, "verdict": entry.verdict or None, "numbers": entry.numbers, "kept": entry.kept,
        "links": {"self": f"/runs/{entry.id}", "events": f"/runs/{entry.id}/events", "files": f"/runs/{entry.id}/files",
                  "archive": f"/runs/{entry.id}/archive", "page": f"/runs/{entry.id}/"},
    }  # fmt: skip
    return own | ({"position": position} if position is not None else {})


__all__ = ["CANCEL_S", "Keeper", "shown", "size_of"]
