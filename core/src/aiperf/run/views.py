"""The live views of a run: their processes, what these are told, and what they ask for."""

from __future__ import annotations

import contextlib
import logging
import math
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Protocol

import msgspec

from aiperf.errors import PluginError
from aiperf.logs import print_line
from aiperf.processes.local import SideProcess, fate
from aiperf.redaction import harmless
from aiperf.run.start import Signals
from aiperf.run.viewing import (
    Began,
    Broke,
    Logged,
    Message,
    Opened,
    PlanEnded,
    Shown,
    Stepped,
    decode_reply,
    encode,
)
from aiperf.sdk.descriptor import PluginRef
from aiperf.sdk.live import Asked, LiveEnd, LiveRun, Said, Step
from aiperf.sdk.options import EncodedOptions
from aiperf.sdk.plan import Plan
from aiperf.sdk.snapshot import LogLine, Snapshot

log = logging.getLogger(__name__)

_BEGINS_S, _STARVES_S = 0.5, 2.0
"""A view that takes longer to begin waits for a core that others than the run have: before the load, and beside it."""
_RAISED_S, _AGAIN_S = 10.0, 0.2
"""Longest time in which it has the run's priority then, since it may hang; time between two tries to raise it."""
_LAGS_S = 5.0
"""A view that takes nothing for so long is said to be slow, once a plan."""
_MOST_LINES_BYTES = 256 << 10
"""Bytes of messages that wait for a view, beyond which it loses lines of the log."""
_MOST_SAID = 20
"""Sentences of a view that a plan logs."""
_STAYS_S = 2.0
_LONGEST_REASON = 500
"""Characters of a view's reason that the report has."""


class Prioritized(Protocol):
    """What sets the priority of a process, and tells whether it reads; as :class:`aiperf.processes.local.SideProcess`."""

    @property
    def unread(self) -> int: ...

    def raise_priority(self) -> bool: ...

    def lower_priority(self) -> bool: ...


class ViewPriority:
    """The priority of a view's process until it has begun: on a machine without a free core it would begin at the run's end.

    A process that waits for a core gets the run's priority, for a while, before the load and once more beside it.  One that has
    begun works at idle priority.
    """

    def __init__(self, process: Prioritized, clock: Callable[[], float] = time.monotonic) -> None:
        self._process, self._clock, self._over, self._put_off = process, clock, False, False
        self._raise_at_s, self._lower_at_s = clock() + _BEGINS_S, math.inf

    def stand_back(self) -> None:
        """The load begins."""
        self._put_off = not self._process.lower_priority()
        self._raise_at_s = self._clock() + _STARVES_S

    def follow(self) -> bool:
        """Give it the priority that it should have now; False once that is settled.  To be called often."""
        now_s = self._clock()
        if self._over or self._process.unread == 0 or now_s >= self._lower_at_s:
            self._over = True
            return not self._process.lower_priority()
        if now_s >= self._raise_at_s:
            self._lower_at_s = min(self._lower_at_s, now_s + _RAISED_S)
            with contextlib.suppress(OSError):  # it has ended
                self._raise_at_s = math.inf if self._process.raise_priority() else now_s + _AGAIN_S
        elif self._put_off:
            self._put_off = not self._process.lower_priority()
        return True


class ViewProcess:
    """The process of a view as the run sees it.  Nothing here waits for it, but :meth:`end`.

    log_file: for what it prints; None leaves it the run's own output, and the terminal.
    lost: snapshots that it was too slow for, of this plan.
    """

    def __init__(self, ref: PluginRef, options: EncodedOptions | None, *, log_file: Path | None = None) -> None:
        self.name, self.process = str(ref), SideProcess("aiperf.run.viewing", log=log_file, foreground=log_file is None)
        self.process.widen()
        self.lost = self._said = 0
        self._stuck_s: float | None = None
        self._told = False
        self._broke = ""
        self.priority = ViewPriority(self.process)
        self.process.send(Opened(ref, options, display=log_file is None))

    def send(self, message: bytes) -> None:
        """Send a message that must not be lost."""
        self.process.send_encoded(message)

    def show(self, message: bytes) -> None:
        """Send what the next such message makes worthless, unless something waits to be read."""
        if not self.process.backlogged:
            self._stuck_s = None
            self.process.send_encoded(message)
            return
        self.lost += 1
        now_s = time.monotonic()
        self._stuck_s = now_s if self._stuck_s is None else self._stuck_s
        if now_s - self._stuck_s >= _LAGS_S and not self._told:
            self._told = True
            log.warning("%s reads nothing, and loses snapshots", self.name)

    def log(self, message: bytes) -> None:
        if self.process.waiting < _MOST_LINES_BYTES:
            self.process.send_encoded(message)

    def begin(self) -> None:
        """A plan begins."""
        self.lost = self._said = 0
        self._told = False

    def replies(self) -> list[Asked | Said]:
        """What it has said since the last call, at most 64 KiB of it."""
        found: list[Asked | Said] = []
        for line in self.process.receive_some():
            try:
                reply = decode_reply(line)
            except msgspec.DecodeError:
                continue
            if isinstance(reply, Broke):
                self._broke = reply.why
            elif isinstance(reply, Asked):
                found.append(reply)
            else:
                self._said += 1
                found += [reply] if self._said <= _MOST_SAID else []
        return found

    def check(self) -> None:
        """
        Raises:
            PluginError: It has failed.
        """
        code = self.process.poll()
        if code is not None:
            self.replies()
            raise PluginError(self._broke or f"its process {fate(code)}")

    def end(self, patience_s: float) -> None:
        """Let it end by itself, with the run's priority: the load is over.  Kill it behind *patience_s*."""
        with contextlib.suppress(OSError):  # it has ended
            self.process.raise_priority()
        self.process.end(patience_s)

    def close(self) -> None:
        self.process.close()


