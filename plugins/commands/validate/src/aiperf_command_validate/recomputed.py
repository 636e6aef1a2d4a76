"""Numbers of the summary computed again: from its other numbers, and from the per-request file."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import numpy as np
from aiperf.sdk.model import names
from aiperf_results import metrics_of

from aiperf_command_validate.faults import Faults
from aiperf_command_validate.ledger import Ledger
from aiperf_command_validate.numbers import CLOSE, close, value_of
from aiperf_command_validate.records import Records
from aiperf_command_validate.values import Values

Metrics = Mapping[str, dict[str, Any]]

_ADJUSTED = "adj_"
_SUMS = {
    "total_isl": "input_sequence_length", "total_osl": "output_sequence_length", "total_output_tokens": "output_token_count",
    "total_reasoning_tokens": "reasoning_token_count",
}  # fmt: skip
"""Totals whose tag doesn't say what they are the sum of."""
_RATES = {"request_throughput": ("request_count",), "output_token_throughput": ("total_osl",),
          "input_token_throughput": ("total_isl",), "total_token_throughput": ("total_isl", "total_osl"),
          "goodput": ("good_request_count",)}  # fmt: skip
_UNITS = {
    "sec": ("benchmark_duration",), "%": ("request_error_rate",), "requests/sec": ("request_throughput", "goodput"),
    "tokens/sec": ("output_token_throughput", "input_token_throughput", "total_token_throughput"),
    "requests": ("request_count", "error_request_count", "completed_request_count", "good_request_count"),
}  # fmt: skip
_UNIT_OF = {tag: unit for unit, tags in _UNITS.items() for tag in tags}
_LEVELS = ("suspect", "advice", "note")
_QUANTILES = ("client_error_ms", "schedule_slip_ms", "loop_lag_ms")
_MICROSECOND = 3e-6
"""Seconds that a time of day in the summary may be off: it has six decimals."""
_MEAN = 1e-3
"""Relative difference of a mean over a phase whose begin is known to a microsecond."""


def entries(metrics: Metrics, values: Mapping[str, Values], failed: int, name: str, faults: Faults, where: str = "") -> None:
    """Every statistic and unit of the metrics whose values the per-request file has.  *failed*: requests that failed."""
    for tag, of in values.items():
        entry = metrics.get(tag)
        if entry is None:
            if of.exact:
                what = f"{where}has no {tag}, of which the per-request file has {of.count:,} values"
                faults.add(name, what, kind="missing metrics")
            continue
        _units(tag, entry, of, name, faults, where)
        if not is_one_number(entry) and of.exact:
            statistics(entry, f"{where}{tag}", of.statistics(), of.bounds(), name, faults, listed=of.listed)
        elif "lower" in entry and of.exact:
            _one_number(entry, f"{where}{tag}", of, name, faults)
        worse = metrics.get(_ADJUSTED + tag)
        if worse is not None and of.exact:
            expected = of.adjusted(failed)
            for extra in sorted(worse.keys() - expected.keys() - {"unit", "lower", "upper"}):
                faults.add(name, f"{where}{_ADJUSTED}{tag} has a {extra}, which {failed:,} failed requests make infinite")
            _units(_ADJUSTED + tag, worse, of, name, faults, where)
            compare(f"{where}{_ADJUSTED}{tag}", worse, expected, name, faults)
            for side, known in zip(("lower", "upper"), of.adjusted_bounds(failed), strict=False):
                compare(f"{where}{_ADJUSTED}{tag}.{side}", worse.get(side, {}), known, name, faults)


def is_one_number(entry: dict[str, Any]) -> bool:
    """Whether a metric has no statistics but a number, maybe with bounds."""
    return entry.keys() <= {"unit", "avg", "lower", "upper"}


def _one_number(entry: dict[str, Any], tag: str, of: Values, name: str, faults: Faults) -> None:
    """The bounds of a sum are the sums of the bounds."""
    for side, known in zip(("lower", "upper"), of.bounds(), strict=False):
        compare(f"{tag}.{side}", entry.get(side, {}), {"avg": known["sum"]}, name, faults)


