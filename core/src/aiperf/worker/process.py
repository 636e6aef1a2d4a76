"""A worker process: one loop, one core, one share of the plan.

    python -m aiperf.worker.process ADDRESS INDEX FDS

It imports neither typer, pydantic, numpy nor a tokenizer.  Standard input is a pipe that the parent holds open: when it ends
the parent is gone, and the worker stops, drains briefly and leaves a whole journal behind.  Each plan has a loop and a
:class:`Worker` of its own, so that a plan finds nothing of the one before.  Messages, phases and ends stand in one module,
because each changes what the others may do.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import resource
import signal
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from time import monotonic_ns, process_time_ns
from typing import Any

from aiperf import environment, logs
from aiperf.cores import ask_for_short_slices
from aiperf.errors import AiperfError
from aiperf.processes import control
from aiperf.processes.leftovers import Leftovers
from aiperf.processes.local import ignore_endings
from aiperf.registry.hooks import REQUEST_PREPARED, Hooks
from aiperf.registry.patience import no_exit
from aiperf.registry.third_party import why
from aiperf.rundir import journal
from aiperf.worker.clock import NS_PER_S, slept_ns
from aiperf.worker.core_waits import CoreWaits
from aiperf.worker.requests import Requests
from aiperf.worker.share import Share, WorkerPlace, load_share
from aiperf.worker.stalls import DEBUG, Stalls

_TICK_S = 0.05
_SWEEP_TICKS, _LOOP_TICKS = 5, 20
"""Ticks from one look for requests that take too long to the next, and from one LOOP frame to the next."""
_ORPHAN_DRAIN_NS, _TROUBLE_DRAIN_NS = 1 * NS_PER_S, 5 * NS_PER_S
"""How long requests in flight may go on without the run's own process, and on a full disk."""
_STOP_NS = 10_000_000
"""A stop that is shorter is not told."""
_UNEXPECTED_ERROR = 70
"""Exit code of a worker that ends itself because of an unexpected error: EX_SOFTWARE of sysexits.h."""


