"""The metric contracts.  A metric computes values of requests; the kernel folds, slices, prints and exports them.

:class:`Metric` computes the values of a whole batch (numpy), :class:`PerRequestMetric` the value of one request,
:class:`RunMetric` one number from folded metrics, :class:`RunDistribution` their values with something taken off,
:class:`Analysis` several results from stored values of all requests.  A :class:`MetricFamily` makes metrics according to its
options.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Protocol, Self, TypeAlias

from msgspec import Struct

if TYPE_CHECKING:
    from aiperf.sdk.columns import Bounds, Column, Floats, RecordBatch
    from aiperf.sdk.raw_values import RawValues
    from aiperf.sdk.summary import Interval, Result, SeriesSummary


class Unit(enum.Enum):
    """The kernel's base and display units; files show the value.  :meth:`per` converts.  Plugins add :class:`PluginUnit`."""

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

    def per(self, other: AnyUnit) -> float:
        """How many of *other* make this unit.

        Raises:
            ValueError: The units measure different quantities.
        """
        return _per(self, other)


class PluginUnit(Struct, frozen=True):
    """A unit of a plugin, shown and converted as the kernel's are: ``WATT_HOURS = PluginUnit("Wh", "energy", 3600.0)``.

    value: its name in files and tables.  dimension: the measured quantity; units of one dimension convert into each other, and
    those without one (frames, vectors) into none.  scale: size in the dimension's base unit, > 0.  The kernel has ``time`` in
    ns and ``size`` in bytes; the base of any other dimension is what its packages agree on.

    Where two packages mean different quantities or sizes by one *value*, the metrics of one are left out, and both are named.

    Raises:
        ValueError: No name, or a scale that isn't finite and above 0.
    """

    value: str
    dimension: str = ""
    scale: float = 1.0

    def __post_init__(self) -> None:
        if not self.value or not 0 < self.scale < math.inf:
            raise ValueError(f"the unit {self.value!r} needs a name and a scale above 0, not {self.scale}")

    def per(self, other: AnyUnit) -> float:
        """How many of *other* make this unit, see :meth:`Unit.per`."""
        return _per(self, other)


AnyUnit: TypeAlias = Unit | PluginUnit
_SIZES = {
    Unit.NANOSECONDS: ("time", 1.0), Unit.MICROSECONDS: ("time", 1e3), Unit.MILLISECONDS: ("time", 1e6),
    Unit.SECONDS: ("time", 1e9), Unit.BYTES: ("size", 1.0), Unit.KILOBYTES: ("size", 1024.0),
}  # fmt: skip


def unit_size(unit: AnyUnit) -> tuple[str, float] | None:
    """Dimension and size of a unit in the dimension's base unit; None where it has no dimension."""
    if isinstance(unit, Unit):
        return _SIZES.get(unit)
    return (unit.dimension, unit.scale) if unit.dimension else None


def _per(unit: AnyUnit, other: AnyUnit) -> float:
    if unit == other:
        return 1.0
    size, other_size = unit_size(unit), unit_size(other)
    if size is None or other_size is None or size[0] != other_size[0]:
        raise ValueError(f"{unit.value} can't be shown as {other.value}")
    return size[1] / other_size[1]


class Aggregation(enum.Enum):
    """How the values of many requests make the run's result."""

    DISTRIBUTION = "distribution"  # all statistics
    SUM = "sum"
    MIN = "min"
    MAX = "max"


