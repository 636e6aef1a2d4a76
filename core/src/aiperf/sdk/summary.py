"""The summary of a run: results of metrics, counts, errors, and how far the numbers can be trusted.

Plain structures without numpy: any exporter can read them, and msgspec stores and sends them.
"""

# Larger than 450 lines: all that exporters read of a run stands in one module.

from __future__ import annotations

import math
from typing import Any

from msgspec import Struct, field

from aiperf.sdk.engine import SiteClock
from aiperf.sdk.model import ErrorDetails
from aiperf.sdk.scenario import ScenarioVerdict
from aiperf.sdk.statistics import percentile
from aiperf.sdk.table import SummaryTable
from aiperf.sdk.verdict import Finding

STATISTICS = ("avg", "min", "max", "sum", "p1", "p5", "p10", "p25", "p50", "p75", "p90", "p95", "p99", "std")
"""Statistics of a distribution, in the order of the files; ``count`` stands beside them."""
USUAL_ENDS = frozenset((
    "stop", "end_turn", "eos", "eos_token", "stop_sequence", "completed", "length", "max_tokens", "max_output_tokens",
    "tool_calls", "tool_use", "function_call", "pause_turn",
))  # fmt: skip
"""Reasons of an answer's end, in lower case, that servers give where nothing is amiss."""
_ENTRY = ("avg", "p1", "p5", "p10", "p25", "p50", "p75", "p90", "p95", "p99", "min", "max", "std", "count", "censored", "sum")
_PERCENTILES = tuple(name for name in _ENTRY if percentile(name) is not None)


class Interval(Struct, frozen=True):
    """An interval from *low* to *high* that holds the true value with the probability *level*, above 0 and below 1."""

    low: float
    high: float
    level: float


class Result(Struct, frozen=True):
    """The result of a metric, in its display unit.

    *stats* has the keys of STATISTICS and ``count`` for a distribution, ``avg`` alone for anything else; and percentiles that
    were asked for, such as ``p99.9``.
    counts: counts by name in place of statistics, of a :class:`aiperf.sdk.metric.PluginFold`.
    interval: the confidence interval of the mean, where such a fold gives one.  lower, upper: bounds of the same, where merged
    reads hide when some content came; of lists, each of *stats* but mean, sum and deviation is then their midpoint.
    """

    tag: str
    title: str
    unit: str
    stats: dict[str, float]
    short: str = ""
    group: str = ""
    order: int | None = None
    lower: dict[str, float] = {}
    upper: dict[str, float] = {}
    counts: dict[str, int] = {}
    interval: Interval | None = None

    @property
    def distribution(self) -> bool:
        return self.stats.keys() != {"avg"}

    def entry(self) -> dict[str, Any]:
        """Unit and finite statistics, unrounded, in the order of the reference's JSON files; empty where nothing is finite;
        or the counts."""
        if self.counts:
            return dict(self.counts)
        order = self._order()
        values = {name: self.stats[name] for name in order if name in self.stats and math.isfinite(self.stats[name])}
        counts = {name: int(value) for name, value in values.items() if name in ("count", "censored")}
        sides = {"lower": self.lower, "upper": self.upper} if self.lower else {}
        bounds = {side: {name: known[name] for name in order if name in known} for side, known in sides.items()}
        return {"unit": self.unit, **values, **counts, **bounds, **self._confidence()} if values else {}

    def _confidence(self) -> dict[str, float]:
        """The interval as files have it; empty where there is none."""
        known = self.interval
        return {} if known is None else {"ci_low": known.low, "ci_high": known.high, "ci_level": known.level}

    def _order(self) -> tuple[str, ...]:
        """The names of statistics in the order of the reference's JSON files, further percentiles among its own."""
        further = [name for name in self.stats if name not in _ENTRY and percentile(name) is not None]
        if not further:
            return _ENTRY
        percentiles = sorted((*_PERCENTILES, *further), key=lambda name: percentile(name) or 0.0)
        return ("avg", *percentiles, *(name for name in _ENTRY[1:] if name not in _PERCENTILES))


class ErrorCount(Struct, frozen=True):
    error: ErrorDetails
    count: int


class UngradedAnswer(Struct, frozen=True, order=True):
    """A good answer of a profiling phase that was expected and not graded.

    conversation_id, turn: what was asked; *turn* from 0.  repeat: -1 where each problem is asked once.
    """

    conversation_id: str
    turn: int
    repeat: int
    reason: str


class Quantiles(Struct, frozen=True):
    """p50, p99 and maximum, in ms."""

    p50: float
    p99: float
    max: float