class Worker:
    """A plan in this process, around its requests: control line, phases, ticks.

    fds: what the process has inherited.  released: whether another plan may follow.
    """

    # More than 20 attributes: what it waits for, what it has told and what it measured change together, at ticks and messages.

    def __init__(self, line: control.Line, index: int, fds: list[int], directory: Path) -> None:
        self.line, self.index, self.fds, self.directory = line, index, fds, directory
        self.loop = asyncio.get_running_loop()
        self.ended = asyncio.Event()
        self.share: Share | None = None
        self._load_task: asyncio.Task[None] | None = None
        self._timers: list[asyncio.TimerHandle] = []
        self._lags: list[int] = []
        self._ticks = self._tick_due_ns = 0
        self._started_ns, self._slept_ns, self._stopped_ns = monotonic_ns(), slept_ns(), 0
        self._core_waits = CoreWaits()
        self._last_counters: tuple[object, ...] = ()
        self._stalls: Stalls | None = None
        self.released = self._reported_trouble = self._orphan = self._closed = False
        self._logging = contextlib.ExitStack()

    @property
    def _active(self) -> Share | None:
        """The share while a phase is under way."""
        return self.share if self.share is not None and self.share.phase_open else None

    def start(self) -> None:
        self.loop.set_exception_handler(self._on_loop_error)
        signal.signal(signal.SIGCONT, self._on_continue)  # before any callback of the loop, unlike its own handlers
        self.loop.add_reader(self.line.fd, self._receive)
        self.loop.add_reader(0, self._on_parent_end)
        self._schedule_tick()
        self._receive()

    async def close(self) -> None:
        """Close the transport and the journal; the loop ends behind it."""
        self._closed = True
        self._logging.close()
        signal.signal(signal.SIGCONT, signal.SIG_DFL)
        if self._active is not None:
            self._active.requests.stop()
        if self.share is not None:
            await self.share.requests.transport.close()
            self.share.logbook.close()

    # The control line

    def _receive(self) -> None:
        while not self._closed and (message := self.line.receive()) is not None:
            match message:
                case control.Load():
                    self._load_task = self.loop.create_task(self._load(message))
                case control.Begin():
                    self._begin(message)
                case control.Stop():
                    self._stop(message.drain_ns)
                case control.Exit() | control.Release():
                    self.released = isinstance(message, control.Release)
                    self.ended.set()

    def _send(self, message: control.Message) -> None:
        if not self._closed:
            self.line.send(message)
            self.loop.call_soon(self._receive)  # the line's descriptor is edge-triggered: a send may swallow an edge

    def _warn(self, sentence: str) -> None:
        self._send(control.Notice(sentence))

    def _log(self, level: int, line: str) -> None:
        """A line of a plugin's, from any thread; each once in a run, because all workers may say the same."""
        self.loop.call_soon_threadsafe(self._send, control.LogLines(level, [line], once=True))

    def _on_parent_end(self) -> None:
        if os.read(0, 4096):
            return
        self.loop.remove_reader(0)
        self.line.parent_gone()
        self._orphan = True
        if self._active is None:
            self.ended.set()
        else:
            self._stop(_ORPHAN_DRAIN_NS)

    async def _load(self, message: control.Load) -> None:
        try:
            logs.scrub_output(message.secrets.texts)
            plan = message.secrets.restored(journal.load_run(self.directory)[0])
            self._logging.enter_context(logs.sent(plan.run.log_level, self._log))
            workers, sites, claims = plan.run.workers, len(plan.run.sites) or 1, plan.run.deals_numbers
            place = WorkerPlace(self.index, workers, self.fds if workers > 1 or claims else self.fds[:1], sites, claims)
            hooks = Hooks.load(plan.plugins.hooked("aiperf_make_transport", REQUEST_PREPARED), self._warn)
            self._stalls = Stalls(self.index) if plan.run.log_level <= DEBUG else None
            self.share = await load_share(plan, message.secrets, self.directory, place, hooks, self._warn)
            self.share.give_up = lambda sentence: self._send(control.Trouble(sentence))
        except Exception as error:  # noqa: BLE001  # code of a plugin: a transport may fail at opening connections
            reason = error.message if isinstance(error, AiperfError) else why(error)
            self._send(control.Ready("worker", self.index, reason))
            return
        gc.collect()
        gc.disable()
        self._send(control.Ready("worker", self.index))

    # Phases

    def _begin(self, message: control.Begin) -> None:
        share = self.share
        if share is None or self._orphan:
            return
        phase, requests = share.plan.load.phases[message.phase], share.requests
        driver = share.driver(phase)
        driver.on_complete = partial(self._on_sending_complete, share)
        requests.begin(phase, driver, partial(self._end_phase, phase.index))
        self._write_loop_frame(share)  # where the phase's processor time begins
        share.phase_open = True
        begin = {"phase": phase.index, "event": "begin", "at_ns": message.start_ns}
        share.logbook.frame(journal.PHASE, begin | {"resumed": True} if message.resumed else begin)
        if phase.duration_ns is not None:
            self._call_at(message.start_ns + phase.duration_ns, requests.stop)
            if phase.grace_ns is not None:
                self._call_at(message.start_ns + phase.duration_ns + phase.grace_ns, requests.abort_all)
        for rise in share.rises:
            rise.begin(message.start_ns, skip=message.resumed and len(share.place.fds) > 1)
        driver.begin(message.start_ns)

    def _call_at(self, at_ns: int, call: Callable[[], None]) -> None:
        def due() -> None:
            if monotonic_ns() < at_ns:  # a timer of the loop may end up to a millisecond early
                self._call_at(at_ns, call)
            else:
                call()

        self._timers.append(self.loop.call_later(max(0, at_ns - monotonic_ns()) / NS_PER_S, due))

    def _cancel_timers(self) -> None:
        for timer in self._timers:
            timer.cancel()
        self._timers.clear()
        if self.share is not None:
            for rise in self.share.rises:
                rise.stop()
            self.share.rises.clear()

    def _on_sending_complete(self, share: Share) -> None:
        requests, index = share.requests, share.requests.phase.index
        if requests.unready:  # the driver is done, and some of its requests wait for their entries
            requests.unready.on_empty = partial(self._on_sending_complete, share)
            return
        event = {"phase": index, "event": "sending_complete", "at_ns": monotonic_ns(), "sent": requests.in_flight.sent}
        share.logbook.frame(journal.PHASE, event)
        if not requests.in_flight.open:
            # Later, because the driver may still be inside a send.
            self.loop.call_soon(self._end_phase, index)

    def _end_phase(self, index: int) -> None:
        share = self._active
        if share is None or share.requests.in_flight.open or share.requests.unready or share.requests.phase.index != index:
            return  # requests are in flight, or the phase has ended and the next one has begun
        self._cancel_timers()
        self._lags.append(max(0, monotonic_ns() - self._tick_due_ns))  # of the tick that the end forestalls
        self._write_loop_frame(share)
        share.phase_open = False
        at_ns = monotonic_ns()
        share.logbook.frame(journal.PHASE, {"phase": index, "event": "end", "at_ns": at_ns})
        self._send_counters(share.requests)
        self._send(control.PhaseEnded(self.index, index, share.requests.in_flight.last_answer_ns, at_ns))
        if self._orphan:
            self.ended.set()

    def _stop(self, drain_ns: int) -> None:
        if self._active is None:
            return
        requests = self._active.requests
        requests.stop()
        if drain_ns <= 0:
            requests.abort_all()
        else:
            self._call_at(monotonic_ns() + drain_ns, requests.abort_all)

    # Ticks

    def _schedule_tick(self) -> None:
        self._tick_due_ns = monotonic_ns() + int(_TICK_S * NS_PER_S)
        self.loop.call_later(_TICK_S, self._tick)

    def _tick(self) -> None:
        now = monotonic_ns()
        self._lags.append(max(0, now - self._tick_due_ns))
        self._ticks += 1
        share = self.share
        slept_before_ns, self._slept_ns = self._slept_ns, slept_ns()
        self._stopped_ns += self._slept_ns - slept_before_ns
        if self._stopped_ns > _STOP_NS:
            if self._active is not None:
                event = {"phase": self._active.requests.phase.index, "event": "stopped", "at_ns": now}
                self._active.logbook.frame(journal.PHASE, event | {"for_ns": self._stopped_ns})
            self._stopped_ns = 0
        if share is not None:
            share.logbook.flush()
            if share.phase_open and share.logbook.trouble is not None and not self._reported_trouble:
                self._reported_trouble = True
                self._send(control.Trouble(share.logbook.trouble))
                self._stop(_TROUBLE_DRAIN_NS)
            if self._ticks % _SWEEP_TICKS == 0:
                (requests := share.requests).early_ends.sweep(now)
                self._send_counters(requests)
                if self._stalls and (line := self._stalls.line(requests.in_flight, requests.transport, now)):
                    self._send(control.LogLines(DEBUG, [line]))
            if self._ticks % _LOOP_TICKS == 0:
                self._write_loop_frame(share)
        self._schedule_tick()

    def _on_continue(self, number: int, frame: object) -> None:
        """SIGCONT: the process was stopped, and runs again from here on."""
        self._stopped_ns += max(0, monotonic_ns() - self._tick_due_ns)

    def _send_counters(self, requests: Requests) -> None:
        row = requests.phase.index, *requests.in_flight.counters(monotonic_ns())
        if row != self._last_counters:
            self._last_counters = row
            share = self.share
            self._send(control.Counters(self.index, *row, received_bytes=None if share is None else share.logbook.packed_bytes))

    def _write_loop_frame(self, share: Share) -> None:
        times = {
            "lag_ns": self._lags, "cpu_ns": process_time_ns(), "wall_ns": monotonic_ns() - self._started_ns,
            "encode_ns": share.requests.contents.encode_ns, "disk_ns": share.logbook.write_ns, **self._core_waits.times(),
        }  # fmt: skip
        share.logbook.frame(journal.LOOP, {**times, "statistics": _statistics(share), "in_phase": share.phase_open})
        self._lags = []

    def _on_loop_error(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """An unexpected error in a callback ends this process: a timer, socket or plugin is dead, the phase might never end.

        The run treats the process like any that dies.  Its report names the error.
        """
        error = context.get("exception")
        loop.default_exception_handler(context)  # with its traceback, into the log
        if "handle" not in context or not isinstance(error, Exception):
            return  # no callback: the result of a task that nobody awaited, or a warning
        self._warn(f"worker {self.index} failed: {why(error)}")
        try:
            if self.share is not None:
                self.share.logbook.close()
            self.line.close()
            sys.stderr.flush()
        finally:
            os._exit(_UNEXPECTED_ERROR)


def _statistics(share: Share) -> dict[str, int]:
    """Counters of the share's reads, journal and connections, and of requests that waited for their entries."""
    transport = share.requests.transport
    statistics = {"reads": share.logbook.reads, "journal_bytes": share.logbook.packed_bytes} | transport.statistics
    if getattr(transport, "stamps", "kernel") == "read":  # classes of before lack the attribute
        statistics["stamps_missing"] = 0
    if not_ready := share.requests.unready.count:
        statistics["not_ready"] = not_ready
    return statistics


async def _run(line: control.Line, index: int, fds: list[int], directory: Path) -> bool:
    """Run a plan; whether another one may follow."""
    (worker := Worker(line, index, fds, directory)).start()
    await worker.ended.wait()
    await worker.close()
    for segment, piece in () if worker.share is None else worker.share.logbook.unwritten():
        line.send(control.Unwritten(segment, piece))
    return worker.released


def main(words: list[str]) -> None:
    address, index, fds = words
    ignore_endings()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < hard:  # as many open files as the machine allows
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    ask_for_short_slices()
    line = control.Line(address, f"worker-{index}")
    line.send(control.Hello("worker", int(index)))
    run: Callable[..., bool] = asyncio.run
    if environment.uvloop_wanted():
        import uvloop

        run = uvloop.run
    inherited, collect = [int(fd) for fd in fds.split(",") if fd], Leftovers().collect
    with no_exit(partial(print, file=sys.stderr)):
        while (prepare := line.next_plan()) and run(_run(line, int(index), inherited, Path(prepare.journal))):
            gc.enable()
            collect()
            line.send(control.Released("worker", int(index)))
    line.close()
    sys.stderr.flush()
    os._exit(0)  # everything is written and closed


if __name__ == "__main__":
    main(sys.argv[1:])