class PluginFold:
    """A statistic of a plugin in place of the kernel's: ``fold = GeometricMean`` in a metric.  Made without arguments.

    The kernel makes one for each phase, and for each time slice, URL and group of it, in each reducer, adds values as requests
    finish,
    and merges those of all reducers; ``aiperf report`` does so again.  Neither the order of values nor the grouping and order
    of merges may change the result.  An exception switches the metric off, with one sentence.  ``adjusted``, ``since`` and
    ``arriving`` of a metric need the kernel's statistics.
    """

    def add(self, values: Floats) -> None:
        """Take values in the metric's unit, finite and at least one; elements of lists likewise.  The array is read-only."""
        raise NotImplementedError(f"{type(self).__name__} must define add(values)")

    def merge(self, other: Self) -> None:
        """Take everything that *other* has taken; *other* is not used again."""
        raise NotImplementedError(f"{type(self).__name__} must define merge(other)")

    def dump(self) -> bytes:
        """The state, for another process of the same version."""
        raise NotImplementedError(f"{type(self).__name__} must define dump()")

    @classmethod
    def load(cls, data: bytes) -> Self:
        """The fold whose ``dump`` this is."""
        raise NotImplementedError(f"{cls.__name__} must define load(data)")

    def counts(self) -> Mapping[str, int]:
        """Counts by name, which files show in place of statistics; {} where there are none."""
        return {}

    def interval(self) -> Interval | None:
        """The interval in which the true mean lies with a certain probability, in the metric's unit; None where there is none.
        One whose ends aren't finite, or whose level isn't between 0 and 1, is an error of the fold.
        """
        return None

    def result(self) -> float | Mapping[str, float] | None:
        """One number, shown as ``avg``, or statistics with names of ``aiperf.sdk.summary.STATISTICS`` and ``count``; all but
        ``count`` in the metric's unit.  None, and what isn't finite, is absent.
        """
        raise NotImplementedError(f"{type(self).__name__} must define result()")


class Over(enum.Enum):
    """The requests that a metric covers."""

    VALID = "valid"
    FAILED = "failed"
    ALL = "all"


class Needs(enum.Flag):
    """Properties of a run that a metric requires; the kernel omits the metric where one is missing."""

    NOTHING = 0
    STREAMING = enum.auto()
    TOKENS_OUT = enum.auto()  # the endpoint produces tokens
    TOKENS_IN = enum.auto()  # the endpoint's input is tokenized
    CLIENT_TOKENS = enum.auto()  # the client counts tokens (off with --use-server-token-count)
    PACED = enum.auto()  # arrivals have due times
    REPLAYED = enum.auto()  # arrivals are at the times of a recording
    EXPERIMENTAL = enum.auto()  # AIPERF_DEV_MODE or AIPERF_DEV_SHOW_EXPERIMENTAL_METRICS is set
    ONE_ANSWER = enum.auto()  # no request asks for several answers (``n``)
    GRADED = enum.auto()  # a grader compares answers
    LENGTHS = enum.auto()  # answers shall have the asked length (with a grader it is a limit)
    NUMBERS = enum.auto()  # the endpoint declares the numbers of answers that the metric has in ``needs``


class MetricObjective(Struct, frozen=True):
    """A service-level objective of requests: title ``TTFT ≤ 200 ms``; tag of the metric that it bounds, "" for all objectives
    together; bound in that metric's display unit, None for all together."""

    title: str
    tag: str = ""
    bound: float | None = None


class MetricDeclaration:
    """The declaration of a metric, on its class or on the instance.  A metric whose manifest row declares options is
    constructed with them as its only argument.

    tag: name in files.  title, short: headings.  unit: unit of the values; display: unit in files and tables, None is *unit*.
    needs: tags of the metrics, and names of the endpoint's ``numbers``, that it reads; of one name, the number.  A RunMetric
    also needs tags of the results that an Analysis ``gives``.
    requires: properties that the run must have.
    larger_is_better: direction of an SLO.  group, order: place on the console; order None is not shown there.
    per_record: the per-request file has each request's value.
    hidden: only other metrics read it; no file shows it.
    headline: place among the numbers of a line of progress, which has the first two; None leaves it out.
    objective: the metric says whether each request meets it, by 1 and 0; None where it is about no objective.
    watched: computed only while somebody looks at live numbers; *hidden*, and no other metric needs it.
    rises, falls: columns, and metrics in *needs*, that make the value greater, or smaller, the greater they are.  Where one of
    them is an estimate, because reads were merged, the value then has bounds.
    by: texts of a batch (``task``, ``model``, ``depth``, or one of the endpoint's ``texts``) for whose values the metric is
    given, too, in ``Summary.groups``.  A RunMetric is computed of the requests with that value; results of an Analysis are
    absent there.
    group_tags: by text in *by*, a tag with ``{key}`` under which the results of a phase have each group's result as well:
    ``{"task": "accuracy.task.{key}"}``.
    """

    tag: str
    title: str
    short: str = ""
    unit: AnyUnit
    display: AnyUnit | None = None
    needs: tuple[str, ...] = ()
    requires: Needs = Needs.NOTHING
    larger_is_better: bool = False
    group: str = ""
    order: int | None = None
    per_record: bool = True
    hidden: bool = False
    headline: int | None = None
    objective: MetricObjective | None = None
    watched: bool = False
    rises: tuple[str, ...] = ()
    falls: tuple[str, ...] = ()
    by: tuple[str, ...] = ()
    group_tags: Mapping[str, str] = MappingProxyType({})

    @property
    def shown(self) -> AnyUnit:
        return self.display or self.unit

    @property
    def scale(self) -> float:
        """Factor from the unit to the display unit."""
        return self.unit.per(self.shown)


