"""What each pane shows of a snapshot, as lines for a width.  Pure: they are compared with the lines before, and tested so."""

from __future__ import annotations

from collections.abc import Sequence

from aiperf.sdk.snapshot import (
    RECENT_S,
    WORKER_STATUSES,
    LiveMetric,
    LiveObjective,
    LiveSeries,
    LiveStatistics,
    PhaseProgress,
    Snapshot,
    clock,
)  # fmt: skip

from aiperf_ui_dashboard.history import CURVES, WINDOW_S, History
from aiperf_ui_dashboard.lines import (
    Line,
    Span,
    bar,
    cells,
    curve,
    fitted,
    folded,
    literal,
    padded,
    shortened,
    side_by_side,
    table,
)  # fmt: skip

NONE = "–"
_RECENT = f"{RECENT_S:.0f} s"
_WORKER_STYLES = dict(zip(WORKER_STATUSES, ("ok", "warn", "bad", "dim", "bad"), strict=True))
_KINDS = {"gauge": "last value", "counter": "increase/s", "histogram": "mean", "info": "last value"}
"""What the number of a telemetry series is."""


def number(value: float | None) -> str:
    """A number with four significant digits, thousands apart."""
    if value is None:
        return NONE
    size = abs(value)
    if size >= 1000:
        return f"{value:,.0f}" if size < 1e9 else f"{value:.3e}"
    decimals = 1 if size >= 100 else 2 if size >= 10 else 3 if size >= 1 or size == 0 else 4
    text = f"{value:.{decimals}f}"
    return text if size >= 0.001 or not size else f"{value:.2e}"


def share(part: int, whole: int) -> str:
    return NONE if not whole else f"{100 * part / whole:.1f} %"


def _count(value: int | None) -> str:
    return NONE if value is None else f"{value:,}"


def _time(seconds: float | None) -> str:
    return NONE if seconds is None else clock(seconds)