class Arrivals(Struct, frozen=True):
    """Outcomes of the planned arrivals of the profiling phases.

    planned: all ends together, without truncated and released.  cut: the answer began and broke off; overflowed: longer than
    the context; errors has neither.
    damaged: the journal may have lost a part of what was observed.  unknown: they may have been sent.
    held: arrivals that waited, after their due times, for a slot or for the answer before.
    truncated, released: turns of trees that had begun, and no arrivals: the phase ended before; or the turn's conversation, or
    one that starts it, had ended.
    """

    planned: int = 0
    sent: int = 0
    late: int = 0
    completed: int = 0
    errors: int = 0
    cancelled: int = 0
    aborted_in_flight: int = 0
    unfinished: int = 0
    never_sent: int = 0
    held: int = 0
    damaged: int = 0
    unknown: int = 0
    cut: int = 0
    overflowed: int = 0
    truncated: int = 0
    released: int = 0


class Measurement(Struct, frozen=True):
    """The client's own part in the times, and the verdict.

    verdict: ``trustworthy``, ``suspect`` with *reasons*, ``partial`` where a run was cut short and nothing is wrong with what
    it measured, or ``none`` where no verdict was made, as of a run without a good answer; the last of *notes* then says why.
    scope: the statistics that the reasons concern, where these are a part: ``inter-chunk``, or ``first token and
    inter-chunk``; None is all.
    turnaround_ms: in closed loops, from an answer to the first byte of the next request in its slot.
    poll_gap_ms: of good requests that were polled, the time between the starts of the last two exchanges: their latencies may
    be too long by as much.
    reconnected: requests that went to a new connection, because the server had closed an open one; reconnects: by cause,
    one of ``aiperf.sdk.columns.RECONNECTS``.
    reader: ``compiled`` where a thread outside the interpreter's lock read the sockets, ``python`` where the worker's loop did,
    ``mixed`` where workers differ; None where a library reads them.  reader_pauses: of the whole run, times in which the
    thread's memory was full, and reading paused.
    merged_first: answers whose first content was merged with later content.  first_stamp_share, chunk_stamp_share: of first
    contents and of all chunks, the share with a stamp of their own, 0 to 1: the others came within an interval; None where
    none came.
    streams_per_connection: where requests shared connections, the most at once on one, by option or server.  window_stalls,
    window_stalled_ms: of the whole run, how often the server's windows held requests up, and for how long connections waited.
    client_not_ready: requests, of all phases, that waited for their data set entry, which the client had yet to make.
    findings: of all verdicts; *reasons*, *notes* and the advice in the summary's warnings are sentences of these.
    sites: the machines that the workers were on, None where that was this one.
    machine: what the run was on: processor, CPUs that it might use, system, Python; None where it didn't record its end.
    """

    clock: str
    loopback: bool
    arrivals: Arrivals
    verdict: str = "none"
    reasons: tuple[str, ...] = ()
    client_error_ms: Quantiles | None = None
    schedule_slip_ms: Quantiles | None = None
    loop_lag_ms: Quantiles | None = None
    coalesced_chunks: int = 0
    stamps_missing: int = 0
    clock_steps: int = 0
    reconnected: int = 0
    worker_cpu_pct: tuple[float, ...] = ()
    notes: tuple[str, ...] = ()
    turnaround_ms: Quantiles | None = None
    scope: str | None = None
    findings: tuple[Finding, ...] = ()
    poll_gap_ms: Quantiles | None = None
    client_not_ready: int = 0
    reconnects: dict[str, int] = {}
    reader: str | None = None
    reader_pauses: int = 0
    streams_per_connection: int | None = None
    window_stalls: int = 0
    window_stalled_ms: float = 0.0
    merged_first: int = 0
    first_stamp_share: float | None = None
    chunk_stamp_share: float | None = None
    sites: tuple[SiteClock, ...] | None = None
    machine: str | None = None


class DeliveredLoad(Struct, frozen=True):
    """The load asked for and the load delivered; rates in requests/s, lateness in ms.

    sent_rate: sent requests over the time in which the phase could send.
    held: arrivals that waited for a slot or for the answer before, with the percentiles of their waits (None where none did).
    """

    sent_rate: float | None
    on_time_share: float | None
    never_sent: int
    asked_rate: float | None = None
    late_p50_ms: float | None = None
    late_p99_ms: float | None = None
    held: int = 0
    held_p50_ms: float | None = None
    held_p99_ms: float | None = None


class PluginUsed(Struct, frozen=True):
    """A plugin of the run.  *options*: as the user set them, secrets redacted."""

    category: str
    name: str
    distribution: str
    version: str
    shadowed: tuple[str, ...] = ()
    options: dict[str, Any] = {}