class Metric(MetricDeclaration):
    """A value, or a list of values, per request, computed for a whole batch.

    ``column`` must give the same values for a batch, its halves and its permutation; NaN is absent.

    fold: what becomes of the values; a subclass of :class:`PluginFold` is the plugin's own statistic.
    adjusted: results also have ``adj_<tag>``, in which failed requests count as infinitely slow.
    since: column at which a duration begins; a request cut off in flight lasted at least from there to its end.
    early: the value is complete before the answer ends (the time to first token), so a later cut-off doesn't change it.
    arriving: the amount arrives with the content; time slices count it where the content arrived.
    detail_field: name of a further field in a request's line of the per-request file, which ``details`` gives.
    between: columns that are its bounds, in batches that have them, instead of what it *rises* and *falls* with.
    """

    fold: Aggregation | type[PluginFold] = Aggregation.DISTRIBUTION
    over: Over = Over.VALID
    adjusted: bool = False
    since: str | None = None
    early: bool = False
    arriving: bool = False
    detail_field: str | None = None
    between: tuple[str, str] | None = None

    def details(self, batch: RecordBatch) -> Sequence[bytes | None]:
        """The field *detail_field* of each request's line, as JSON; None leaves it out."""
        raise NotImplementedError(f"{type(self).__name__} must define details(batch)")

    def column(self, batch: RecordBatch) -> Column:
        """One value per request of *batch*, or a Ragged with one list per request."""
        raise NotImplementedError(f"{type(self).__name__} must define column(batch)")

    def bounds(self, batch: RecordBatch) -> Bounds | None:
        """Bounds of the column; None where all values are known.

        Asked for a batch with merged reads (it has BOUND_COLUMNS) or with unreadable events before the first content.  Those of
        *between*, or else of the column at the ends of what it *rises* and *falls* with.  An end at which a request has no
        value says nothing: the bound on that side is the value.
        """
        from aiperf.sdk.columns import Bounds

        if self.between is not None:
            low, high = self.between
            return None if low not in batch.columns else Bounds.around(self.column(batch), batch[low], batch[high])
        ends = {name: found for name in (*self.rises, *self.falls) if (found := batch.ends(name)) is not None}
        if not ends:
            return None
        least, most = (
            batch.replaced({name: found[side ^ (name in self.falls)] for name, found in ends.items()}) for side in (0, 1)
        )
        return Bounds.around(self.column(batch), self.column(least), self.column(most))


class RequestView(Protocol):
    """One request.  ``request[name]`` is a column's value, None where absent, a list for a list column."""

    def __getitem__(self, name: str) -> float | list[float] | None: ...

    def text(self, name: str) -> str | None: ...


class PerRequestMetric(Metric):
    """A plain function of one request.  The kernel's loop over a batch costs a few µs per request."""

    def value(self, request: RequestView) -> float | list[float] | None:
        raise NotImplementedError(f"{type(self).__name__} must define value(request)")

    def column(self, batch: RecordBatch) -> Column:
        import numpy as np

        from aiperf.sdk.columns import ragged

        values = [self.value(_Row(batch, i)) for i in range(len(batch))]
        if any(isinstance(value, list) for value in values):
            rows = [value if isinstance(value, list) else [] for value in values]
            return ragged(rows, [[end] * len(row) for end, row in zip(batch["ended_ns"].tolist(), rows, strict=True)])
        return np.asarray([np.nan if value is None else value for value in values], dtype=np.float64)


class _Row:
    def __init__(self, batch: RecordBatch, index: int) -> None:
        self.batch, self.index = batch, index

    def __getitem__(self, name: str) -> float | list[float] | None:
        from aiperf.sdk.columns import Ragged

        column = self.batch.column(name)
        if isinstance(column, Ragged):
            row: list[float] = column.row(self.index).tolist()
            return row
        value = float(column[self.index])
        return None if value != value else value

    def text(self, name: str) -> str | None:
        return self.batch.texts[name][self.index]


