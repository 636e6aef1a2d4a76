"""What a metric is.  A metric says what a request is worth; the kernel folds, slices, prints and exports it.

Three doors: :class:`Metric` for a whole batch at once (numpy), :class:`PerRequestMetric` for ten lines that look at one
request, :class:`RunMetric` for a number derived from the folded ones.  Two more for what doesn't fit through them:
:class:`Analysis`, several results at once from values kept request by request, and :class:`MetricFamily`, metrics of which
there are as many as the options say.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from aiperf.columns import Column, RecordBatch
    from aiperf.kept import Kept
    from aiperf.summary import Result


class Unit(enum.Enum):
    """Base and display units; the value is what files show.  :meth:`per` converts."""

    NANOSECONDS = "ns"
    MICROSECONDS = "us"
    MILLISECONDS = "ms"
    SECONDS = "sec"
    BYTES = "B"
    KILOBYTES = "KB"
    TOKENS = "tokens"
    REQUESTS = "requests"
    COUNT = "count"
    RATIO = "ratio"
    PERCENT = "%"
    TOKENS_PER_SECOND = "tokens/sec"
    TOKENS_PER_SECOND_PER_USER = "tokens/sec/user"
    REQUESTS_PER_SECOND = "requests/sec"
    IMAGES = "images"
    IMAGES_PER_SECOND = "images/sec"
    MILLISECONDS_PER_IMAGE = "ms/image"

    def per(self, other: Unit) -> float:
        """How many *other* one of this unit is; both must measure the same thing."""
        mine, theirs = _SIZES.get(self), _SIZES.get(other)
        if self is other:
            return 1.0
        if mine is None or theirs is None or mine[0] != theirs[0]:
            raise ValueError(f"{self.value} can't be shown as {other.value}")
        return mine[1] / theirs[1]


_SIZES = {
    Unit.NANOSECONDS: ("time", 1.0),
    Unit.MICROSECONDS: ("time", 1e3),
    Unit.MILLISECONDS: ("time", 1e6),
    Unit.SECONDS: ("time", 1e9),
    Unit.BYTES: ("size", 1.0),
    Unit.KILOBYTES: ("size", 1024.0),
}


class Fold(enum.Enum):
    """How the values of many requests become the run's result."""

    DISTRIBUTION = "distribution"  # the whole set of statistics
    SUM = "sum"
    MIN = "min"
    MAX = "max"


class Over(enum.Enum):
    """Which requests a metric looks at."""

    VALID = "valid"
    FAILED = "failed"
    ALL = "all"


class Needs(enum.Flag):
    """What the run must have for a metric to apply; the kernel leaves a metric out otherwise."""

    NOTHING = 0
    STREAMING = enum.auto()
    TOKENS_OUT = enum.auto()  # the endpoint produces tokens
    TOKENS_IN = enum.auto()  # the endpoint's input is tokenized
    CLIENT_TOKENS = enum.auto()  # the client counts tokens (off with --use-server-token-count)
    PACED = enum.auto()  # arrivals have due times
    REPLAYED = enum.auto()  # arrivals are at the times of a recording
    EXPERIMENTAL = enum.auto()  # AIPERF_DEV_MODE or AIPERF_DEV_SHOW_EXPERIMENTAL_METRICS is set


class Declared:
    """What every metric declares, on its class or on itself.  One whose manifest row declares options is made with them as
    its only argument.

    tag: name in files.  title, short: headings.  unit: of the values; display: shown instead (None: the same).
    needs: tags of other metrics it reads.  requires: what the run must have.
    larger_is_better: how an SLO compares.  group and order: its place on the console; order None: not shown there.
    per_record: whether each request's value goes to the per-request file.
    hidden: for other metrics only; no file shows it.
    """

    tag: str
    title: str
    short: str = ""
    unit: Unit
    display: Unit | None = None
    needs: tuple[str, ...] = ()
    requires: Needs = Needs.NOTHING
    larger_is_better: bool = False
    group: str = ""
    order: int | None = None
    per_record: bool = True
    hidden: bool = False

    @property
    def shown(self) -> Unit:
        return self.display or self.unit

    @property
    def scale(self) -> float:
        """Values times this are in the display unit."""
        return self.unit.per(self.shown)


