"""Time slices: whole, in their order, the same in both files, and the sums of their requests."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from aiperf_results import metrics_of

from aiperf_command_validate import recomputed
from aiperf_command_validate.faults import Faults
from aiperf_command_validate.numbers import value_of
from aiperf_command_validate.records import Records

_HEADER = ["Timeslice", "Start_NS", "End_NS", "Metric", "Unit", "Stat", "Value"]
_SUMS = ("request_count", "error_request_count", "total_isl", "total_osl", "total_output_tokens")

Slice = dict[str, Any]


def slices_of(document: dict[str, Any] | None) -> list[Slice]:
    """The slices in ``timeslices.json``; none where it has none, or a slice has no edges."""
    found = (document or {}).get("timeslices")
    slices = found if isinstance(found, list) else []
    edges = [one.get(edge) for one in slices if isinstance(one, dict) for edge in ("start_ns", "end_ns")]
    return slices if len(edges) == 2 * len(slices) and all(isinstance(edge, int) for edge in edges) else []


def alone(slices: Sequence[Slice], name: str, faults: Faults) -> None:
    """One slice begins where the one before it ends; rates are those of its seconds."""
    for number, (one, after) in enumerate(pairwise(slices), 1):
        if one["end_ns"] != after["start_ns"]:
            faults.add(name, f"slice {number} does not begin where the one before it ends", kind="slices that are missing")
    widths = {one["end_ns"] - one["start_ns"] for one in slices[:-1]}
    if len(widths) > 1:
        faults.add(name, "slices differ in length")
    for number, one in enumerate(slices):
        seconds = (one["end_ns"] - one["start_ns"]) / 1e9
        recomputed.rates(metrics_of(one), seconds, name, faults, f"slice {number}: ")


def against_summary(summary: dict[str, Any], slices: Sequence[Slice], name: str, faults: Faults) -> None:
    """The slices cover the phase, and their counts add up to the run's."""
    arrivals = summary.get("measurement", {}).get("arrivals", {})
    started = sum(one.get("started", 0) for one in slices)
    if "sent" in arrivals and started != arrivals["sent"]:
        faults.add(name, f"{started:,} requests started in the slices, {arrivals['sent']:,} were sent")
    ended: dict[str, int] = {}
    for one in slices:
        for kind, count in one.get("outcomes", {}).items():
            ended[kind] = ended.get(kind, 0) + count
    for kind, count in summary.get("outcomes", {}).items():
        if kind != "unfinished" and ended.get(kind, 0) != count:
            faults.add(name, f"the slices' {kind} requests are {ended.get(kind, 0):,}, the run's {count:,}")
    metrics = metrics_of(summary)
    for tag in _SUMS:
        whole = value_of(metrics, tag)
        parts = [value for one in slices if (value := value_of(metrics_of(one), tag)) is not None]
        if whole is not None and parts and sum(parts) != whole:
            faults.add(name, f"{tag} of the slices adds up to {sum(parts):g}, the run's is {whole:g}")
    window = summary.get("observation_window", {}).get("avg")
    seconds = (slices[-1]["end_ns"] - slices[0]["start_ns"]) / 1e9
    if window is not None and abs(seconds - window) > 1e-6:
        faults.add(name, f"the slices cover {seconds:g} s, the phase lasts {window:g} s")


def against_requests(slices: Sequence[Slice], records: Records, starts: Sequence[int], name: str, faults: Faults) -> None:
    """Requests and metrics of each slice, from the requests that ended in it.  *starts*: of all requests, in ns since 1970."""
    if starts:
        edges = np.array([one["start_ns"] for one in slices], dtype=np.int64)
        places = np.clip(np.searchsorted(edges, np.array(starts, dtype=np.int64), side="right") - 1, 0, None)
        for number, (one, count) in enumerate(zip(slices, np.bincount(places, minlength=len(slices)).tolist(), strict=True)):
            if one.get("started") != count:
                faults.add(name, f"slice {number}: started is {one.get('started')}, {count:,} arrivals started in it")
    metrics = [metrics_of(one) for one in slices]
    for number, of in enumerate(metrics):
        good, told = records.good_in_slice[number], value_of(of, "request_count") or 0
        if told != good:
            faults.add(name, f"slice {number}: request_count is {told:g}, {good:,} requests ended well in it")
    for tag, values in records.metrics.items():
        if values.listed:
            continue  # an element of a list counts where it happened
        by_slice = values.by_group()
        for number, of in enumerate(metrics):
            expected, sides = by_slice.get(number, ({}, []))
            if tag in of and not recomputed.is_one_number(of[tag]):
                recomputed.statistics(of[tag], f"slice {number}: {tag}", expected, sides, name, faults, listed=False)
            elif expected and tag not in of:
                what = f"slice {number}: has no {tag}, of which its requests have {expected['count']}"
                faults.add(name, what, kind="missing metrics")


def table(slices: Sequence[Slice], rows: list[list[str]], shown: Sequence[str], name: str, faults: Faults) -> None:
    """The CSV has a row for each of the *shown* statistics of the JSON, rounded to two decimals."""
    if rows[:1] != [_HEADER]:
        faults.add(name, f"does not begin with {','.join(_HEADER)}")
        return
    expected = list(_rows(slices, shown))
    if len(rows) - 1 != len(expected):
        faults.add(name, f"has {len(rows) - 1:,} rows, the JSON {len(expected):,} statistics")
        return
    for line, (row, (start, unit, stat, value)) in enumerate(zip(rows[1:], expected, strict=True), 2):
        told = [*row, *[""] * len(_HEADER)]
        if len(row) != len(_HEADER) or (told[1], told[4], told[5]) != (start, unit, stat) or told[6] != f"{value:.2f}":
            faults.add(name, "is another row than the JSON's", line, kind="other rows than the JSON")


def _rows(slices: Sequence[Slice], shown: Sequence[str]) -> Iterator[tuple[str, str, str, float]]:
    for one in slices:
        for _, entry in sorted(metrics_of(one).items()):
            for stat in shown:
                if stat in entry:
                    yield str(one["start_ns"]), str(entry["unit"]), stat, entry[stat]