class Totals(Protocol):
    """The run's folded metrics.  None is absent."""

    duration_s: float | None
    """First request start to last response end, over all sent requests, in s."""
    window_s: float | None
    """From the phase's start to the end of its last request, in s."""
    valid: int
    failed: int
    concurrency: int | None
    """The phase's limit of concurrent sessions; None without one, and for time slices and URLs."""

    def sum(self, tag: str) -> float | None: ...

    def count(self, tag: str) -> int: ...

    def value(self, tag: str) -> float | None:
        """The value of an aggregate or derived metric, the mean of a distribution, the ``avg`` of a PluginFold; of a result
        of an Analysis its ``avg``, in the result's unit.
        """

    def statistic(self, tag: str, name: str) -> float | None:
        """A distribution's statistic (for example ``p99``) in its display unit, as in the results; or that of an Analysis.

        ``adj_<tag>`` exists where requests failed; its infinite statistics are None, although it has a ``count``.
        """

    def values(self, tag: str) -> Floats | None:
        """The values of a distribution in ascending order, in its unit, for a :class:`RunDistribution` with *tag* in *reads*;
        the array is the caller's.  None where there are none, where they are elements of lists, and of live numbers.
        """

    def series(self, source: str, name: str, **labels: str) -> Sequence[SeriesSummary]:
        """The series *name* of the telemetry source *source* whose labels have these values, summarised over this phase or time
        slice; empty where there is none, and for URLs.  A metric that then has no number is absent, with a sentence where the
        source has other series.
        """


class RunMetric(MetricDeclaration):
    """One number per run, phase, time slice, URL and group, derived from folded metrics, results of analyses and telemetry."""

    per_record = False

    def number(self, run: Totals) -> float | None:
        raise NotImplementedError(f"{type(self).__name__} must define number(run)")


class RunDistribution(RunMetric):
    """Values per run, phase, time slice and URL, derived from those of other metrics and from folded ones.

    They have all statistics, and bounds where values of *reads* have bounds: it must not fall where these rise.
    reads: tags in *needs*, of metrics with a value per request, whose values are read.
    """

    reads: tuple[str, ...] = ()

    def values(self, run: Totals) -> Floats | None:
        """Values in the metric's unit, in any order; None where they are unknown."""
        raise NotImplementedError(f"{type(self).__name__} must define values(run)")

    def number(self, run: Totals) -> float | None:
        """The mean."""
        values = self.values(run)
        return float(values.mean()) if values is not None and len(values) else None


class Analysis(MetricDeclaration):
    """Results that need the values of all requests together, such as curves over time.

    keeps: columns of the kernel, or names in *needs*, that the kernel stores for each sent request, failed ones included.  With
    one of ``TREE_COLUMNS`` the analysis is made of runs with trees alone.
    lists: columns with a list per request, stored within the kernel's budget.
    gives: tags of its results that run metrics may need.
    *unit* and *title* are unused: each result has its own.
    """

    unit: AnyUnit = Unit.COUNT
    hidden = True
    keeps: tuple[str, ...] = ()
    lists: tuple[str, ...] = ()
    gives: tuple[str, ...] = ()

    def results(self, kept: RawValues, windows: Sequence[tuple[float, float]]) -> Iterable[Iterable[Result]]:
        """The results of each window.  *windows*: (begin, end) in ns since the run's start."""
        raise NotImplementedError(f"{type(self).__name__} must define results(kept, windows)")


class MetricFamily:
    """Metrics that depend on options.  Constructed like a metric; the kernel replaces it with the metrics that it gives."""

    def metrics(
        self, plugin_options: Mapping[str, MetricDeclaration], unfit: Mapping[str, Needs]
    ) -> Iterable[MetricDeclaration]:
        """The metrics for this run.

        *plugin_options*: the run's other metrics by tag.  *unfit*: metrics that don't apply to the run, and the missing
        properties.

        Raises:
            ConfigError: The options are impossible; the run is refused before it starts.
        """
        raise NotImplementedError(f"{type(self).__name__} must define metrics(others, unfit)")


__all__ = [
    "Aggregation", "Analysis", "AnyUnit", "Metric", "MetricDeclaration", "MetricFamily", "MetricObjective", "Needs",
    "Over", "PerRequestMetric", "PluginFold", "PluginUnit", "RequestView", "RunDistribution", "RunMetric", "Totals", "Unit",
    "unit_size",
]  # fmt: skip