def statistics(
    entry: dict[str, Any], tag: str, expected: dict[str, float], sides: Sequence[dict[str, float]], name: str, faults: Faults,
    *, listed: bool,
) -> None:  # fmt: skip
    """The statistics of *entry* are the *expected* ones; *sides* are its bounds, and of lists the midpoints of these."""
    if "lower" in entry and not sides:
        faults.add(name, f"{tag} has bounds, and the per-request file has no estimates of it")
    for side, known in zip(("lower", "upper"), sides, strict=False):
        compare(f"{tag}.{side}", entry.get(side, {}), known, name, faults)
    if sides and listed:
        expected = expected | {key: (value + sides[1][key]) / 2 for key, value in sides[0].items()}
    compare(tag, entry, expected, name, faults)


def _units(tag: str, entry: dict[str, Any], of: Values, name: str, faults: Faults, where: str) -> None:
    if of.units and entry.get("unit") not in of.units:
        units = " and ".join(sorted(of.units))
        faults.add(name, f"{where}{tag} is in {entry.get('unit')}, the per-request file has it in {units}", kind="other units")


def compare(tag: str, entry: dict[str, Any], expected: dict[str, float], name: str, faults: Faults) -> None:
    """The statistics under *tag* are the *expected* ones."""
    magnitude = max((abs(value) for value in expected.values()), default=0.0)
    for key, value in expected.items():
        told = entry.get(key)
        scale = magnitude if key in ("std", "sum") else abs(value)
        if not isinstance(told, int | float) or abs(told - value) > max(CLOSE * scale, 1e-9):
            faults.add(name, f"{tag}.{key} is {told}, the per-request file's values give {value:.10g}", kind="other statistics")


def derived(metrics: Metrics, name: str, faults: Faults, where: str = "") -> None:
    """Sums, rates, shares and units that follow from other metrics."""
    for tag, entry in metrics.items():
        part = _SUMS.get(tag, tag.removeprefix("total_") if tag.startswith("total_") else "")
        total = metrics.get(part, {}).get("sum")
        if total is not None and not close(entry.get("avg", math.nan), total):
            faults.add(name, f"{where}{tag} is {entry.get('avg')}, the sum of {part} is {total:.10g}")
        if tag in _UNIT_OF and entry.get("unit") != _UNIT_OF[tag]:
            faults.add(name, f"{where}{tag} is in {entry.get('unit')}, not {_UNIT_OF[tag]}", kind="other units")
    rates(metrics, value_of(metrics, "benchmark_duration"), name, faults, where)
    good, failed = value_of(metrics, "request_count") or 0.0, value_of(metrics, "error_request_count") or 0.0
    ended = value_of(metrics, "completed_request_count")
    if ended is not None and ended != good + failed:
        parts = f"request_count and error_request_count {good + failed:g}"
        faults.add(name, f"{where}completed_request_count is {ended:g}, {parts}")
    rate = value_of(metrics, "request_error_rate")
    if rate is not None and good + failed and not close(rate, 100 * failed / (good + failed)):
        faults.add(name, f"{where}request_error_rate is {rate:g} %, {failed:g} of {good + failed:g} requests failed")


def rates(metrics: Metrics, seconds: float | None, name: str, faults: Faults, where: str = "") -> None:
    """Rates times *seconds* are the counts."""
    span = "the slice's seconds" if where else "benchmark_duration"
    for rate, counts in _RATES.items():
        for side in ("lower", "upper"):
            known = [metrics.get(tag, {}).get(side, {}).get("avg") for tag in (rate, *counts)]
            if seconds is not None and None not in known and not close(known[0] * seconds, sum(known[1:])):
                faults.add(name, f"{where}{rate}.{side} × {span} is {known[0] * seconds:g}, {counts[0]}.{side} is {known[1]:g}")
        per_second, parts = value_of(metrics, rate), [value_of(metrics, count) for count in counts]
        known = [part for part in parts if part is not None]
        if seconds is None or per_second is None or len(known) < len(parts):
            continue
        if not close(per_second * seconds, sum(known)):
            product, total = f"{per_second * seconds:g}", f"{' + '.join(counts)} is {sum(known):g}"
            faults.add(name, f"{where}{rate} × {span} is {product}, {total}")