def header(snapshot: Snapshot | None, subject: str, note: Span | None, width: int, *, unicode: bool) -> list[Line]:
    """Two lines: the run's place in a study, what is measured and what happens; and the progress of the phase."""
    state = note or ((snapshot.status, "head") if snapshot is not None else ("Waiting", "head"))
    if snapshot is not None and snapshot.unreached_s is not None:
        state = (f"no connection for {clock(snapshot.unreached_s)}", "bad")
    right = shortened(state[0], width)
    if snapshot is not None and snapshot.cell is not None:
        subject = f"{literal(snapshot.cell.line())}  {subject}"
    left = padded(f"aiperf  {subject}", max(0, width - len(right) - 2))
    first: Line = fitted((("aiperf", "bold"), (left[6:] + "  ", ""), (right, state[1])), width)
    if snapshot is None:
        return [first, ()]
    percent = "" if snapshot.share is None else f"{min(100.0, max(0.0, 100 * snapshot.share)):3.0f} %"
    words = f"  {percent}  elapsed {clock(snapshot.elapsed_s)}"
    words += "" if snapshot.eta_s is None else f"  ETA {clock(snapshot.eta_s)}"
    name = shortened(literal(snapshot.phase), max(4, width // 4)) + "  "
    space = width - len(words) - len(name)
    drawn = bar(snapshot.share or 0.0, space, unicode=unicode) if space >= 4 and snapshot.share is not None else ()
    return [first, fitted(((name, "bold"), *drawn, (words, "")), width)]


def progress(snapshot: Snapshot, width: int) -> list[Line]:
    """The counts of the phase under way, then the phases of the plan."""
    at = snapshot.progress or PhaseProgress(
        0, snapshot.phase, snapshot.kind, sent=snapshot.sent, in_flight=snapshot.in_flight, completed=snapshot.completed,
        errors=snapshot.errors, reduced=snapshot.completed + snapshot.errors,
    )  # fmt: skip
    done, failed = at.done, snapshot.failed
    color = "ok" if not failed else "warn" if failed <= 0.1 * done else "bad"
    pairs: list[tuple[str, Span]] = [
        ("Done", (f"{done:,} of {at.planned:,}" if at.planned is not None else f"{done:,}", "bold")),
        ("In flight", (_count(at.in_flight), "")),
        ("Failed", (f"{failed:,} ({share(failed, done)})", color)),
        ("Rate so far", (f"{number(snapshot.rate)} req/s", "")),
        (f"Rate {_RECENT}", (f"{number(snapshot.recent_rate)} req/s", "")),
        ("Sent", (_count(at.sent), "")),
        ("Due", (_count(at.due), "")),
        ("Late", (_count(at.late), "warn" if at.late else "")),
        ("Records", (f"{at.reduced:,} of {done:,}", "")),
        ("Rec. ETA", (_time(at.reduce_eta_s), "")),
    ]
    lines = side_by_side(pairs, width)
    if snapshot.cell is not None:
        lines.append(((literal(snapshot.cell.line()), "bold"),))
    if snapshot.phases:
        rows = [_phase(phase) for phase in snapshot.phases]
        lines += table(("Phase", "Status", "Share", "Elapsed", "ETA", "Done", "Records ETA"), rows, width, left=2)
    return [fitted(line, width) for line in lines]


def _phase(phase: PhaseProgress) -> list[Span]:
    percent = NONE if phase.share is None else f"{min(100.0, 100 * phase.share):.0f} %"
    return [
        (literal(phase.name), "bold"), (phase.status, "head"), (percent, ""), (clock(phase.elapsed_s), ""),
        (_time(phase.eta_s), ""), (f"{phase.done:,}", ""), (_time(phase.reduce_eta_s), ""),
    ]  # fmt: skip


_STATISTICS = (("avg", "min", "max", "p99", "p95", "p90", "p50", "std", "count"), ("avg", "max", "p99", "p50", "std"))
"""Of the phase so far, and of the last seconds, where there is space for all."""
_FEWER = (
    (("avg", "min", "max", "p99", "p90", "p50", "std"), ("avg", "p99", "p50")),
    (("avg", "p99", "p90", "p50"), ("avg", "p99", "p50")),
    (("avg", "p99", "p50"), ("p99", "p50")), (("p99", "p50"), ("p99", "p50")), (("p50",), ("p50",)),
)  # fmt: skip
_NUMBER_CELLS = 8
"""Width of a column of numbers, with the blank before it."""


def metrics(snapshot: Snapshot, width: int) -> list[Line]:
    """A table of the metrics, headlines first; two lines are its header: so far in the phase, and of the last seconds."""
    ordered = (each for each in snapshot.metrics if each.order is not None)
    shown = sorted(ordered, key=lambda each: (each.headline is None, each.headline or 0, each.order or 0))
    if not shown:
        said = "No request has been reduced yet." if not snapshot.metrics else "No metric is shown."
        return [((shortened(said, width), "dim"),)]
    names = [f"{literal(each.title if width >= 100 or not each.short else each.short)} ({literal(each.unit)})" if each.unit
        else literal(each.title) for each in shown]  # fmt: skip
    longest = max([len("Metric (unit)"), *map(len, names)])
    space = (width - 3 - min(longest, 20)) // _NUMBER_CELLS
    chosen = next((pair for pair in (_STATISTICS, *_FEWER) if len(pair[0]) + len(pair[1]) <= space), _FEWER[-1])
    numbers = _NUMBER_CELLS * (len(chosen[0]) + len(chosen[1])) + 3
    label = max(4, min(longest, width - numbers))
    first, second = (_NUMBER_CELLS * len(names_of) for names_of in chosen)
    lines: list[Line] = [
        ((" " * label, ""), (padded("phase so far", first, right=True), "head"), ("   ", ""),
            (padded(f"last {_RECENT}", second, right=True), "head")),
        ((padded("Metric (unit)", label), "dim"), *_statistics_named(chosen[0]), ("   ", ""), *_statistics_named(chosen[1])),
    ]  # fmt: skip
    for each, name in zip(shown, names, strict=True):
        lines.append(_metric(each, name, label, chosen))
    return [fitted(line, width) for line in lines]


def _statistics_named(names: Sequence[str]) -> list[Span]:
    return [(padded(name, _NUMBER_CELLS, right=True), "dim") for name in names]


def _metric(metric: LiveMetric, name: str, label: int, chosen: tuple[Sequence[str], Sequence[str]]) -> Line:
    so_far, recent = _statistics(metric.so_far, chosen[0]), _statistics(metric.recent, chosen[1])
    return ((padded(name, label), "bold"), *so_far, ("   ", ""), *recent)


def _statistics(values: LiveStatistics | None, names: Sequence[str]) -> list[Span]:
    """The statistics of these names; a metric that is one number shows it in the first column that it has."""
    spans: list[Span] = []
    alone = values is not None and values.p50 is None and values.min is None
    for at, name in enumerate(names):
        if values is None:
            text = NONE
        elif alone:
            text = number(values.avg) if name == "avg" or (not at and "avg" not in names) else ""
        else:
            text = _statistic(values, name)
        spans.append((" " + padded(text, _NUMBER_CELLS - 1, right=True), "" if values is not None else "dim"))
    return spans


def _statistic(values: LiveStatistics, name: str) -> str:
    if name == "count":
        return _count(values.count)
    of = {"avg": values.avg, "min": values.min, "max": values.max, "std": values.std, "p50": values.p50, "p90": values.p90,
        "p95": values.p95, "p99": values.p99}  # fmt: skip
    return number(of[name])


def failures(snapshot: Snapshot, width: int, *, whole: bool = False) -> list[Line]:
    """A line for each kind of failure; *whole*: as many as the text of the first one needs."""
    failed = snapshot.failed
    if not snapshot.failures:
        return [((shortened(f"{failed:,} failed requests", width), "warn" if failed else "ok"),)]
    total = sum(each.count for each in snapshot.failures) + snapshot.further_failures
    rows = [
        [
            (f"{each.count:,}", "bad"), (share(each.count, total), ""), (NONE if each.code is None else str(each.code), ""),
            (literal(each.type), "bold"), (literal(each.text), ""),
        ]
        for each in snapshot.failures
    ]  # fmt: skip
    if snapshot.further_failures:
        further = snapshot.further_failures
        rows.append([(f"{further:,}", "bad"), (share(further, total), ""), ("", ""), ("further kinds", "dim"), ("", "")])
    counts = max(6, *(len(row[0][0]) for row in rows))
    fixed = counts + 8 + 6 + 2  # share and code beside it
    types = max(cells(row[3][0]) for row in rows)
    types = max(8, min(types, width - fixed - 18))
    before = fixed + types + 2
    lines: list[Line] = [((f"{'failed':>{counts}}  {'share':>6}  code  {padded('type', types)}  first text", "dim"),)]
    for row in rows:
        texts = folded(row[4][0], width - before, "") if whole and width - before >= 12 else [row[4][0]]
        lines.append((
            (f"{row[0][0]:>{counts}}", row[0][1]), (f"  {row[1][0]:>6}  {row[2][0]:<4}  ", ""),
            (padded(row[3][0], types), row[3][1]), ("  ", ""), (texts[0], ""),
        ))  # fmt: skip
        lines += [((" " * before, ""), (text, "")) for text in texts[1:]]
    return [fitted(line, width) for line in lines]


def goodput(snapshot: Snapshot, width: int) -> list[Line]:
    """Requests that met each objective, and what is said of the measurement."""
    lines: list[Line] = []
    together = [] if snapshot.good is None else [snapshot.good]
    objectives = [*together, *snapshot.objectives]
    if objectives:
        rows = [_objective(each) for each in objectives]
        titles = ("Objective", "so far", f"last {_RECENT}", "met so far", "of", f"met {_RECENT}", "of")
        lines += table(titles, rows, width, first=24)
    else:
        lines.append((("No objectives: name them with --goodput.", "dim"),))
    verdict = snapshot.verdict
    if verdict is None:
        lines.append((("Measurement so far: not judged yet", "dim"),))
    else:
        lines.append((
            ("Measurement so far: ", ""), (literal(verdict.verdict), "ok" if not verdict.reasons else "bad"),
            (f"  at {clock(verdict.at_s)}", "dim"),
        ))  # fmt: skip
        lines += [((f"  {literal(text)}", "warn"),) for text in verdict.reasons]
        lines += [((f"  {literal(text)}", ""),) for text in verdict.notes]
    delays = snapshot.delays
    client = f"slip {number(delays.slip_ms)} ms, reading {number(delays.client_error_ms)} ms"
    lines.append((("Client, p99 so far: ", "dim"), (client, "")))
    lines.append((("Loop lag, worst s:  ", "dim"), (f"{number(delays.loop_lag_ms)} ms", "")))
    return _folded(lines, width)


def _objective(each: LiveObjective) -> list[Span]:
    style = "bad" if each.met < 0.9 * each.judged else "warn" if each.met < each.judged else "ok" if each.judged else ""
    return [
        (literal(each.title or "all objectives"), "bold"), (share(each.met, each.judged), style),
        (share(each.recent_met, each.recent_judged), ""), (f"{each.met:,}", ""), (f"{each.judged:,}", ""),
        (f"{each.recent_met:,}", ""), (f"{each.recent_judged:,}", ""),
    ]  # fmt: skip


def _folded(lines: Sequence[Line], width: int) -> list[Line]:
    """Lines of one span that are too long go on below; others are cut."""
    pieces: list[Line] = []
    for line in lines:
        if len(line) != 1 or width < 12:
            pieces.append(fitted(line, width))
            continue
        (text, style), indent = line[0], " " * (len(line[0][0]) - len(line[0][0].lstrip()) + 2)
        pieces += [((piece, style),) for piece in folded(text, width, indent)]
    return pieces


def workers(snapshot: Snapshot, width: int) -> list[Line]:
    """How many workers there are of each status, and a line for each."""
    if not snapshot.workers:
        return [((shortened("No worker has started yet.", width), "dim"),)]
    counts: list[Span] = []
    for status in WORKER_STATUSES:
        number_of = sum(worker.status == status for worker in snapshot.workers)
        counts += [(f"{number_of} ", "bold"), (f"{status}   ", _WORKER_STYLES[status] if number_of else "dim")]
    sites = any(each.site for each in snapshot.workers)
    rows = [
        [
            (f"{each.index}", "bold"), *([(literal(each.site or ""), "")] if sites else []),
            (each.status, _WORKER_STYLES.get(each.status, "")), (f"{each.in_flight:,}", ""),
            (f"{each.completed:,}", ""), (f"{each.errors:,}", "bad" if each.errors else ""),
            (NONE if each.cpu_pct is None else f"{each.cpu_pct:.0f} %", ""), (size(each.memory_bytes), ""),
            (size(each.received_bytes), ""), (NONE if each.pid is None else str(each.pid), "dim"),
        ]
        for each in snapshot.workers
    ]  # fmt: skip
    titles = ("#", *(("site",) if sites else ()), "status", "in flight", "done", "failed", "CPU", "memory", "received", "pid")
    return [fitted(counts, width), *table(titles, rows, width, left=2 + sites)]


def size(value: int | None) -> str:
    """Bytes with a decimal prefix."""
    if value is None:
        return NONE
    for unit, factor in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if value >= factor:
            return f"{value / factor:.{1 if value < 10 * factor else 0}f} {unit}"
    return f"{value} B"


def telemetry(series: Sequence[LiveSeries], further: int, width: int) -> list[Line]:
    """The series of a source; a target that all of them have stands above them."""
    targets = sorted({each.target for each in series})
    common = targets[0] if len(targets) == 1 else ""
    rows = []
    for each in sorted(series, key=lambda each: (each.target, each.name, sorted(each.labels.items()))):
        labels = [f"{name}={value}" for name, value in each.labels.items()] + [each.target] * bool(each.target and not common)
        what = literal(_KINDS.get(each.kind, each.kind), 10)
        rows.append([literal(each.name), number(each.value), literal(each.unit, 12), what, literal("  ".join(labels), 160)])
    titles = ["Series", "value", "unit", "statistic", "labels" if len(targets) < 2 else "labels, target"]
    widths = [max(len(row[at]) for row in (titles, *rows)) for at in range(4)]
    beside = sum(widths[1:]) + (24 if width >= 80 else 6)  # the blanks between, and space for labels
    widths[0] = max(12, min(widths[0], width - beside))
    lines: list[Line] = []
    for row in (titles, *rows):
        head = row is titles
        lines.append((
            (padded(row[0], widths[0]), "dim" if head else "bold"),
            (f"  {padded(row[1], widths[1], right=True)}  {padded(row[2], widths[2])}", "dim" if head else ""),
            (f"  {padded(row[3], widths[3])}", "dim"), (f"  {row[4]}", "dim"),
        ))  # fmt: skip
    if common:
        lines.insert(1, (("target ", "dim"), (literal(common), "")))
    if further:
        lines.append(((f"{further:,} further series are not shown.", "dim"),))
    return [fitted(line, width) for line in lines]


def charts(history: History, width: int, height: int, *, unicode: bool) -> list[Line]:
    """Curves of the last two minutes, as many as there is space for, each from 0 to its largest value."""
    count = columns_of(width)
    label = width - count if width - count <= 34 else 34
    _, columns = history.columns(count)
    shown = len(CURVES) if height >= len(CURVES) else max(1, height)
    tall = max(1, min(6, height // shown))
    lines: list[Line] = []
    for at, (name, _) in enumerate(CURVES[:shown]):
        values = columns[at]
        known = [value for value in values if value is not None]
        unit, window = history.units[at], "" if at < 3 else f", of {_RECENT}"
        now = known[-1] if known else None
        drawn = curve(values, count, tall, unicode=unicode)
        words = [f"{name}{window}", f"{number(now)} {unit}".rstrip() + f", max {number(max(known) if known else None)}"]
        if tall == 1:
            window = window.replace(" of", "") if label < 30 else f"{window}:"
            words = [f"{name}{window} {number(now)} {unit}".rstrip()]
        for row, text in enumerate(drawn):
            said = words[row] if row < len(words) else ""
            lines.append(((padded(said, label - 1), "bold" if not row else "dim"), (" ", ""), (text, "curve")))
    return [fitted(line, width) for line in lines]


def columns_of(width: int) -> int:
    """Columns of the curves in a pane of this width."""
    return max(1, min(240, width - (34 if width >= 70 else 24)))


def charts_note(width: int) -> str:
    """The window and the column of the curves."""
    step_s = max(WINDOW_S / columns_of(width), 0.5)
    return f"last {WINDOW_S / 60:.0f} min, mean of each {step_s:.1f} s"


__all__ = [
    "charts", "charts_note", "columns_of", "failures", "goodput", "header", "metrics", "number", "progress", "share", "size",
    "telemetry", "workers",
]  # fmt: skip
