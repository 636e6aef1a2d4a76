"""Sections of the page that say what a run was and whether it can be trusted: verdict, workload, failures, configuration."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from aiperf.sdk.redaction import shown_fields
from aiperf_plotting.caption import facts
from aiperf_plotting.loads import LOADS, loads

from aiperf_report_page.conditions import CONDITIONS, command, configuration, plugins, warnings
from aiperf_report_page.markup import Cell, escaped, flat, listed, number, section, table
from aiperf_report_page.numbers import of_entries
from aiperf_report_page.opening import ReportedRun

_ALWAYS_TOLD = ("planned", "sent", "completed", "errors")
_LENGTHS = (
    "input_sequence_length", "output_sequence_length", "reasoning_token_count", "cached_token_count", "image_throughput",
    "osl_mismatch_diff_pct",
)  # fmt: skip
_KINDS = {"trustworthy": "good", "suspect": "warn", "partial": "warn"}
_DIFFERENCES = (
    "Differences in percent are of the numbers as they stand: this page does not say whether they are larger than chance makes"
    " them."
)
_NO_VERDICT = "the results have no verdict, as those of other tools: nothing is known of the client's own part in the times"
_MOST_KINDS = 100
"""Kinds of failures with a row."""


def verdict(runs: Sequence[ReportedRun], baseline_named: bool) -> str:
    """The verdict of each run with its reasons; of several, also where they differ in more than their load."""
    parts = [_verdict(run, alone=len(runs) == 1) for run in runs]
    if len(runs) > 1:
        how = "given as --baseline" if baseline_named else "the first of the runs"
        parts.append(f"<p>The baseline is {escaped(runs[0].label)}, {how}. {_DIFFERENCES}</p>\n")
        if found := warnings(runs):
            told = "<strong>These runs differ in more than their numbers.</strong>"
            parts.append(f'<div class="banner">{told}{listed(found)}</div>\n')
    return section("verdict", "Verdict", *parts)


def word_of(run: ReportedRun) -> tuple[str, str]:
    """The verdict of a run in a word or two, and the class of its colour."""
    known = facts(run.run)
    if run.summary.get("was_cancelled"):
        return "cancelled: a part of the run alone", "warn"
    if run.summary.get("is_complete") is False:
        return "partial: the run was cut short", "warn"
    if known.requests is not None and known.requests and known.failed >= known.requests:
        return "no request was answered", "bad"
    if known.verdict in (None, "none"):
        return "no verdict", "warn"
    scope = f", of {known.scope} statistics alone" if known.scope else ""
    return f"{known.verdict}{scope}", _KINDS.get(str(known.verdict), "warn")


def _verdict(run: ReportedRun, *, alone: bool) -> str:
    known, (word, kind) = facts(run.run), word_of(run)
    reasons = list(known.reasons)
    if known.verdict is None:
        reasons.append(_NO_VERDICT)
    if (why := run.summary.get("incomplete_reason")) is not None:
        reasons.insert(0, str(why))
    if known.verdict not in (None, "none") and not word.startswith(str(known.verdict)):
        reasons.append(f"the verdict on what was measured: {known.verdict}")
    reasons += run.remarks
    warned = [str(each) for each in run.summary.get("warnings") or () if str(each) not in reasons]
    about = f"<p>{escaped(known)}</p>\n"
    heading = "" if alone else f"<h3>{escaped(run.label)}</h3>\n"
    lost = ""
    if known.failed and known.requests:
        share = f"{known.failed:,} of {known.requests:,} requests failed ({known.failed / known.requests:.1%})"
        lost = f'<p class="bad">{escaped(share)}</p>\n'
    told = lost + listed(reasons) + (f"<p><strong>Warnings</strong></p>\n{listed(warned)}" if warned else "")
    return f'<div class="verdict">{heading}<p class="word {kind}">{escaped(word)}</p>\n{about}{told}</div>\n'


def workload(runs: Sequence[ReportedRun]) -> str:
    """What was asked of the server: conditions, load, lengths of prompts and answers, arrivals."""
    rows: list[list[Cell]] = [[name, *(condition(run) or "unknown" for run in runs)] for name, condition in CONDITIONS.items()]
    rows.append(["load", *(_load(run) or "unknown" for run in runs)])
    rows.append(["begin", *(str(run.summary.get("start_time") or "unknown") for run in runs)])
    parts = [table("conditions", _head("condition", runs), rows)]
    for run in runs:
        lengths = {tag: entry for tag, entry in run.metrics().items() if tag in _LENGTHS}
        parts.append(of_entries(_of("lengths", run, runs), lengths))
    parts.append(side_by_side("load delivered", runs, "delivered_load"))
    parts.append(side_by_side("arrivals; counts that are not here are 0", runs, "measurement.arrivals", zeros=_ALWAYS_TOLD))
    return section("workload", "Workload", *parts)


def _load(run: ReportedRun) -> str:
    return ", ".join(LOADS[unit].format(value) for unit, value in loads(run.run).items())


def failures(runs: Sequence[ReportedRun]) -> str:
    """Failed requests by kind with the first text of each, outcomes, reasons of ends."""
    counts: dict[tuple[str, str], list[int]] = {}
    texts: dict[tuple[str, str], dict[str, None]] = {}
    for place, run in enumerate(runs):
        for each in run.rows("error_summary"):
            found = each.get("error_details")
            details = found if isinstance(found, dict) else {"type": str(found)}
            kind = str(details.get("type") or "unknown"), str(details.get("code") or "")
            counts.setdefault(kind, [0] * len(runs))[place] += _whole(each.get("count", 1))
            texts.setdefault(kind, {})[str(details.get("message") or "")] = None
    kinds = sorted(counts, key=lambda kind: -sum(counts[kind]))
    rows: list[list[Cell]] = [
        [kind, code, next(iter(texts[kind, code])), float(len(texts[kind, code])), *map(float, counts[kind, code])]
        for kind, code in kinds[:_MOST_KINDS]
    ]
    head = ["kind", "code", "first text", "texts", *(["requests"] if len(runs) == 1 else [run.label for run in runs])]
    more = f"<p>{len(kinds) - _MOST_KINDS:,} further kinds are in the JSON files.</p>\n" if len(kinds) > _MOST_KINDS else ""
    none = "" if rows else "<p>No request failed.</p>\n"
    parts = [table("failed requests by kind", head, rows), more, none]
    parts += [side_by_side("outcomes", runs, "outcomes"), side_by_side("reasons of the end of answers", runs, "finish_reasons")]
    return section("failures", "Failures", *parts)


def settings(runs: Sequence[ReportedRun]) -> str:
    """Command, configuration and plugins."""
    parts = []
    for run in runs:
        if line := command(run):
            name = f"<h3>{escaped(_of('Command', run, runs))}</h3>\n"
            parts.append(f'{name}<pre class="log" tabindex="0">{escaped(line)}</pre>\n')
    parts.append(_table_of("configuration", runs, [dict(flat(configuration(run))) for run in runs]))
    versions = [{"kernel": str(run.summary.get("aiperf_version") or "unknown")} | plugins(run) for run in runs]
    parts.append(_table_of("versions of kernel and plugins", runs, versions))
    chosen: list[dict[str, Cell]] = []
    for run in runs:
        used = [each for each in run.section("plugins").get("used") or () if isinstance(each, dict)]
        named = {f"{each.get('category')}:{each.get('name')}": shown_fields(each.get("options")) for each in used}
        chosen.append({path: value for name, options in named.items() if options for path, value in flat(options, name)})
    parts.append(_table_of("options of plugins", runs, chosen))
    return section("settings", "Configuration, command, versions", *parts)


def side_by_side(
    name: str, runs: Sequence[ReportedRun], path: str, leave_out: Iterable[str] = (), zeros: Iterable[str] | None = None
) -> str:  # fmt: skip
    """An object of the summaries, its leaves as rows; "" where no run has it.

    zeros: the rows that stand there even where they are 0 in each run; None for all.
    """
    found = []
    for run in runs:
        value: Any = run.summary
        for part in path.split("."):
            value = value.get(part) if isinstance(value, dict) else None
        value = {key: each for key, each in value.items() if key not in leave_out} if isinstance(value, dict) else {}
        found.append(dict(flat(value)) if value else {})
    if zeros is not None:
        told = {row for each in found for row, count in each.items() if count} | set(zeros)
        found = [{row: count for row, count in each.items() if row in told} for each in found]
    return _table_of(name, runs, found)


def _table_of(name: str, runs: Sequence[ReportedRun], values: Sequence[Mapping[str, Cell]]) -> str:
    paths = dict.fromkeys(path for each in values for path in each)
    rows = [[path, *(_text(each.get(path)) for each in values)] for path in paths]
    return table(name, _head("name", runs), rows)


def _head(first: str, runs: Sequence[ReportedRun]) -> list[str]:
    return [first, "value"] if len(runs) == 1 else [first, *(run.label for run in runs)]


def _of(name: str, run: ReportedRun, runs: Sequence[ReportedRun]) -> str:
    return name if len(runs) == 1 else f"{name}: {run.label}"


def _text(value: Cell) -> str:
    return value if isinstance(value, str) else number(value if isinstance(value, int | float) else None)


def _whole(value: object) -> int:
    return int(value) if isinstance(value, int | float) else 0


__all__ = ["failures", "settings", "side_by_side", "verdict", "word_of", "workload"]