def conclusions(summary: dict[str, Any], name: str, faults: Faults) -> None:
    """Whether the run is complete, the verdict, the load and the times agree with what they rest on."""
    _complete(summary, name, faults)
    measurement, load = summary.get("measurement", {}), summary.get("delivered_load", {})
    if "verdict" in measurement:
        whole = "trustworthy" if summary.get("is_complete", True) else "partial"
        possible = ("suspect",) if measurement.get("reasons") else (whole, "none")
        if measurement.get("arrivals", {}).get("completed") == 0:
            possible, whole = ("none",), "empty"
        if measurement["verdict"] not in possible:
            count = len(measurement.get("reasons", ()))
            kind = {"trustworthy": "whole", "partial": "incomplete"}.get(whole, whole)
            told = f"the verdict on {kind} results is {measurement['verdict']}, with {count} reasons for suspicion"
            faults.add(name, told)
    reconnects = sum(measurement.get("reconnects", {}).values())
    if reconnects > measurement.get("reconnected", 0):
        told = f"measurement.reconnects are {reconnects:,} requests, reconnected {measurement.get('reconnected', 0):,}"
        faults.add(name, told)
    for share, merged in (("first_stamp_share", "merged_first"), ("chunk_stamp_share", "coalesced_chunks")):
        told, count = measurement.get(share), measurement.get(merged, 0)
        if told is not None and (told < 1) != (count > 0):
            faults.add(name, f"measurement.{share} is {told:g}, {merged} {count:,}")
    if "findings" in measurement:
        _findings(measurement, summary.get("warnings", ()), name, faults)
    for field in _QUANTILES:
        quantiles = measurement.get(field) or {}
        rising = [quantiles[key] for key in ("p50", "p99", "max") if key in quantiles]
        if rising != sorted(rising):
            faults.add(name, f"measurement.{field}: percentiles go down")
    _load(load, measurement.get("arrivals", {}), name, faults)
    _windows(summary, name, faults)


def _findings(measurement: dict[str, Any], warnings: Sequence[str], name: str, faults: Faults) -> None:
    """Reasons, notes, advice and scope are those of the findings; a run that nothing judged has a note of its own."""
    findings = measurement["findings"]
    by_level = {level: [each["sentence"] for each in findings if each["level"] == level] for level in _LEVELS}
    own = int(measurement.get("verdict") == "none")
    notes = list(measurement.get("notes", ()))
    for level, field, told in (("suspect", "reasons", list(measurement.get("reasons", ()))),
                               ("note", "notes", notes[: len(notes) - own])):  # fmt: skip
        if told != by_level[level]:
            count = len(by_level[level])
            faults.add(name, f"measurement.{field} are not the sentences of the {count} findings of level {level}")
    for sentence in by_level["advice"]:
        if sentence not in warnings:
            faults.add(name, f"the advice {sentence!r} is not among the warnings", kind="missing advice")
    scopes = {each.get("scope") for each in findings if each["level"] == "suspect"}
    scope = names(sorted(scopes)) if scopes and None not in scopes else None
    if measurement.get("scope") != scope:
        faults.add(name, f"measurement.scope is {measurement.get('scope')}, that of the findings {scope}")


def _complete(summary: dict[str, Any], name: str, faults: Faults) -> None:
    if "is_complete" not in summary:
        return
    cut_short = bool(summary.get("was_cancelled")) or summary.get("incomplete_reason") is not None
    if bool(summary["is_complete"]) == cut_short:
        told = "was_cancelled or incomplete_reason contradicts it" if cut_short else "neither of them says why"
        fields = "is_complete, was_cancelled and incomplete_reason"
        faults.add(name, f"{fields}: is_complete is {str(summary['is_complete']).lower()}, and {told}")


def _load(load: dict[str, Any], arrivals: dict[str, Any], name: str, faults: Faults) -> None:
    for field in ("never_sent", "held"):
        if load and arrivals and load.get(field, 0) != arrivals.get(field, 0):
            faults.add(name, f"delivered_load.{field} is {load.get(field)}, the arrivals' {field} {arrivals.get(field)}")
    planned, share = arrivals.get("planned"), load.get("on_time_share")
    if planned and share is not None:
        on_time = arrivals.get("sent", 0) - arrivals.get("late", 0)
        if not close(share, on_time / planned):
            faults.add(name, f"delivered_load.on_time_share is {share:g}, {on_time:,} of {planned:,} arrivals left on time")