class Metric(Declared):
    """A value, or a list of values, per request, computed for a whole batch at once.

    ``column`` must give the same for a batch, its halves and its permutation; NaN is absent.

    adjusted: also as ``adj_<tag>``, in which requests that failed count as infinitely slow.
    since: of a duration, the column from which it counts: a request cut off in flight lasted at least from there to its end.
    early: such a value is known as soon as it is there, though the answer is cut off later (the time to first token).
    arriving: an amount that comes with the content: in time slices its sum counts where the content arrived.
    """

    fold: Fold = Fold.DISTRIBUTION
    over: Over = Over.VALID
    adjusted: bool = False
    since: str | None = None
    early: bool = False
    arriving: bool = False

    def column(self, batch: RecordBatch) -> Column:
        """One value per request of *batch*, or a Ragged with as many lists."""
        raise NotImplementedError(f"{type(self).__name__} must define column(batch)")


class RequestView(Protocol):
    """One request: ``request[name]`` is its value, None if absent, a list for a list column."""

    def __getitem__(self, name: str) -> float | list[float] | None: ...

    def text(self, name: str) -> str | None: ...


class PerRequestMetric(Metric):
    """The ten-line door: a plain function of one request.  The kernel loops, at a few µs a request."""

    def value(self, request: RequestView) -> float | list[float] | None:
        raise NotImplementedError(f"{type(self).__name__} must define value(request)")

    def column(self, batch: RecordBatch) -> Column:
        import numpy as np

        from aiperf.columns import Ragged, ragged

        values = [self.value(_Row(batch, i)) for i in range(len(batch))]
        if any(isinstance(value, list) for value in values):
            rows = [value if isinstance(value, list) else [] for value in values]
            ends = batch["ended_ns"]
            return ragged(rows, [[float(ends[i])] * len(row) for i, row in enumerate(rows)])
        numbers = [np.nan if value is None or isinstance(value, list) else value for value in values]
        column: Column | Ragged = np.asarray(numbers, dtype=np.float64)
        return column


class _Row:
    def __init__(self, batch: RecordBatch, index: int) -> None:
        self.batch, self.index = batch, index

    def __getitem__(self, name: str) -> float | list[float] | None:
        from aiperf.columns import Ragged

        column = self.batch.column(name)
        if isinstance(column, Ragged):
            row: list[float] = column.row(self.index).tolist()
            return row
        value = float(column[self.index])
        return None if value != value else value

    def text(self, name: str) -> str | None:
        return self.batch.texts[name][self.index]


class Totals(Protocol):
    """The run's folded metrics, as a derived metric sees them.  None is absent."""

    duration_s: float | None
    """First request start to last response end, over all sent requests, in s."""
    window_s: float | None
    """The phase: start to the moment everything had returned, in s."""
    valid: int
    failed: int

    def sum(self, tag: str) -> float | None: ...

    def count(self, tag: str) -> int: ...

    def value(self, tag: str) -> float | None:
        """An aggregate's or a derived metric's value, a distribution's mean."""
        ...

    def statistic(self, tag: str, name: str) -> float | None:
        """One of a distribution's statistics (``p99``) in its display unit, as the results show it.

        Also of ``adj_<tag>``, where requests failed: what is infinite then is None, though there is a ``count``.
        """
        ...


class RunMetric(Declared):
    """One number for the run, derived from folded metrics."""

    per_record = False

    def number(self, run: Totals) -> float | None:
        raise NotImplementedError(f"{type(self).__name__} must define number(run)")


class Analysis(Declared):
    """Results that take all requests at once, side by side, and no sums of each: curves over time and the like.

    *keeps*: what is kept of every request that was sent, failed ones too: columns of the kernel, or tags of *needs*.  *lists*:
    likewise of columns with a list per request, as far as the kernel's budget goes.
    *unit* and *title* are nobody's: each result has its own.
    """

    unit = Unit.COUNT
    hidden = True
    keeps: tuple[str, ...] = ()
    lists: tuple[str, ...] = ()

    def results(self, kept: Kept, windows: Sequence[tuple[float, float]]) -> Iterable[Iterable[Result]]:
        """The results of each part of the run: from one instant to another, in ns since its start."""
        raise NotImplementedError(f"{type(self).__name__} must define results(kept, windows)")


class MetricFamily:
    """Metrics that options decide on.  Made like a metric; the kernel then takes those it gives in its place."""

    def metrics(self, others: Mapping[str, Declared], unfit: Mapping[str, Needs]) -> Iterable[Declared]:
        """The metrics for this run.

        *others*: by tag, the metrics of the run that stand for themselves.  *unfit*: those that don't apply to it, and what
        they lack.

        Raises:
            ConfigError: The options ask for what can't be; the run is refused before it starts.
        """
        raise NotImplementedError(f"{type(self).__name__} must define metrics(others, unfit)")
