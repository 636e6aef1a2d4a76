"""The share of requests that meets objectives, run by run, and the highest load at which enough do."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from aiperf import AiperfError, PlotRun
from aiperf_plotting.loads import load_label, load_unit, loads
from aiperf_plotting.words import named, unit_of
from msgspec import Struct


class RequestLimit(Struct, frozen=True):
    """A limit of a metric of requests: at most, or of a throughput at least."""

    tag: str
    limit: float

    @property
    def at_least(self) -> bool:
        return "throughput" in self.tag or "goodput" in self.tag


def parsed(texts: Sequence[str]) -> list[RequestLimit]:
    """Objectives, of ``time_to_first_token:300``.

    Raises:
        AiperfError: A text is none.
    """
    made = []
    for text in texts:
        tag, _, limit = text.rpartition(":")
        try:
            value = float(limit)
        except ValueError:
            value = math.nan
        if not tag or not math.isfinite(value):
            raise AiperfError(f"{text[:100]!r} is no objective", "write a metric and its limit, as time_to_first_token:300")
        made.append(RequestLimit(tag, value))
    return made


def met(run: PlotRun, objectives: Sequence[RequestLimit], cut_off: int) -> tuple[int, int]:
    """Requests that meet all objectives, and all requests: those that failed, were cut off or lack a value meet none."""
    tags = [each.tag for each in objectives]
    count = len(run.requests(tags, failed=True)) + cut_off
    good = np.ones(len(run.column(tags[0])), dtype=bool)
    for each in objectives:
        values = run.column(each.tag)
        with np.errstate(invalid="ignore"):
            good &= values >= each.limit if each.at_least else values <= each.limit
    return int(good.sum()), count


def judged(runs: Sequence[tuple[str, PlotRun, int]], objectives: Sequence[RequestLimit], share: float) -> dict[str, Any]:
    """What the page shows.  runs: name, run, and requests that were cut off.  share: in %, of requests that must meet all.

    ``highest``: the run with the highest load at which they do; None where there is none, or loads can't be compared.
    """
    unit = load_unit([run for _, run, _ in runs])
    rows, failures = [], []
    for name, run, cut_off in runs:
        try:
            good, count = met(run, objectives, cut_off)
        except AiperfError as error:
            failures.append(f"the run {run.label} is left out: {error.message}")
            continue
        if count == 0:
            failures.append(f"the run {run.label} has no file of requests, and no share can be told")
            continue
        load = None if unit is None else loads(run)[unit]
        rows.append({
            "id": name, "label": run.label, "load": load, "load_label": load_label(run, unit), "good": good, "count": count,
            "share": 100.0 * good / count, "meets": 100.0 * good >= share * count,
        })  # fmt: skip
    rows.sort(key=lambda row: (row["load"] is None, row["load"] or 0.0))
    meeting = [row for row in rows if row["meets"] and row["load"] is not None]
    return {
        "runs": rows, "failures": failures, "share": share, "highest": meeting[-1] if meeting else None,
        "objectives": [
            {"tag": each.tag, "limit": each.limit, "at_least": each.at_least, "name": named(each.tag),
             "unit": unit_of(each.tag, [run for _, run, _ in runs])} for each in objectives
        ],
    }  # fmt: skip


__all__ = ["RequestLimit", "judged", "met", "parsed"]
