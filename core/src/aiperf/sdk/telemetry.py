"""The contract of telemetry sources, which sample GPUs, the server or the machine beside the load.

Each source has its own process.  The kernel takes a sample at both edges of each phase and at the source's interval in
between, one at a time.  Each sample is on disk before the next one; the summary has them by phase.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Iterable
from typing import ClassVar, Generic

from msgspec import Struct

from aiperf.errors import AiperfError
from aiperf.sdk.options import OptionsT


class SeriesKind(enum.Enum):
    """How a series' values are folded over a phase."""

    GAUGE = "gauge"  # a level: mean over time, minimum, maximum
    COUNTER = "counter"  # grows, or restarts at 0: its increase
    HISTOGRAM = "histogram"  # counters of observations by size: their increases


class Histogram(Struct, frozen=True):
    """Observations so far.  *bounds*: ascending upper bounds, the last one infinite; *counts*: by bound, the number of
    observations up to it (cumulative); *sum*: of all observed values."""

    bounds: tuple[float, ...]
    counts: tuple[float, ...]
    sum: float


class Point(Struct, frozen=True):
    """A series' value at the moment of the sample.  Name, kind, unit and labels (GPU, server, model) identify a series.

    A value that isn't finite is left out.
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
    """The part of the run that a source sees.  *urls*: base URLs of the servers under test, without credentials."""

    urls: tuple[str, ...] = ()
    models: tuple[str, ...] = ()


class Absent(AiperfError):  # noqa: N818  # an ordinary outcome
    """This machine has nothing to sample, and the user didn't name the source: a line in the log, no warning."""


class TelemetrySource(Generic[OptionsT]):
    """A telemetry source.  options: the source's own (None where it declares none)."""

    interval_s: ClassVar[float] = 0.333
    """Time between two samples in s; a source may set it on the instance from its options."""

    def __init__(self, options: OptionsT, context: TelemetryContext) -> None:
        self.options, self.context = options, context

    def start(self) -> None:
        """Connect or open; called once before the first sample.

        Raises:
            Absent: This machine has nothing to sample, and the user didn't request it.
            AiperfError: The requested source is unavailable; it is reported, and the run continues without it.
        """

    def sample(self) -> Iterable[Point]:
        """The values of this moment.  An exception is reported, and the next sample is taken as usual.

        A call should not take longer than the interval: missed samples are left out and counted.
        """
        raise NotImplementedError(f"{type(self).__name__} must define sample()")

    def stop(self) -> None:
        """Release everything; called once at the end, where ``start`` succeeded."""


__all__ = ["Absent", "Histogram", "Point", "SeriesKind", "TelemetryContext", "TelemetrySource"]
