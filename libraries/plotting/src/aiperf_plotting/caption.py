"""What a picture says of its runs: name, model, number of requests, failures, verdict."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from aiperf import PlotRun
from msgspec import Struct

from aiperf_plotting.loads import models

MOST = 4
"""Runs with a line each, more share one; and models that a line names."""
_LONGEST = 80
"""Characters of a name."""


class RunFacts(Struct, frozen=True):
    """requests: that ended, failed ones included; None where the results do not say it.

    verdict: None where the results have none, as those of other tools.  scope: the statistics that *reasons* concern; None is
    all.
    """

    name: str
    models: tuple[str, ...]
    requests: int | None
    failed: int
    cut_off: int = 0
    verdict: str | None = None
    scope: str | None = None
    reasons: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{_short(self.name)}: {_models(self.models)}, {self._outcome()}"

    def without_models(self) -> str:
        return f"{_short(self.name)}: {self._outcome()}"

    def _outcome(self) -> str:
        requests = "n unknown" if self.requests is None else f"n = {self.requests:,}"
        cut_off = f", {self.cut_off:,} cut off" if self.cut_off else ""
        scope = f" ({self.scope} statistics alone)" if self.scope else ""
        verdict = "no verdict" if self.verdict in (None, "none") else f"verdict: {self.verdict}{scope}"
        return f"{requests}, {self.failed:,} failed{cut_off}; {verdict}"


def facts(run: PlotRun) -> RunFacts:
    good, failed = run.number("request_count"), round(run.number("error_request_count") or 0)
    measurement = run.summary.get("measurement", {})
    arrivals = measurement.get("arrivals", {})
    cut_off = int(arrivals.get("aborted_in_flight", 0) + arrivals.get("unfinished", 0))
    requests = None if good is None and not failed else round(good or 0) + failed
    return RunFacts(
        run.label, models(run), requests, failed, cut_off, measurement.get("verdict"),
        measurement.get("scope"), tuple(measurement.get("reasons") or ()),
    )  # fmt: skip


def caption_of(runs: Sequence[PlotRun]) -> list[str]:
    """A line for each run, and the reasons of the verdict below a single one.

    Many share one.  Models that several runs share come last, as a small picture has no room for long names.
    """
    known = [facts(run) for run in runs]
    if 1 < len(known) <= MOST and known[0].models and len({each.models for each in known}) == 1:
        return [*(each.without_models() for each in known), _models(known[0].models)]
    if len(known) <= MOST:
        return [*map(str, known), *(f"– {reason}" for each in known[: len(known) == 1] for reason in each.reasons)]
    names = tuple(dict.fromkeys(name for each in known for name in each.models))
    counts = [each.requests for each in known if each.requests is not None]
    requests = f"n = {_between(counts)}" if counts else "n unknown"
    lost = f"{_between([each.failed for each in known])} failed"
    about = f"{len(known)} runs, {_short(known[0].name)} to {_short(known[-1].name)}"
    return [f"{about}: {requests} each, {lost}; {_verdicts(known)}", _models(names)]


def _verdicts(known: Sequence[RunFacts]) -> str:
    """The verdict that all have; else the number of each, and the names of those few that aren't as most are."""
    counts = Counter("none" if each.verdict is None else each.verdict for each in known).most_common()
    (usual, most), *others = counts
    if not others:
        return "no verdict" if usual == "none" else f"verdict of all: {usual}"
    parts = [f"{most} {usual}"]
    for verdict, count in others:
        names = ", ".join(_short(each.name) for each in known if (each.verdict or "none") == verdict)
        parts.append(f"{count} {verdict} ({names})" if count <= MOST else f"{count} {verdict}")
    return f"verdicts: {', '.join(parts)}"


def _between(counts: Sequence[int]) -> str:
    low, high = min(counts), max(counts)
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


def _models(names: Sequence[str]) -> str:
    shown = [*map(_short, names[:MOST]), *([f"{len(names) - MOST} more"] if len(names) > MOST else [])]
    return "model unknown" if not names else f"model{'' if len(names) == 1 else 's'} {', '.join(shown)}"


def _short(name: str) -> str:
    """A name, a long one cut in its middle."""
    return name if len(name) <= _LONGEST else f"{name[: _LONGEST // 2 - 1]} … {name[1 - _LONGEST // 2 :]}"
