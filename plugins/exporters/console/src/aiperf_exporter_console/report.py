"""The report: every number of it stands in the summary JSON too."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from aiperf import Measurement, Summary
from aiperf.sdk.engine import SiteClock
from aiperf.sdk.model import names
from aiperf.sdk.summary import USUAL_ENDS, Arrivals, DeliveredLoad, ErrorCount, PhaseSummary, Quantiles
from aiperf.sdk.table import WhenShown

from aiperf_exporter_console.metrics import COLUMNS, Table, drawn, in_short, metric_tables, number, survival
from aiperf_exporter_console.table import Look, cells_of, clean, table, tame, total, wrap
from aiperf_exporter_console.tables import shown
from aiperf_exporter_console.telemetry import sampled

_MESSAGE_CELLS = 12
"""Cells of the terminal that an error's message gets at least."""
_CELL_LINES = 4
_ERRORS = 20
"""Errors that are shown; the rest is counted."""
_URL_COLUMNS = (
    ("requests/sec", "request_throughput", "avg"),
    ("TTFT p50", "time_to_first_token", "p50"),
    ("TTFT p99", "time_to_first_token", "p99"),
    ("latency p99", "request_latency", "p99"),
)
_FAILED = ("failed", "cut", "empty", "client_limit", "cancelled")
"""Outcomes of failed requests: together the summary's count of them."""
_RECONNECTED = {
    "closed_before_write": "requests on a new connection (the server had closed the open one)",
    "unacknowledged": "requests sent again (the server had closed, or refused them, and read nothing of them)",
}
_READERS = {"compiled": "read by loop and thread", "python": "read by the loop", "mixed": "read with a thread and without"}
_ENDS = (
    "completed", "errors", "cut", "cancelled", "aborted_in_flight", "unfinished", "damaged", "never_sent", "unknown",
    "overflowed",
)  # fmt: skip
"""Outcomes of arrivals, in the order in which they are shown."""
_RARE = ("held", "cut", "damaged", "unknown", "overflowed", "truncated", "released")
"""Counts that are shown where there are any."""


def report(
    summary: Summary, look: Look, width: int, *, verbose: bool, trace: bool = False, screen: bool = False,
    columns: Sequence[str] = COLUMNS,
) -> str:  # fmt: skip
    """The whole report, at most *width* columns wide where that is possible, ending in a line end.

    *trace*: with the table of the parts of HTTP requests.  *screen*: for a terminal: tables of groups are left out unless
    *verbose*, and a short sentence at the end repeats what has scrolled away.  *columns*: statistics of the tables.
    """
    measurement = summary.measurement
    suspect = measurement.verdict == "suspect"
    verdict = list(_verdict(summary, look, width))
    head = (verdict if suspect else (), _incomplete(summary, look, width), _errors(summary.errors, look, width))
    found = metric_tables(summary, columns, trace=trace)
    printed = [one for one in found if not screen or verbose or one.traces or not one.group]
    seen = (WhenShown.ALWAYS, WhenShown.VERBOSE) if verbose else (WhenShown.ALWAYS,)
    more = (
        survival(summary, look, width, columns), _urls(summary, look, width),
        *(sampled(source, summary, look, width, verbose=verbose) for source in summary.telemetry),
        *(shown(one, look, width) for one in summary.tables if one.shown in seen),
    )  # fmt: skip
    measured = (_full_measurement if verbose else _measurement)(measurement, look, width)
    rest = [one for one in found if one not in printed]
    blocks = (
        *head, *(drawn(one, look, width, columns) for one in printed), _left_out(rest, width),
        *more, _warnings(summary, look, width), _about(summary, width), measured, _scenario(summary, look, width),
        _footer(summary),
        [*(in_short(summary, width, columns) if screen else ()), *(() if suspect else verdict)],
    )  # fmt: skip
    return "\n\n".join("\n".join(block) for block in map(list, blocks) if block) + "\n"


def _left_out(tables: Sequence[Table], width: int) -> Iterator[str]:
    if tables:
        groups = names([one.group.title() for one in tables])
        yield from wrap(f"Further tables with -v, and in the console file: {clean(groups)}", width, indent="  ")


def _verdict(summary: Summary, look: Look, width: int) -> Iterator[str]:
    measurement = summary.measurement
    what, paint = "", look.bold
    if measurement.verdict == "partial":
        what = "nothing is wrong with the part that was measured"
    elif measurement.verdict == "none" and not summary.valid:
        what, paint = "no request succeeded, and there is nothing to trust", look.bad
    elif measurement.verdict == "suspect":
        what, paint = f"{clean(measurement.scope)} statistics alone" if measurement.scope else "", look.bad
    elif measurement.verdict == "trustworthy":
        paint = look.good
    first, *rest = wrap(f"Verdict: {clean(measurement.verdict)}{f' ({what})' if what else ''}", width, indent="  ")
    yield paint(first)
    yield from rest
    for reason in measurement.reasons:
        yield from wrap(clean(reason), width, first="  - ", indent="    ")