class Slice(Struct, frozen=True):
    """A part of the profiling phase, ``--slice-duration`` long, from *start_ns* up to *end_ns* (wall clock).

    started: requests that started in the slice.  outcomes: of requests that ended in it, as :attr:`Summary.outcomes`.
    results: of requests that ended in it; chunks and tokens count where they arrived; rates are per second of the slice.
    complete: False for the last slice where the phase ended before the slice.
    """

    start_ns: int
    end_ns: int
    results: dict[str, Result]
    started: int = 0
    outcomes: dict[str, int] = {}
    complete: bool = True


class UrlSummary(Struct, frozen=True):
    """One of several URLs in the profiling phase.  Rates are over the whole run: those of all URLs add up to the run's."""

    url: str
    results: dict[str, Result]
    started: int = 0
    outcomes: dict[str, int] = {}
    errors: tuple[ErrorCount, ...] = ()


class GroupSummary(Struct, frozen=True):
    """The requests of a phase whose *text* is *key*: those of a task, of a model.

    phase: its index.  results: of metrics that name the text in ``by``.  Rates are over the whole phase: those of all groups
    add up to the phase's.  started, outcomes, errors: as those of :class:`UrlSummary`.
    """

    text: str
    key: str
    phase: int
    results: dict[str, Result]
    started: int = 0
    outcomes: dict[str, int] = {}
    errors: tuple[ErrorCount, ...] = ()


class PhaseSummary(Struct, frozen=True):
    """One phase: its results and its window in wall-clock ns."""

    name: str
    kind: str
    index: int
    start_ns: int
    end_ns: int
    results: dict[str, Result]
    errors: tuple[ErrorCount, ...] = ()
    valid: int = 0
    failed: int = 0


class SeriesSummary(Struct, frozen=True):
    """One telemetry series over one phase, or over a time slice of it.

    kind: of a ``gauge``, and of a ``summary``'s quantile, *stats* has ``avg``, ``std`` and percentiles by time, ``min``,
    ``max`` and ``count`` (samples); of a ``counter`` ``total`` (its increase), ``rate`` (a second), ``count`` (samples); of a
    ``histogram`` ``count`` and ``sum`` (of the phase's observations), ``avg``, ``rate``, and in *buckets*, by upper bound, how
    many were at most that; of an ``info`` ``count`` (samples).  ``resets`` where a counter began again.
    estimates: of a histogram, ``p1_estimate`` to ``p99_estimate``; ``p50_low`` and ``p50_high`` are the edges of that one's
    bucket (90, 95, 99, too), without ``high`` in the last bucket.
    target: name of the source's target; "" for its only one.

    Counters and histograms of requests count from the last sample before the phase to the last one before the next phase, and
    ``rate`` is over the time between these two; one that flows by itself is taken between the exact edges of the phase.
    """

    source: str
    phase: int
    name: str
    kind: str
    unit: str
    labels: dict[str, str]
    help: str
    stats: dict[str, float]
    buckets: dict[str, float] = {}
    estimates: dict[str, float] = {}
    target: str = ""

    def entry(self) -> dict[str, Any]:
        """The series as JSON files have it: its finite statistics and estimates together; what is empty is left out."""
        stats = {name: value for name, value in {**self.stats, **self.estimates}.items() if math.isfinite(value)}
        about = {"name": self.name, "kind": self.kind, "unit": self.unit, "target": self.target, "labels": self.labels}
        return {name: value for name, value in {**about, "stats": stats, "buckets": self.buckets}.items() if value}


class TargetSummary(Struct, frozen=True):
    """One target of a telemetry source: a server, a device, or the machine.

    samples, failed, missed: taken, failed, and left out for want of time.  updates: samples in which a value changed.
    first_ns, last_ns, first_update_ns, last_update_ns: wall clock of samples, and of those with a change; None without any.
    latency_ms: mean time to the first byte, or of a sample where that isn't known.
    update_interval_ms, median_update_interval_ms: between updates; None with fewer than two.  why: of the last failed sample.
    late: by phase, the time in s from its begin to the first sample of all, where its figures begin.
    partial: phases without a sample in the last second and two intervals, and a last one with none behind it (of counters).
    unsettled: phases behind whose end no two samples had the same counters: figures may lack requests, or have others' ones.
    """

    name: str
    interval_s: float
    samples: int = 0
    failed: int = 0
    missed: int = 0
    updates: int = 0
    first_ns: int | None = None
    last_ns: int | None = None
    first_update_ns: int | None = None
    last_update_ns: int | None = None
    latency_ms: float | None = None
    update_interval_ms: float | None = None
    median_update_interval_ms: float | None = None
    why: str = ""
    late: dict[int, float] = {}
    partial: tuple[int, ...] = ()
    unsettled: tuple[int, ...] = ()


