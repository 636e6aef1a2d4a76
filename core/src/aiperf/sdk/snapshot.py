"""The state of a run while it goes on: what displays, live views, hooks, companions and the log get twice a second.

Numbers in plain structures, without numpy.  Every number is finite; None is unknown.  Rows that may be many are arrays when
they are encoded (``array_like``); ``msgspec.structs.asdict`` gives their names back.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from msgspec import Struct

WAITING, WARMUP, WARMUP_GRACE, PROFILING, GRACE, PROCESSING, COMPLETE = STATUSES = (
    "Waiting", "Warmup", "Warmup Grace", "Profiling", "Grace Period", "Processing", "Complete",
)  # fmt: skip
"""The status words of a phase, and of a run."""
HEALTHY, HIGH_LOAD, ERROR, IDLE, STALE = WORKER_STATUSES = ("healthy", "high load", "error", "idle", "stale")
"""The status words of a worker."""
RECENT_S = 10.0
"""The window of what is *recent*."""
MOST_FAILURES, MOST_SERIES, MOST_LINES = 20, 200, 20
"""The most kinds of failure, telemetry series and log lines of a snapshot."""
_MOST_HEADLINES = 2
"""Metrics in a line of progress."""
_NAMES = ("avg", "min", "max", "std", "p50", "p90", "p95", "p99")
_LEVELS = {"TRACE": 5, "DEBUG": 10, "INFO": 20, "WARNING": 30, "ERROR": 40, "CRITICAL": 50}
_LINE = re.compile(r"\d\d:\d\d:\d\d\.\d{3} ([A-Z]+) ")


class CellProgress(Struct, frozen=True):
    """The place of a run among those of its study.

    number: from 1.  of: number of all runs; None where that isn't known.  label: ``concurrency_4/trial_0002``.
    left_s: seconds until the last run has ended; None is unknown.
    """

    number: int
    of: int | None
    label: str
    left_s: float | None = None

    def line(self) -> str:
        """``run 3 of 9  concurrency_4/trial_0002  2:10 left``."""
        of = "" if self.of is None else f" of {self.of:,}"
        left = "" if self.left_s is None else f"  {clock(self.left_s)} left"
        return f"run {self.number:,}{of}  {self.label}{left}"


class PhaseProgress(Struct, frozen=True):
    """One phase of the plan.

    status: of STATUSES.  share: progress towards its end, 0 to 1; None without a size or a time.  elapsed_s: 0 before it
    begins.  eta_s: seconds until it sends nothing more; None is unknown.
    planned: requests that it will send; None where time or answers decide.  due: arrivals that are due by now; None without due
    times.  sent: requests begun.  late: sent requests, of those reduced, that began too late; None without due times.
    in_flight, completed, errors: as the workers count them.  A bad answer counts as completed here: see ``failed``.
    reduced: requests whose answers were read.  failed: of these, the requests that failed, bad answers among them.
    reduce_eta_s: seconds until all requests that are done are reduced; 0 when they are, None is unknown.
    """

    index: int
    name: str
    kind: str
    status: str = WAITING
    share: float | None = None
    elapsed_s: float = 0.0
    eta_s: float | None = None
    planned: int | None = None
    due: int | None = None
    sent: int = 0
    late: int | None = None
    in_flight: int = 0
    completed: int = 0
    errors: int = 0
    reduced: int = 0
    failed: int = 0
    reduce_eta_s: float | None = None

    @property
    def done(self) -> int:
        """Requests that have ended."""
        return self.completed + self.errors


class LiveStatistics(Struct, frozen=True, array_like=True):
    """Statistics of a metric, in its display unit.  A metric that is one number has ``avg`` alone; the others are None.

    avg: None too where failed requests count as infinitely slow (``adj_`` results).
    """

    avg: float | None
    min: float | None = None
    max: float | None = None
    std: float | None = None
    p50: float | None = None
    p90: float | None = None
    p95: float | None = None
    p99: float | None = None
    count: int | None = None

    @classmethod
    def of(cls, stats: Mapping[str, float]) -> LiveStatistics:
        """From statistics by name, as :class:`aiperf.sdk.summary.Result` has them."""
        avg, low, high, std, p50, p90, p95, p99 = map(stats.get, _NAMES)
        count = stats.get("count")
        return cls(avg, low, high, std, p50, p90, p95, p99, None if count is None else int(count))


class LiveMetric(Struct, frozen=True, array_like=True):
    """A metric of the phase under way.

    tag, title, short, unit, group, order: as of :class:`aiperf.sdk.summary.Result`; order None is not shown on the console.
    so_far: over the phase, by the rules of the report.  recent: of requests that were reduced in the last RECENT_S; None
    where there was none.  Percentiles are within 0.1 %, everything else is exact.
    headline: of :class:`aiperf.sdk.metric.MetricDeclaration`: its place among the numbers of a line; None leaves it out.
    interval: of a headline, over requests that were reduced in a time as long as that between two lines of progress; None
    without such lines.
    """

    tag: str
    title: str
    unit: str
    so_far: LiveStatistics
    recent: LiveStatistics | None = None
    short: str = ""
    group: str = ""
    order: int | None = None
    headline: int | None = None
    interval: LiveStatistics | None = None


class LiveObjective(Struct, frozen=True):
    """A service-level objective, in the phase under way.

    title: ``TTFT ≤ 200 ms``.  tag: of the metric that it bounds; "" for all objectives together.
    bound: the limit in the display unit of that metric; None for all together.
    judged: requests that succeeded; met: of these, those within the bound.  recent_judged, recent_met: of the last RECENT_S.
    """

    title: str
    tag: str
    bound: float | None = None
    judged: int = 0
    met: int = 0
    recent_judged: int = 0
    recent_met: int = 0

    @property
    def share(self) -> float | None:
        """Share of the judged requests that met it, 0 to 1; None where none was judged."""
        return self.met / self.judged if self.judged else None


class LiveFailures(Struct, frozen=True, array_like=True):
    """Failed requests of one kind in the phase under way.

    code: HTTP status; None where there was no answer.  type: of the error.  text: of the first, at most 200 characters.
    count: 1 and more.
    """

    type: str
    count: int
    code: int | None = None
    text: str = ""


class LiveWorker(Struct, frozen=True, array_like=True):
    """A process that sends.

    status: of WORKER_STATUSES.  pid: on its machine; None is unknown, as cpu_pct and memory_bytes.  cpu_pct: share of one core
    since the snapshot before, at a site over about a second, %.  memory_bytes: resident.  received_bytes: content of answers so
    far; None is unknown.  site: the name of the worker's site; None in a run without sites.
    """

    index: int
    status: str
    pid: int | None = None
    in_flight: int = 0
    completed: int = 0
    errors: int = 0
    cpu_pct: float | None = None
    memory_bytes: int | None = None
    received_bytes: int | None = None
    site: str | None = None


class LiveDelays(Struct, frozen=True):
    """The client's own part, p99 in ms, in the phase under way; None is unknown.

    slip_ms: starts behind due times.  loop_lag_ms: of the workers' loops, the worst second.  client_error_ms: reads behind
    the kernel's stamps.
    """

    slip_ms: float | None = None
    loop_lag_ms: float | None = None
    client_error_ms: float | None = None


class LiveSeries(Struct, frozen=True, array_like=True):
    """The last value of a telemetry series.

    source: name of its plugin.  target: of the source's target; "" for its only one.  kind: of
    :class:`aiperf.sdk.telemetry.SeriesKind`, as a word.  value: of a gauge; of a counter its increase a second between the last
    two samples; of a histogram the mean of what was observed between them.  None is unknown.  at_ns: wall clock of the sample.
    """

    source: str
    name: str
    value: float | None
    unit: str = ""
    labels: dict[str, str] = {}
    target: str = ""
    kind: str = "gauge"
    at_ns: int = 0


class LogLine(Struct, frozen=True):
    """A line of the log as a console shows it.  level: of ``logging``; 20 for a line without one.

    printed: by the run's own process, on its standard output or error; a display need not print it again, because the run does
    so once the display has left the terminal.
    """

    text: str
    level: int = 20
    printed: bool = False

    @classmethod
    def of(cls, text: str) -> LogLine:
        found = _LINE.match(text)
        return cls(text, _LEVELS.get(found[1], 20) if found else 20)


class VerdictSoFar(Struct, frozen=True):
    """What verdicts that can judge an unfinished run say, every 5 s.

    verdict: ``trustworthy``, or ``suspect`` with *reasons*; notes: what the numbers are worth.  at_s: of the phase.
    """

    verdict: str
    reasons: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    at_s: float = 0.0


class Snapshot(Struct, frozen=True):
    """The state of a run.

    phase, kind, elapsed_s, sent, completed, errors, in_flight, share, eta_s: of the phase under way, as
    :class:`PhaseProgress` has them.  rate: requests/s that ended, over the phase so far; recent_rate: over the last RECENT_S,
    or the phase where it is younger; None before the first.
    unreached_s: for how many seconds, 3 at least, no connection to the server could be opened; None where that is not so.
    cell: the run's place in a study; None for a run by itself.
    number: of the snapshots of the plan, from 1; a gap says how many were lost.  at_ns: wall clock.  status: of STATUSES.
    last: the plan's last snapshot, with all requests reduced: its numbers are those of the report.
    phases: all of the plan.  metrics, objectives, failures, delays: of the phase under way, and empty while nobody looks.
    good: all objectives together; None where there are none.
    further_failures, further_series: what is not in the lists: failed requests, and series.
    log: the latest lines, the newest last, each of at most 500 characters; logged: number of all lines so far.
    verdict: None before the first, and where no plugin can say.
    """

    phase: str
    kind: str
    elapsed_s: float
    sent: int
    completed: int
    errors: int
    in_flight: int
    rate: float
    share: float | None = None
    eta_s: float | None = None
    unreached_s: float | None = None
    cell: CellProgress | None = None
    number: int = 1
    at_ns: int = 0
    status: str = PROFILING
    last: bool = False
    recent_rate: float | None = None
    phases: tuple[PhaseProgress, ...] = ()
    metrics: tuple[LiveMetric, ...] = ()
    good: LiveObjective | None = None
    objectives: tuple[LiveObjective, ...] = ()
    failures: tuple[LiveFailures, ...] = ()
    further_failures: int = 0
    workers: tuple[LiveWorker, ...] = ()
    delays: LiveDelays = LiveDelays()
    series: tuple[LiveSeries, ...] = ()
    further_series: int = 0
    log: tuple[LogLine, ...] = ()
    logged: int = 0
    verdict: VerdictSoFar | None = None

    def metric(self, tag: str) -> LiveMetric | None:
        """The metric of this tag; None where it has no value."""
        return next((metric for metric in self.metrics if metric.tag == tag), None)

    def headlines(self) -> list[LiveMetric]:
        """The two distributions that come first among the headlines: TTFT and ITL of streams, else the latency."""
        known = [metric for metric in self.metrics if metric.headline is not None and metric.so_far.p50 is not None]
        return sorted(known, key=lambda metric: metric.headline or 0)[:_MOST_HEADLINES]

    @property
    def progress(self) -> PhaseProgress | None:
        """The phase under way; None in a snapshot without phases."""
        return next((phase for phase in self.phases if phase.name == self.phase), None)

    @property
    def failed(self) -> int:
        """Requests that failed, bad answers among them as far as they are read."""
        return max(self.errors, self.progress.failed if self.progress is not None else 0)

    def lines(self, rate: float | None = None) -> tuple[str, ...]:
        """Two lines of text: progress and counts; rates, latencies, objectives and the verdict.  Before them the run's place in
        a study.

        *rate*: requests/s since the lines before; the latencies are then of that time, too.  None: of the last RECENT_S.
        """
        return (*([] if self.cell is None else [self.cell.line()]), _counts_line(self), _numbers_line(self, rate))


def _counts_line(now: Snapshot) -> str:
    """The phase and its requests: each number with a word that stays the same."""
    percent = "" if now.share is None else f" {min(100, int(now.share * 100)):3d} %"
    eta = "" if now.eta_s is None else f"  ETA {clock(now.eta_s)}"
    due = "" if now.progress is None or now.progress.due is None else f"  {now.progress.due:,} due"
    kinds = ", ".join(f"{each.count:,} {each.code or each.type}" for each in now.failures[:2])
    failed = f"  {now.failed:,} failed{f' ({kinds})' if kinds else ''}"
    done = f"  {now.sent:,} sent  {now.completed + now.errors:,} done  {now.in_flight:,} in flight"
    return f"{now.phase}{percent}  {clock(now.elapsed_s)}{eta}{due}{done}{failed}"


def _numbers_line(now: Snapshot, rate: float | None) -> str:
    """Rates and latencies of the last seconds and so far, the objectives, and what makes the run suspect."""
    parts = [] if now.unreached_s is None else [f"no connection for {clock(now.unreached_s)}"]
    recent = rate if rate is not None else now.rate if now.recent_rate is None else now.recent_rate
    parts.append(f"{recent:,.1f} requests/s (so far {now.rate:,.1f})")
    for metric in now.headlines():
        last = (metric.interval if rate is not None else None) or metric.recent or metric.so_far
        parts.append(f"{metric.short or metric.title} p50 {_pair(last)} (so far {_pair(metric.so_far)}) {metric.unit}")
    if now.good is not None and now.good.share is not None:
        parts.append(f"{now.good.met:,} of {now.good.judged:,} good ({now.good.share:.1%})")
    if now.verdict is not None and now.verdict.reasons:
        parts.append(f"{now.verdict.verdict}: {now.verdict.reasons[0]}")
    return "  ".join(parts)


def _pair(statistics: LiveStatistics) -> str:
    return f"{statistics.p50 or 0.0:,.2f} p99 {statistics.p99 or 0.0:,.2f}"


def clock(seconds: float) -> str:
    """``0:07``, ``2:10``, ``1:00:00``."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


__all__ = [
    "MOST_FAILURES", "MOST_SERIES", "RECENT_S", "STATUSES", "WORKER_STATUSES", "CellProgress", "LiveDelays", "LiveFailures",
    "LiveMetric", "LiveObjective", "LiveSeries", "LiveStatistics", "LiveWorker", "LogLine", "PhaseProgress",
    "Snapshot", "VerdictSoFar", "clock",
]  # fmt: skip
