"""The process of one telemetry source: samples it at both edges of each phase, and at its interval in between.

    python -m aiperf.telemetry.process REPLIES
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable
from pathlib import Path
from time import monotonic_ns, time_ns
from types import SimpleNamespace
from typing import Any, TypeAlias

import msgspec
from msgspec import Struct

from aiperf.aside import Heard, say
from aiperf.descriptor import PluginRef
from aiperf.errors import AiperfError, PluginError
from aiperf.hookcalls import implementations
from aiperf.strangers import load, who, why
from aiperf.telemetry import Absent, Point, TelemetryContext, TelemetrySource
from aiperf.telemetry.samples import Moment, Origin, SampleWriter

BEGIN, END = "begin", "end"
_NS = 1_000_000_000
_LEAST_S = 0.01


class Opened(Struct, frozen=True, tag=True):
    """The first message: which source and its options, the file of its samples, who else listens and their options."""

    ref: PluginRef
    options: dict[str, Any] | None
    context: TelemetryContext
    path: str
    hooks: tuple[tuple[PluginRef, dict[str, Any] | None], ...] = ()


class Edge(Struct, frozen=True, tag=True):
    """A phase is about to begin, or has ended."""

    phase: int
    edge: str


Message: TypeAlias = Opened | Edge


class Sampled(Struct, frozen=True, tag=True):
    """The sample at that edge is on disk, or couldn't be had."""

    phase: int
    edge: str


class Trouble(Struct, frozen=True, tag=True):
    """Something for the report; *absent*: for the log alone."""

    message: str
    absent: bool = False


Reply: TypeAlias = Sampled | Trouble
_decode = msgspec.json.Decoder(Message).decode
decode_reply = msgspec.json.Decoder(Reply).decode


class Process:
    """Messages in, samples out.  *reply* tells the run; *clocks* read the monotonic and the wall clock."""

    def __init__(
        self, reply: Callable[[Reply], None], clocks: Callable[[], tuple[int, int]] = lambda: (monotonic_ns(), time_ns())
    ) -> None:
        self._reply, self._clocks = reply, clocks
        self._source: TelemetrySource | None = None
        self._writer: SampleWriter
        self._who = self._name = ""
        self._interval_ns = 0
        self._listeners: list[tuple[str, Callable[..., Any]]] = []
        self._complained: set[str] = set()
        self._phase: int | None = None
        self._due_ns = self._missed = 0

    def take(self, line: bytes) -> None:
        match _decode(line):
            case Opened() as opened:
                self._who, self._name = who(opened.ref), opened.ref.name
                try:
                    made = load(opened.ref)
                except PluginError as error:  # which names it
                    self._reply(Trouble(error.message))
                    return
                try:
                    self._open(opened, made)
                except Absent as absent:
                    self._reply(Trouble(f"{self._who}: {absent.message}", absent=True))
                except Exception as error:  # noqa: BLE001  # strangers' code
                    self._complain("can't be started", error)
            case Edge(phase, edge):
                self._sample(phase, edge)
                self._phase = phase if edge == BEGIN else None
                self._due_ns = self._clocks()[0] + self._interval_ns
                self._reply(Sampled(phase, edge))

    def rest_s(self) -> float | None:
        """Until the next sample is due; None while none will be."""
        if self._source is None or self._phase is None:
            return None
        return max(0.0, (self._due_ns - self._clocks()[0]) / _NS)

    def tick(self) -> None:
        """Sample, if it is time to.  Samples that there was no time for are counted, and the beat is kept."""
        now = self._clocks()[0]
        if self._source is None or self._phase is None or now < self._due_ns:
            return
        late = (now - self._due_ns) // self._interval_ns
        self._missed += late
        self._due_ns += (late + 1) * self._interval_ns
        self._sample(self._phase, None)

    def close(self) -> None:
        source, self._source = self._source, None
        if source is None:
            return
        self._writer.close()
        try:
            source.stop()
        except Exception as error:  # noqa: BLE001  # strangers' code
            self._complain("failed at its end", error)

    def _open(self, opened: Opened, made: type[TelemetrySource]) -> None:
        options = None if opened.options is None else SimpleNamespace(**opened.options)
        source = made(options, opened.context)
        source.start()
        interval_s = max(_LEAST_S, float(source.interval_s))
        listening = [(ref, None if given is None else SimpleNamespace(**given)) for ref, given in opened.hooks]
        self._listeners = implementations(listening, "aiperf_samples_arrived")
        self._writer = SampleWriter(Path(opened.path), Origin(opened.ref, interval_s))
        self._source, self._interval_ns = source, round(interval_s * _NS)

    def _sample(self, phase: int, edge: str | None) -> None:
        if self._source is None:
            return
        began_ns, wall_ns = self._clocks()
        try:
            points = [_checked(each) for each in self._source.sample()]
        except Exception as error:  # noqa: BLE001  # strangers' code
            self._complain("failed", error)
            reason = why(error)
            self._written(lambda: self._writer.failed(began_ns, phase, reason))
            return
        took_ns = self._clocks()[0] - began_ns
        moment = Moment(began_ns + took_ns // 2, wall_ns + took_ns // 2, took_ns, phase, edge, self._missed)
        self._missed = 0
        self._written(lambda: self._writer.add(points, moment))
        for name, call in self._listeners:
            try:
                call(source=self._name, points=points, moment=moment)
            except Exception as error:  # noqa: BLE001  # strangers' code
                self._complain(f"hook plugin {name}: aiperf_samples_arrived failed", error, whose="")

    def _written(self, write: Callable[[], None]) -> None:
        """A disk that takes no more ends the sampling, and nothing else."""
        try:
            write()
        except OSError as error:
            self._complain("stops: its samples can't be written", error)
            self.close()

    def _complain(self, what: str, error: Exception, *, whose: str | None = None) -> None:
        """Tell the run of the first trouble of each kind."""
        if what not in self._complained:
            self._complained.add(what)
            reason = "; ".join([error.message, *error.hints]) if isinstance(error, AiperfError) else why(error)
            self._reply(Trouble(f"{self._who if whose is None else whose} {what}: {reason}".strip()))


def _checked(point: object) -> Point:
    if not isinstance(point, Point):
        raise TypeError(f"it gives {type(point).__name__}, not Point")
    return point


def main(arguments: list[str]) -> None:
    (replies,) = arguments
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    process = Process(lambda reply: say(int(replies), reply))
    heard = Heard(process.take)
    while not heard.over:
        heard.wait(process.rest_s())
        process.tick()
    process.close()


if __name__ == "__main__":
    main(sys.argv[1:])