class SourceSummary(Struct, frozen=True):
    """A telemetry source: counts of samples taken, failed, and missed for want of time, of all its targets.

    slices: the series that have samples in each of :attr:`Summary.slices`, by its number.
    partial: phases that are *partial* for one of the targets.
    """

    name: str
    distribution: str
    version: str
    interval_s: float
    samples: int
    failed: int
    missed: int
    series: tuple[SeriesSummary, ...] = ()
    slices: tuple[tuple[SeriesSummary, ...], ...] = ()
    partial: tuple[int, ...] = ()
    targets: tuple[TargetSummary, ...] = ()


class Summary(Struct, frozen=True):
    """All results of a run, for exporters.

    results: the profiling phase's, by tag.  phases: every phase, warmup first.
    complete: False when the run was cut short; *incomplete_reason* says why.
    config: options given or derived, by section, secrets redacted.  command: the command as typed, secrets redacted.
    outcomes: requests by outcome: ``completed``, ``failed``, ``cut`` (the answer began and broke off), ``empty``
    (a good answer without content), ``cancelled``, ``aborted``, ``unfinished``, ``damaged``; absent where zero.
    finish_reasons: requests by the reason of the answer's end as the server sent it, the most frequent first; of several
    answers to a request the different reasons, joined with ``", "``.  Requests without a reason are left out, and those without
    a record (aborted and unfinished ones).
    survival: by tag, a latency whose requests in flight at the cut-off count as lasting at least as long as they had
    (Kaplan-Meier, interpolated linearly between its steps): ``count``, ``censored`` (those cut off) and the percentiles that
    are known; only where requests were cut off.  :func:`survivors` gives the results that must be shown beside the plain ones.
    run_warnings: the part of *warnings* that comes from the run itself, which a report repeats.
    slices: in the order of time, without gaps.  urls: as listed by the user, where there are several.
    groups: of every phase, by the texts that metrics name in ``by``: phases in their order, then texts and keys by name, at
    most 1,000 keys of a text in a phase.
    ungraded: answers that the grader left, by conversation; at most 1,000.
    telemetry: samples taken beside the load, by source.
    tables: of the plugins of the category tables, in their order.  directory: of the run's files, as an absolute path; "" in a
    summary that was not made from a run's directory.  study_id: of the study that the run is a part of, "" for a run by itself.
    scenario: the verdict of the run's scenario, None without one.  provenance: where a data set with a name came from.
    """

    run_id: str
    version: str
    results: dict[str, Result]
    errors: tuple[ErrorCount, ...]
    phases: tuple[PhaseSummary, ...]
    measurement: Measurement
    delivered: DeliveredLoad
    plugins: tuple[PluginUsed, ...]
    start_ns: int
    end_ns: int
    title: str
    command: str
    config: dict[str, Any]
    valid: int = 0
    failed: int = 0
    cancelled: bool = False
    complete: bool = True
    incomplete_reason: str | None = None
    seed: int | None = None
    observation_window_s: float | None = None
    benchmark_duration_s: float | None = None
    warnings: tuple[str, ...] = ()
    run_warnings: tuple[str, ...] = ()
    extra: dict[str, Any] = field(default_factory=dict)
    outcomes: dict[str, int] = {}
    survival: dict[str, Result] = {}
    slices: tuple[Slice, ...] = ()
    slice_duration_s: float | None = None
    urls: tuple[UrlSummary, ...] = ()
    telemetry: tuple[SourceSummary, ...] = ()
    finish_reasons: dict[str, int] = {}
    tables: tuple[SummaryTable, ...] = ()
    directory: str = ""
    study_id: str = ""
    groups: tuple[GroupSummary, ...] = ()
    ungraded: tuple[UngradedAnswer, ...] = ()
    scenario: ScenarioVerdict | None = None
    provenance: dict[str, Any] = {}


SURVIVOR_SHARE = 0.01
"""A percentile that differs by more than this share of the plain one is another result."""


def survivors(summary: Summary) -> list[Result]:
    """The results of *survival* that differ from the plain ones: a percentile more than 1 % off, or no longer known."""
    found = []
    for tag, result in summary.survival.items():
        plain = summary.results.get(tag)
        if plain is None or any(
            name not in result.stats or abs(result.stats[name] - value) > SURVIVOR_SHARE * abs(value)
            for name, value in plain.stats.items()
            if name.startswith("p")
        ):
            found.append(result)
    return found


__all__ = [
    "STATISTICS", "USUAL_ENDS", "Arrivals", "DeliveredLoad", "ErrorCount", "GroupSummary", "Interval", "Measurement",
    "PhaseSummary", "PluginUsed", "Quantiles", "Result", "SeriesSummary", "Slice", "SourceSummary", "Summary",
    "TargetSummary", "UngradedAnswer", "UrlSummary", "survivors",
]  # fmt: skip