class Views:
    """The live views of a run, over all of its plans.  A view that fails is reported, and left out of further plans."""

    def __init__(self) -> None:
        self._running: dict[tuple[PluginRef, bytes], ViewProcess] = {}
        self._stays: dict[tuple[PluginRef, bytes], float] = {}
        self._failed: set[tuple[PluginRef, bytes]] = set()
        self._early: list[ViewProcess] = []

    def __bool__(self) -> bool:
        return bool(self._running)

    def missing(self, plan: Plan) -> int:
        """How many processes :meth:`begin` will start."""
        return len([key for key in _keys(plan) if key not in self._running and key not in self._failed])

    def begin(self, plan: Plan, run: LiveRun, log_file: Path) -> None:
        """Start the views of the plan that don't run yet, end those that it lacks, and tell all of it."""
        wanted = _keys(plan)
        for key in [key for key in self._running if key not in wanted]:
            self._end([key])
        for key, (ref, options) in wanted.items():
            if key not in self._running and key not in self._failed:
                self._running[key] = view = ViewProcess(ref, options, log_file=log_file)
                self._early.append(view)
                self._stays[key] = float(plan.plugins.facts.get(ref.key, {}).get("stays_s", _STAYS_S))
        for view in self._running.values():
            view.begin()
        self._send(Began(run, str(log_file)))

    def stand_back(self) -> None:
        """The load begins: views work at idle priority from now on."""
        for view in self._early:
            view.priority.stand_back()

    def step(self, step: Step) -> None:
        self._show(Stepped(step))

    def show(self, snapshot: Snapshot) -> None:
        self._show(Shown(snapshot))

    def log(self, line: LogLine) -> None:
        if self._running:
            message = encode(Logged(line)) + b"\n"
            for view in self._running.values():
                view.log(message)

    def end(self, end: LiveEnd) -> None:
        self._send(PlanEnded(end))

    def heed(self, signals: Signals, show: Callable[[str], None]) -> None:
        """Do what views ask for, and leave out those that have failed.  *show*: prints what goes into no log."""
        self._early = [view for view in self._early if view.priority.follow()]
        for key, view in [*self._running.items()]:
            for reply in view.replies():
                heed(reply, view.name, signals, show)
            try:
                view.check()
            except PluginError as error:
                self._leave(key, error.message)

    def close(self) -> None:
        """End all, each within the time that it may stay.  May be called again."""
        self._end([*self._running])

    def _end(self, keys: list[tuple[PluginRef, bytes]]) -> None:
        views = [(self._running.pop(key), self._stays[key]) for key in keys]
        self._early = [view for view in self._early if view in self._running.values()]
        begun_s = time.monotonic()
        for view, _ in views:
            view.process.finish_input()
        for view, stays_s in views:
            view.end(max(0.0, begun_s + stays_s - time.monotonic()))
            for reply in view.replies():
                if isinstance(reply, Said):  # there is nothing left to end
                    tell(reply, view.name)
            try:
                if view.process.poll():
                    view.check()
            except PluginError as error:
                log.warning("%s failed at its end: %s", view.name, error.message)
            view.close()

    def _leave(self, key: tuple[PluginRef, bytes], reason: str) -> None:
        view = self._running.pop(key)
        self._failed.add(key)
        self._early = [other for other in self._early if other is not view]
        view.end(0.0)
        view.close()
        log.warning("%s failed, and is left out: %s", view.name, reason.removeprefix(f"{view.name} "))

    def _send(self, message: Message) -> None:
        if self._running:
            data = encode(message) + b"\n"
            for view in self._running.values():
                view.send(data)

    def _show(self, message: Message) -> None:
        if self._running:
            data = encode(message) + b"\n"
            for view in self._running.values():
                view.show(data)


def heed(reply: Asked | Said, name: str, signals: Signals, show: Callable[[str], None]) -> None:
    """Do what the view *name* asks for.  *show*: as for :meth:`Views.heed`."""
    if isinstance(reply, Asked):
        signals.ask(reply.kind, name, harmless(" ".join(reply.reason.split()))[:_LONGEST_REASON])
    else:
        tell(reply, name, show)


def tell(said: Said, name: str, show: Callable[[str], None] = print_line) -> None:
    """Log, or *show*, what the view *name* says."""
    if said.unlogged:
        show(harmless(" ".join(said.sentence.split())))
        return
    log.log(said.level, "%s: %s", name, harmless(" ".join(said.sentence.split())))


def _keys(plan: Plan) -> dict[tuple[PluginRef, bytes], tuple[PluginRef, EncodedOptions | None]]:
    options: Mapping[str, EncodedOptions] = plan.plugins.options
    return {(ref, msgspec.json.encode(options.get(ref.key))): (ref, options.get(ref.key)) for ref in plan.plugins.live}
