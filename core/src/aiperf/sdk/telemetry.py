"""The contract of telemetry sources, which sample GPUs, the server or the machine beside the load.

Each source has its own process, and each of its targets (:class:`TelemetryTarget`) a thread there.  A companion asks for a
sample at both edges of each phase, and at the target's interval in between.  Each sample is on disk before the next one; the
summary has them by phase.  A target that hangs misses its own samples alone.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Generic

from msgspec import Struct

from aiperf.errors import AiperfError
from aiperf.sdk.fetch import MOST_BYTES, Fetched, FetchError, fetch, is_below
from aiperf.sdk.headers import merged
from aiperf.sdk.model import http_urls
from aiperf.sdk.options import OptionsT
from aiperf.sdk.plan import TlsPlan

MOST_POINTS = 200_000
"""The most points of a sample; one with more fails."""


class SeriesKind(enum.Enum):
    """How a series' values are folded over a phase."""

    GAUGE = "gauge"  # a level: mean over time, minimum, maximum
    COUNTER = "counter"  # grows, or restarts at 0: its increase
    HISTOGRAM = "histogram"  # counters of observations by size: their increases, and estimated percentiles
    INFO = "info"  # labels that say what there is (versions, settings); the value is 1
    SUMMARY = "summary"  # quantiles that the server computed: a gauge each, and counters of the observations


class Histogram(Struct, frozen=True):
    """Observations so far.  *bounds*: ascending upper bounds, the last one infinite; *counts*: by bound, the number of
    observations up to it (cumulative); *sum*: of all observed values."""

    bounds: tuple[float, ...]
    counts: tuple[float, ...]
    sum: float


class Digest(Struct, frozen=True):
    """A summary of observations so far, as Prometheus has it.

    quantiles: values by quantile, 0 to 1; one that isn't finite is left out.  count, sum: of all observations; None is unknown.
    """

    quantiles: dict[float, float]
    count: float | None = None
    sum: float | None = None


class Point(Struct, frozen=True):
    """A series' value.  Name, kind, unit and labels (GPU, server, model) identify a series.

    at_ns: wall clock of the value, ns since 1970, where the source knows it; None is the moment of the sample.  A sample may
    have several points of a series with times of their own; a value that isn't later than the one before is no news.
    A value that isn't finite is left out.  A point that is the same object as in the sample before costs least.
    flows: of a counter or histogram, that it grows by itself, without requests (energy, the processor's time): its increase is
    taken between the exact edges of a phase, on a straight line between samples.
    """

    name: str
    value: float | Histogram | Digest
    kind: SeriesKind = SeriesKind.GAUGE
    unit: str = ""
    labels: dict[str, str] = {}
    help: str = ""
    at_ns: int | None = None
    flows: bool = False

    @property
    def finite(self) -> bool:
        value = self.value
        if isinstance(value, Histogram):
            return math.isfinite(value.sum) and all(map(math.isfinite, value.counts))
        return isinstance(value, Digest) or math.isfinite(value)


class SeriesDeclaration(Struct, frozen=True):
    """What all series of a name have in common.  labels: names of the labels that tell them apart.  flows: as a point's."""

    name: str
    unit: str = ""
    kind: SeriesKind = SeriesKind.GAUGE
    labels: tuple[str, ...] = ()
    help: str = ""
    flows: bool = False


class SeriesTable:
    """The series of a source, declared once."""

    def __init__(self, *series: SeriesDeclaration) -> None:
        self.series = {each.name: each for each in series}

    def point(self, name: str, value: float | Histogram | Digest, *labels: str, at_ns: int | None = None) -> Point:
        """A point of the series *name*; *labels*: the values of its labels in their order.

        Raises:
            ValueError: The table has no such series, or the series has other labels.
        """
        series = self.series.get(name)
        if series is None or len(labels) != len(series.labels):
            has = "is not in the table" if series is None else f"has {len(series.labels)} labels, not {len(labels)}"
            raise ValueError(f"the series {name} {has}")
        by_name = dict(zip(series.labels, labels, strict=True))
        return Point(name, value, series.kind, series.unit, by_name, series.help, at_ns, series.flows)