def _windows(summary: dict[str, Any], name: str, faults: Faults) -> None:
    """Each phase lasts from its start to its end; the first profiling phase is the run's."""
    phases = [phase for phase in summary.get("phases", ()) if isinstance(phase, dict)]
    for phase in phases:
        told, seconds = phase.get("duration", {}).get("avg"), _seconds(phase)
        if told is not None and seconds is not None and not close(told, seconds, _MICROSECOND):
            faults.add(name, f"phase {phase.get('name')} lasts {told:g} s, from its start to its end {seconds:g} s")
    main = next((phase for phase in phases if phase.get("kind") == "profiling"), None)
    if main is None:
        return
    for field in ("start_time", "end_time"):
        if field in summary and field in main and summary[field] != main[field]:
            faults.add(name, f"{field} is not that of phase {main.get('name')}")
    window, told = summary.get("observation_window", {}).get("avg"), main.get("duration", {}).get("avg")
    if window is not None and told is not None and not close(window, told):
        faults.add(name, f"observation_window is {window:g} s, phase {main.get('name')} lasts {told:g} s")


def _seconds(phase: dict[str, Any]) -> float | None:
    begin, end = _instant(phase.get("start_time")), _instant(phase.get("end_time"))
    return None if begin is None or end is None else end - begin


def _instant(text: Any) -> float | None:
    """Seconds since 1970; None where *text* is no time."""
    try:
        return datetime.fromisoformat(text).timestamp()
    except (TypeError, ValueError):
        return None


def from_requests(summary: dict[str, Any], records: Records, ledger: Ledger | None, name: str, faults: Faults) -> None:
    """Duration, requests in flight and errors, from the times and errors of all requests.

    The ledger has the end of each; in the per-request file alone, a failed request may be over later than its last byte.
    Requests in flight are counted until their last bytes.
    """
    arrivals = summary.get("measurement", {}).get("arrivals", {})
    lost, aborted = arrivals.get("unfinished", 0) + arrivals.get("damaged", 0), arrivals.get("aborted_in_flight", 0)
    _errors(summary, records, lost + aborted, name, faults)
    metrics = metrics_of(summary)
    starts, ends, recorded = records.profiling_times() if ledger is None else ledger.profiling_times(summary)
    if lost or (ledger is None and aborted) or not len(starts) or min(starts.min(), ends.min()) < 0:
        return  # some ends are in no file
    failed = ledger is None and bool(records.errors)
    duration, expected = value_of(metrics, "benchmark_duration"), int(ends.max() - starts.min()) / 1e9
    if duration is not None and not _agrees(duration, expected, CLOSE, at_least=failed):
        faults.add(name, f"benchmark_duration is {duration:g} s, the requests take {expected:g} s")
    mean, window = value_of(metrics, "effective_concurrency"), summary.get("observation_window", {}).get("avg")
    begin_s = _instant(summary.get("start_time"))
    if mean is not None and window and begin_s is not None:
        starts = starts if ledger is not None else np.maximum(starts, round(begin_s * 1e6) * 1000)
        expected = int((recorded - starts).sum()) / 1e9 / window
        if not math.isclose(mean, expected, rel_tol=CLOSE if ledger is not None else _MEAN):
            faults.add(name, f"effective_concurrency is {mean:g} on average, the times of the requests give {expected:g}")


def _agrees(told: float, value: float, tolerance: float, *, at_least: bool) -> bool:
    return math.isclose(told, value, rel_tol=tolerance) or (at_least and told > value)


def _errors(summary: dict[str, Any], records: Records, unseen: int, name: str, faults: Faults) -> None:
    """How often each error came; kinds that are counted together are left out."""
    for entry in summary.get("error_summary", ()):
        details = entry.get("error_details", {}) if isinstance(entry, dict) else {}
        key = records.error_key(details)
        if str(key[0]).startswith("more than "):
            continue
        told, lines = entry.get("count", 0), records.errors[key]
        if not lines <= told <= lines + unseen:
            faults.add(name, f"error_summary counts {told} × {key[1] or key[0]}, the per-request file {lines}")
