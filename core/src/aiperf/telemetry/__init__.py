"""The contract of telemetry sources: what is sampled beside the load, of GPUs, of the server, of the machine.

Each source has a process to itself.  The kernel asks it for a sample at both edges of each phase and at its interval in
between, never for two at a time; what it gives is on disk before the next one is asked for, and comes to the summary by phase.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Iterable
from typing import Any, ClassVar

from msgspec import Struct

from aiperf.errors import AiperfError


class SeriesKind(enum.Enum):
    """How a series' values are folded over a phase."""

    GAUGE = "gauge"  # a level: mean over time, least, most
    COUNTER = "counter"  # only grows, or begins again at 0: its increase
    HISTOGRAM = "histogram"  # counters of observations by size: increases of all of them


class Histogram(Struct, frozen=True):
    """Observations so far.  *bounds*: upper bounds, ascending, the last infinite; *counts*: how many were at most that, each
    including those before it; *sum*: of all observed values."""

    bounds: tuple[float, ...]
    counts: tuple[float, ...]
    sum: float


class Point(Struct, frozen=True):
    """A series' value at the moment of the sample.  A series is a name with its labels (which GPU, which server, which model).

    A value that isn't finite is none, and is left out.
    """

    name: str
    value: float | Histogram
    kind: SeriesKind = SeriesKind.GAUGE
    unit: str = ""
    labels: dict[str, str] = {}
    help: str = ""

    @property
    def finite(self) -> bool:
        value = self.value
        numbers = (value.sum, *value.counts) if isinstance(value, Histogram) else (value,)
        return all(map(math.isfinite, numbers))


class TelemetryContext(Struct, frozen=True):
    """What a source may know of the run.  *urls*: base URLs of the servers under test, without credentials."""

    urls: tuple[str, ...] = ()
    models: tuple[str, ...] = ()


class Absent(AiperfError):  # noqa: N818  # no error: there is nothing
    """There is nothing to sample here, and nobody has asked for it by name: worth a line of the log, and no warning."""


class TelemetrySource:
    """Samples something.  *options* has the source's own options as attributes (None where it declares none)."""

    interval_s: ClassVar[float] = 0.333
    """Time between two samples; a source whose options say otherwise sets it on itself."""

    def __init__(self, options: Any, context: TelemetryContext) -> None:
        self.options = options
        self.context = context

    def start(self) -> None:
        """Once, before the first sample: connect, open, look what there is.

        Raises:
            Absent: There is nothing, and that is no trouble.
            AiperfError: It was asked for and can't be had; reported, and the run goes on without.
        """

    def sample(self) -> Iterable[Point]:
        """The values of this moment.  What it raises is reported, and it is asked again the next time.

        It should not take longer than its interval: the samples it is too slow for are left out, and counted.
        """
        raise NotImplementedError(f"{type(self).__name__} must define sample()")

    def stop(self) -> None:
        """Once, at the end, if it was started."""


__all__ = ["Absent", "Histogram", "Point", "SeriesKind", "TelemetryContext", "TelemetrySource"]
