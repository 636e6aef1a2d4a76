"""What is known of one run, in plain documents: routes and pages show it, whether the run goes on or is over."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
from aiperf_pages.assets import Body, body

from aiperf_live_api.history import History
from aiperf_live_api.streams import Streams

_MOST_LINES = 2_000
JSON = "application/json"
WAITING, RUNNING, COMPLETE, CANCELLED, INCOMPLETE = STATUSES = ("waiting", "running", "complete", "cancelled", "incomplete")
"""Status of a run, as ``/api/results`` has it; ``waiting`` before there is one."""

encode = msgspec.json.Encoder().encode


class RunAbout(msgspec.Struct):
    """What is known of a run from its begin.

    identity: the document of ``/api/run``.  config: of ``/api/config``.  labels: of ``/metrics``, by name.  title: for people.
    directory: of its results.  began_ns: wall clock; 0 is unknown.  version: of the program that made it.
    objectives: the bounds of its metrics, as the page draws them: ``tag``, ``title``, ``value`` in display units.
    """

    identity: dict[str, Any]
    config: dict[str, Any]
    labels: dict[str, str]
    title: str
    directory: Path | None = None
    began_ns: int = 0
    version: str = ""
    phases: list[dict[str, Any]] = []


class Board:
    """The state of one run.

    about: None before a run.  snapshot: the latest numbers, by the names of :class:`aiperf.sdk.snapshot.Snapshot`.
    finish: how it ended: ``status``, ``reason``, ``code``, ``files``; None while it goes on.  results: of ``/api/results``.
    live: whether the run is under way in another process, which can be asked to end.  asked: ``stop`` or ``cancel``.
    """

    def __init__(self, *, live: bool, most_clients: int | None = None) -> None:
        self.live = live
        self.about: RunAbout | None = None
        self.snapshot: dict[str, Any] | None = None
        self.step: dict[str, Any] | None = None
        self.finish: dict[str, Any] | None = None
        self.results: dict[str, Any] | None = None
        self.history = History()
        self.log: deque[dict[str, Any]] = deque(maxlen=_MOST_LINES)
        self.streams = Streams() if most_clients is None else Streams(most_clients)
        self.asked = ""
        self._bodies: dict[str, Body] = {}

    @property
    def status(self) -> str:
        """One of STATUSES."""
        if self.about is None:
            return WAITING
        return RUNNING if self.finish is None else str(self.finish["status"])

    def begin(self, about: RunAbout) -> None:
        """A run begins; of the one before nothing stays but its clients."""
        self.about, self.snapshot, self.step, self.finish, self.results = about, None, None, None, None
        self.history, self.asked = History(), ""
        self.log.clear()
        self.tell("run", self.run_event)

    def show(self, snapshot: dict[str, Any]) -> None:
        self.snapshot, self.step = snapshot, None
        self.tell("snapshot", lambda: snapshot)

    def work(self, step: dict[str, Any]) -> None:
        self.step = step
        self.tell("step", lambda: step)

    def add_line(self, line: dict[str, Any]) -> None:
        self.log.append(line)
        self.tell("log", lambda: line)

    def end(self, finish: dict[str, Any], results: dict[str, Any] | None) -> None:
        self.finish, self.results, self.step = finish, results, None
        self.tell("end", lambda: finish)

    def tell(self, kind: str, make: Callable[[], Any]) -> None:
        """Something is new: an event for those who read, and new answers."""
        self._bodies.clear()
        if self.streams:
            self.streams.send(kind, encode(make()))

    def run_event(self) -> dict[str, Any]:
        """What a page needs of the run at first."""
        about = self.about
        if about is None:
            return {"status": WAITING}
        return {
            "status": self.status, "live": self.live, "title": about.title, "began_ns": about.began_ns,
            "version": about.version, "run": about.identity, "labels": about.labels, "phases": about.phases,
            "asked": self.asked,
        }  # fmt: skip

    def first_events(self) -> list[tuple[str, Any]]:
        """What a client gets that comes now, in place of all events before."""
        first: list[tuple[str, Any]] = [("run", self.run_event())]
        if self.log:
            first.append(("lines", list(self.log)))
        for kind, document in (("step", self.step), ("snapshot", self.snapshot), ("end", self.finish)):
            if document is not None:
                first.append((kind, document))
        return first

    def cached(self, name: str, make: Callable[[], Any]) -> Body:
        """The answer of this name as JSON, made once between two changes."""
        if name not in self._bodies:
            self._bodies[name] = body(encode(make()), JSON)
        return self._bodies[name]

    def cached_text(self, name: str, content_type: str, make: Callable[[], str]) -> Body:
        if name not in self._bodies:
            self._bodies[name] = body(make().encode(), content_type)
        return self._bodies[name]


__all__ = ["CANCELLED", "COMPLETE", "INCOMPLETE", "RUNNING", "STATUSES", "WAITING", "Board", "RunAbout", "encode"]