class Reading(Struct, frozen=True):
    """A sample with its times.

    sent_ns, first_byte_ns: wall clock, ns since 1970, when the target was asked, and when its answer began: the moment of the
    values.  None: when :meth:`TelemetryTarget.sample` was called, and the middle of the call.
    """

    points: Iterable[Point]
    sent_ns: int | None = None
    first_byte_ns: int | None = None


class TelemetryContext(Struct, frozen=True):
    """The part of the run that a source sees.

    urls: base URLs of the servers under test, without credentials.  control_urls: those of ``--server-control-url``.
    tls: as typed for the run.
    headers: of the run's requests, credentials among them; :meth:`fetch` sends them to the servers under test alone.
    """

    urls: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    tls: TlsPlan = TlsPlan()
    headers: dict[str, str] = {}
    control_urls: tuple[str, ...] = ()

    @property
    def http_urls(self) -> tuple[str, ...]:
        """The base URLs of HTTP servers for what isn't load."""
        return self.control_urls or http_urls(self.urls)

    def fetch(
        self, url: str, timeout_s: float = 5.0, *, headers: Mapping[str, str] | None = None, most_bytes: int = MOST_BYTES
    ) -> Fetched:
        """GET the page at *url* with the run's certificates, and *headers* of the source's own.

        Scheme, host and port of one of *urls* and *control_urls*, or its socket, get the run's headers, too; other servers and
        redirects never do.

        Raises:
            FetchError: There is no such page, it is larger than *most_bytes*, or the server can't be reached in *timeout_s*.
        """
        bases = (*self.urls, *self.control_urls)
        try:
            tested = is_below(url, bases)
        except ValueError as error:
            raise FetchError(url, str(error)) from error
        sent = merged(self.headers if tested else {}, headers or {})
        return fetch(url, timeout_s, headers=sent, tls=self.tls, most_bytes=most_bytes, bases=bases)

    def __repr__(self) -> str:
        return f"TelemetryContext(urls={self.urls!r}, models={self.models!r})"  # headers are secrets


class Absent(AiperfError):  # noqa: N818  # an ordinary outcome
    """There is nothing to sample, and the user didn't ask for it: a line in the log (none where it is empty)."""


class TelemetryTarget:
    """One thing that a source samples: a server, a device, this machine.  A thread of its own calls it.

    name: a URL without credentials, or a device; "" where the source has one target.  Two targets have different names.
    interval_s: time between two samples in s.
    """

    name: str = ""
    interval_s: float = 0.333

    def sample(self) -> Iterable[Point] | Reading:
        """The values of this moment.  An exception is reported once, and the next sample is taken as usual.

        A call should not take longer than the interval: missed samples are left out and counted.  More than
        :data:`MOST_POINTS` points fail the sample, too.

        Raises:
            Absent: There is no such target: it is asked no more.
        """
        raise NotImplementedError(f"{type(self).__name__} must define sample()")


class TelemetrySource(TelemetryTarget, Generic[OptionsT]):
    """A telemetry source, and its only target unless :meth:`targets` gives others.

    options: the source's own (None where it declares none).  The user named a source where they gave one of its options: the
    load waits up to 0.5 s for its first samples, and for those of other sources not at all.  With the capability
    ``needs_option: FIELD`` in the manifest there is no process where that option, or that property of its options, is none, 0
    or false; a property decides in runs without any of its options where the manifest says ``by_default: true``, too.
    """

    def __init__(self, options: OptionsT, context: TelemetryContext) -> None:
        self.options, self.context = options, context

    def start(self) -> None:
        """Connect or open; called once before anything else.  It may take long: nobody waits, and samples begin behind it.

        Raises:
            Absent: This machine has nothing to sample, and the user didn't request it.
            AiperfError: The requested source is unavailable; it is reported, and the run continues without it.
        """

    def targets(self) -> Sequence[TelemetryTarget]:
        """What is sampled; called once, behind :meth:`start`."""
        return (self,)

    def stop(self) -> None:
        """Release everything; called once at the end, where ``start`` succeeded.

        A target that hangs may still be in ``sample``.  The process ends 0.2 s later at most.
        """


__all__ = [
    "MOST_POINTS", "Absent", "Digest", "FetchError", "Fetched", "Histogram", "Point", "Reading",
    "SeriesDeclaration", "SeriesKind", "SeriesTable",
    "TelemetryContext", "TelemetrySource", "TelemetryTarget",
]  # fmt: skip