def _scenario(summary: Summary, look: Look, width: int) -> Iterator[str]:
    """Whether the run counts for its scenario, and what that says of it."""
    verdict = summary.scenario
    if verdict is not None:
        counts = "the run counts" if verdict.valid else f"the run doesn't count: {', '.join(verdict.reasons)}"
        first, *rest = wrap(clean(f"Scenario {verdict.title}: {counts}"), width, indent="  ")
        yield (look.good if verdict.valid else look.bad)(first)
        yield from rest
        for note in verdict.notes:
            yield from wrap(clean(note), width, first="  - ", indent="    ")


def _incomplete(summary: Summary, look: Look, width: int) -> Iterator[str]:
    if not summary.complete:
        yield look.bad("INCOMPLETE RESULTS")
        yield from wrap(clean(summary.incomplete_reason or "the run was cut short"), width, first="  ", indent="  ")


def _errors(errors: Sequence[ErrorCount], look: Look, width: int) -> Iterator[str]:
    if not errors:
        return
    rows = [
        ("N/A" if error.code is None else str(error.code), clean(error.type or "N/A"), clean(error.message), f"{count:,}")
        for error, count in ((one.error, one.count) for one in errors[:_ERRORS])
    ]
    header = ("Code", "Type", "Message", "Count")
    widths = [max(cells_of(row[i]) for row in (header, *rows)) for i in range(4)]
    widths[1] = min(widths[1], max(8, width // 4))
    room = width - total([widths[0], widths[1], 0, widths[3]])
    widths[2] = min(widths[2], max(_MESSAGE_CELLS, room))
    yield from table(look, "Error Summary", header, rows, widths, right=1, height=_CELL_LINES)
    if len(errors) > _ERRORS:
        yield f"Further kinds of error stand in the JSON; the first {_ERRORS} are shown."


def _urls(summary: Summary, look: Look, width: int) -> Iterator[str]:
    """One row for each of several servers."""
    if not summary.urls:
        return
    header = ["URL", "started", "completed", "failed", *(short for short, _, _ in _URL_COLUMNS)]
    rows = []
    for one in summary.urls:
        failed = sum(one.outcomes.get(name, 0) for name in _FAILED)
        values = [one.results[tag].stats.get(key) if tag in one.results else None for _, tag, key in _URL_COLUMNS]
        counts = (one.started, one.outcomes.get("completed", 0), failed)
        rows.append([clean(one.url), *(f"{count:,}" for count in counts), *map(number, values)])
    yield from table(look, "Servers", header, rows, _natural(header, rows, width), right=len(header) - 1)


def _warnings(summary: Summary, look: Look, width: int) -> Iterator[str]:
    if summary.warnings:
        yield look.bold("Warnings")
    for warning in summary.warnings:
        yield from wrap(clean(warning), width, first="  - ", indent="    ")


def _about(summary: Summary, width: int) -> Iterator[str]:
    """Load delivered, phases and what became of requests, a line each."""
    lines = [_delivered(summary.delivered), *map(_phase, summary.phases)]
    if len(summary.outcomes) > 1:
        lines.append(f"Requests: {_outcomes(summary.outcomes)}")
    if any(reason.lower() not in USUAL_ENDS for told in summary.finish_reasons for reason in told.split(", ")):
        ends = (f"{count:,} {clean(reason)}" for reason, count in summary.finish_reasons.items())
        lines.append(f"Finish reasons: {', '.join(ends)}")
    if summary.valid == 0 and summary.failed:
        lines.append("No request succeeded.")
    for line in lines:
        yield from wrap(line, width, indent="  ")


def _outcomes(outcomes: Mapping[str, int]) -> str:
    """The counts of all outcomes; failed ones as one count, with its kinds where there are several."""
    kinds = {name: outcomes[name] for name in _FAILED if name in outcomes}
    others = {name: count for name, count in outcomes.items() if name not in kinds}
    shown = [f"{count:,} {name}" for name, count in others.items()]
    if kinds:
        detail = ", ".join(f"{count:,} {'with an error' if name == 'failed' else name}" for name, count in kinds.items())
        shown.insert("completed" in others, f"{sum(kinds.values()):,} failed{'' if [*kinds] == ['failed'] else f' ({detail})'}")
    return ", ".join(shown)


def _delivered(load: DeliveredLoad) -> str:
    parts = []
    if load.asked_rate is not None:
        parts.append(f"asked {number(load.asked_rate)} requests/sec")
    if load.sent_rate is not None:
        parts.append(f"sent {number(load.sent_rate)} requests/sec")
    if load.on_time_share is not None:
        parts.append(f"{number(100 * load.on_time_share)} % on time")
    if load.late_p50_ms is not None and load.late_p99_ms is not None:
        parts.append(f"late by {number(load.late_p50_ms, 3)} ms at p50, {number(load.late_p99_ms, 3)} ms at p99")
    if load.held_p50_ms is not None and load.held_p99_ms is not None:
        waited = f"{number(load.held_p50_ms)} ms at p50, {number(load.held_p99_ms)} ms at p99"
        parts.append(f"{load.held:,} waited for a slot or an answer, {waited}")
    return f"Delivered load: {', '.join([*parts, f'{load.never_sent:,} never sent'])}"


def _phase(phase: PhaseSummary) -> str:
    kind = "" if phase.name == phase.kind else f" ({phase.kind})"
    seconds = number((phase.end_ns - phase.start_ns) / 1e9)
    return f"Phase {clean(phase.name)}{kind}: {phase.valid:,} succeeded, {phase.failed:,} failed, {seconds} sec"


def _measurement(measurement: Measurement, look: Look, width: int) -> Iterator[str]:
    """What matters of it, a line each."""
    yield look.bold("Measurement")
    lines = [
        f"{label}: p50 {number(spread.p50, 3)}, p99 {number(spread.p99, 3)}, max {number(spread.max, 3)} ms"
        for label, spread in _spreads(measurement)[: 2 + (measurement.turnaround_ms is not None)]
    ]
    lines.append(f"Arrivals: {_arrivals(measurement.arrivals)}")
    lines.append(f"Stamps: {_stamps(measurement)}")
    if measurement.worker_cpu_pct:
        shares = [f"{place}{number(share, 1)} %" for place, share in _worker_shares(measurement)]
        lines.append(f"Worker CPU: {', '.join(shares)}")
    for line in [*lines, *map(clean, measurement.notes)]:
        yield from wrap(line, width, first="  ", indent="    ")


def _full_measurement(measurement: Measurement, look: Look, width: int) -> Iterator[str]:
    """All of it, as tables."""
    spreads = [
        (f"{label} (ms)", number(spread.p50, 3), number(spread.p99, 3), number(spread.max, 3))
        for label, spread in _spreads(measurement)
    ]
    if spreads:
        columns = ("Measurement", "p50", "p99", "max")
        yield from table(look, "Measurement", columns, spreads, _natural(columns, spreads, width), right=3)
    rows = [("Clock", f"{clean(measurement.clock)}{', loopback' if measurement.loopback else ''}")]
    rows += [(f"Arrivals {name.replace('_', ' ')}", f"{count:,}") for name, count in _counts(measurement.arrivals)]
    rows += [
        *([("Reader", clean(measurement.reader))] if measurement.reader is not None else []),
        *([("Reader pauses", f"{measurement.reader_pauses:,}")] if measurement.reader_pauses else []),
        *([("Streams per connection", f"{streams:,}")] if (streams := measurement.streams_per_connection) else []),
        *([("Window stalls", f"{measurement.window_stalls:,}")] if measurement.window_stalls else []),
        *((f"{what.capitalize()} with a stamp of their own (%)", _percent(share)) for what, share in _own_stamps(measurement)),
        ("Coalesced chunks", f"{measurement.coalesced_chunks:,}"),
        ("Stamps missing", f"{measurement.stamps_missing:,}"),
        ("Clock steps", f"{measurement.clock_steps:,}"),
        ("Reconnected", f"{measurement.reconnected:,}"),
        *((f"Reconnected: {cause.replace('_', ' ')}", f"{count:,}") for cause, count in measurement.reconnects.items()),
        *((f"{place}Worker {i} CPU (%)", number(share, 1)) for i, (place, share) in enumerate(_worker_shares(measurement))),
        *((f"Site {clean(site.name)}: clock (ms)", _clock(site)) for site in measurement.sites or ()),
    ]
    header = ("Measurement", "Value")
    yield from table(look, "" if spreads else "Measurement", header, rows, _natural(header, rows, width), right=1)
    for note in measurement.notes:
        yield from wrap(clean(note), width)


def _worker_shares(measurement: Measurement) -> list[tuple[str, float]]:
    """Each worker's share of a core, behind the name of its site: ``barn: ``; "" without sites."""
    names = {shard: f"{clean(site.name)}: " for site in measurement.sites or () for shard in site.shards}
    shares = measurement.worker_cpu_pct
    known = names if len(names) == len(shares) else {}  # some may have told nothing
    return [(known.get(shard, ""), share) for shard, share in enumerate(shares)]


def _clock(site: SiteClock) -> str:
    """Within which bound it is known, and why the site was lost."""
    return f"± {number(site.uncertainty_ms, 3)}" + ("" if site.lost is None else f", lost: {clean(site.lost)}")


def _spreads(measurement: Measurement) -> list[tuple[str, Quantiles]]:
    found = (
        ("Client error", measurement.client_error_ms),
        ("Schedule slip", measurement.schedule_slip_ms),
        ("Turnaround", measurement.turnaround_ms),
        ("Loop lag", measurement.loop_lag_ms),
        ("Poll gap", measurement.poll_gap_ms),
    )
    return [(label, spread) for label, spread in found if spread is not None]


def _counts(arrivals: Arrivals) -> list[tuple[str, int]]:
    others = [name for name in arrivals.__struct_fields__ if name not in _ENDS]
    found = [(name, getattr(arrivals, name)) for name in (*others, *_ENDS)]
    return [(name, count) for name, count in found if count or name not in _RARE]


def _arrivals(arrivals: Arrivals) -> str:
    counts = [(name, count) for name, count in _counts(arrivals) if name in _ENDS]
    ends = [f"{count:,} {name.replace('_', ' ')}" for name, count in counts if count or name == "completed"]
    late = f"; {arrivals.late:,} sent late" if arrivals.late else ""
    turns = [f"{getattr(arrivals, name):,} {name}" for name in ("truncated", "released") if getattr(arrivals, name)]
    unsent = f"; turns of trees: {', '.join(turns)}" if turns else ""
    return f"{arrivals.planned:,} planned: {', '.join(ends)}{late}{unsent}"


def _stamps(measurement: Measurement) -> str:
    parts = [f"{clean(measurement.clock)}{', loopback' if measurement.loopback else ''}"]
    parts += [_READERS[measurement.reader]] if measurement.reader in _READERS else []
    own = _own_stamps(measurement)
    if any(share < 1 for _, share in own):
        parts.append(f"{' and '.join(f'{_percent(share)} % of {what}' for what, share in own)} with a stamp of their own")
    counted = (
        (measurement.streams_per_connection or 0, "streams per connection"),
        (measurement.window_stalls, "stalls by the server's windows"),
        (measurement.reader_pauses, "pauses of the reader"),
        (measurement.coalesced_chunks, "chunks coalesced"),
        (measurement.stamps_missing, "missing"),
        (measurement.clock_steps, "clock steps"),
        *_reconnects(measurement),
    )
    return ", ".join([*parts, *(f"{count:,} {label}" for count, label in counted if count)])


def _own_stamps(measurement: Measurement) -> list[tuple[str, float]]:
    """What has a stamp of its own, and its share."""
    shares = ("first contents", measurement.first_stamp_share), ("chunks", measurement.chunk_stamp_share)
    return [(what, share) for what, share in shares if share is not None]


def _percent(share: float) -> str:
    """The share in percent: less than 100 where it is less than all."""
    return number(min(100 * share, 99.99) if share < 1 else 100)


def _reconnects(measurement: Measurement) -> Iterator[tuple[int, str]]:
    """Requests that went to a new connection, by cause; those of an earlier version, which knew none, together."""
    for cause, count in measurement.reconnects.items():
        yield count, _RECONNECTED.get(cause, f"requests reconnected ({cause})")
    yield measurement.reconnected - sum(measurement.reconnects.values()), "requests reconnected"


def _natural(header: Sequence[str], rows: Iterable[Sequence[str]], width: int) -> list[int]:
    """Columns as wide as their cells, the first narrowed to keep the table in *width*."""
    widths = [max(map(cells_of, column)) for column in zip(header, *rows, strict=True)]
    widths[0] = max(10, min(widths[0], width - total([0, *widths[1:]])))
    return widths


def _footer(summary: Summary) -> Iterator[str]:
    yield f"CLI Command: {tame(summary.command)}"
    duration = summary.results.get("benchmark_duration")
    seconds = duration.stats.get("avg") if duration is not None else summary.benchmark_duration_s
    if seconds is not None:
        yield f"Benchmark Duration: {number(seconds)} sec{' (cancelled early)' if summary.cancelled else ''}"
