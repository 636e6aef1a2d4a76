"""Folded values to results: statistics of each metric, and what derives from them; of a phase, or of a part of it."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Protocol

import numpy as np

from aiperf.fold import Fold, Merged, Part, displayed
from aiperf.grouped import KINDS, Tally, Together
from aiperf.kept import Kept
from aiperf.metric import Analysis, Declared, Metric, RunMetric
from aiperf.metric import Fold as How
from aiperf.pipeline import CENSORED, SEEN, Catalogue
from aiperf.strangers import why
from aiperf.summary import Result
from aiperf.survival import kaplan_meier

log = logging.getLogger(__name__)

_LAST = 1_000_000
"""Behind every row of the console that says where it stands."""
_COMPLETED, _FAILED = KINDS.index("completed"), [KINDS.index(kind) for kind in ("failed", "cut", "empty", "cancelled")]


class Folded(Protocol):
    """One metric's values, of a phase or a part of it; in base units, None where there are none.

    *scale* brings statistics to the display unit.
    """

    count: int

    def sum(self) -> float | None: ...

    def least(self) -> float | None: ...

    def most(self) -> float | None: ...

    def statistics(self, scale: float) -> dict[str, float] | None: ...

    def adjusted(self, failed: int, scale: float) -> dict[str, float] | None: ...


class PhaseTotals:
    """The folds of a phase, or of a part of it, and what derives from them: the ``Totals`` that run metrics see.

    sums: of a part, by tag, sums that aren't those of its folds.  Of a metric that has values elsewhere they are zero here.
    """

    def __init__(
        self,
        listing: Catalogue,
        folds: Mapping[str, Folded],
        *,
        duration_s: float | None,
        window_s: float | None,
        valid: int,
        failed: int,
        sums: Mapping[str, float] | None = None,
    ) -> None:
        self.duration_s, self.window_s, self.valid, self.failed = duration_s, window_s, valid, failed
        self._catalogue, self._folds, self._sums = listing, folds, sums or {}
        self._derived: dict[str, float] = {}
        self._shown: dict[str, Mapping[str, float]] = {}
        self.warnings: list[str] = []

    def sum(self, tag: str) -> float | None:
        if tag in self._sums:
            return self._sums[tag]
        fold = self._folds.get(tag)
        return fold.sum() if fold is not None else None

    def count(self, tag: str) -> int:
        fold = self._folds.get(tag)
        return fold.count if fold is not None else 0

    def value(self, tag: str) -> float | None:
        if tag in self._derived:
            return self._derived[tag]
        metric, fold = self._catalogue.metrics.get(tag), self._folds.get(tag)
        if not isinstance(metric, Metric):
            return None
        if metric.fold is How.SUM:
            return self.sum(tag)
        if fold is None:
            return None
        if metric.fold is How.DISTRIBUTION:
            total = fold.sum()
            return None if total is None else total / fold.count
        return fold.least() if metric.fold is How.MIN else fold.most()

    def statistic(self, tag: str, name: str) -> float | None:
        return self._shown.get(tag, {}).get(name)

    def results(self) -> dict[str, Result]:
        """Every metric's result, in the display unit; those without a value are absent."""
        results: dict[str, Result] = {}
        for tag, metric in self._catalogue.metrics.items():
            stats = self._stats(tag, metric)
            self._shown[tag] = stats or {}
            if metric.hidden or stats is None or not all(np.isfinite(value) for value in stats.values()):
                continue
            results[tag] = _result(metric, stats)
            if self.failed and isinstance(metric, Metric) and metric.adjusted:
                worse = self._folds[tag].adjusted(self.failed, metric.scale)
                if worse is not None:
                    self._shown[f"adj_{tag}"] = worse
                    title, order = f"{metric.title} (error-adjusted)", _LAST + (metric.order or 0)
                    results[f"adj_{tag}"] = Result(f"adj_{tag}", title, metric.shown.value, worse, "", metric.group, order)
        return results

    def _stats(self, tag: str, metric: Declared) -> dict[str, float] | None:
        if isinstance(metric, RunMetric):
            try:
                found = metric.number(self)
                number = None if found is None else float(found)
            except Exception as error:  # strangers' code
                sentence = f"metric {tag} of {self._catalogue.owner(tag)} is switched off: {why(error)}"
                self.warnings.append(sentence)
                log.warning("%s", sentence, exc_info=error)
                return None
            if number is None or not math.isfinite(number):
                return None
            self._derived[tag] = number
            return {"avg": displayed(number, metric.scale)}
        if isinstance(metric, Metric) and metric.fold is How.DISTRIBUTION:
            fold = self._folds.get(tag)
            return fold.statistics(metric.scale) if fold is not None else None
        value = self.value(tag)
        return None if value is None else {"avg": displayed(value, metric.scale)}


def _result(metric: Declared, stats: dict[str, float]) -> Result:
    return Result(metric.tag, metric.title, metric.shown.value, stats, metric.short, metric.group, metric.order)


class Analyses:
    """What the analyses say of phases and of parts of them.  *kept*: (phase, tag, state) of what each reducer kept for them."""

    def __init__(self, listing: Catalogue, kept: Iterable[tuple[int, str, bytes]]) -> None:
        self._catalogue = listing
        self._states: dict[int, dict[str, list[bytes]]] = {}
        for phase, tag, state in kept:
            self._states.setdefault(phase, {}).setdefault(tag, []).append(state)
        self.warnings: list[str] = []

    def results(self, phase: int, windows: Sequence[tuple[float, float]]) -> list[dict[str, Result]]:
        """Of each part of a phase: from one instant to another, in ns since the run's start."""
        found: list[dict[str, Result]] = [{} for _ in windows]
        for tag, states in self._states.get(phase, {}).items():
            analysis = self._catalogue.metrics.get(tag)
            if not isinstance(analysis, Analysis):
                continue
            try:
                for here, results in zip(found, analysis.results(Kept(states), windows), strict=True):
                    here |= {result.tag: result for result in results}
            except Exception as error:  # strangers' code
                self.warnings.append(f"metric {tag} of {self._catalogue.owner(tag)} is switched off: {why(error)}")
                log.warning("%s", self.warnings[-1], exc_info=error)
        return found


def survival(listing: Catalogue, folds: Mapping[str, Merged]) -> dict[str, Result]:
    """Durations in which requests cut off in flight count as lasting at least as long as they had; where there were any."""
    found = {}
    for tag, metric in listing.metrics.items():
        censored = folds.get(tag + CENSORED)
        if metric.hidden or censored is None or not censored.count:
            continue
        seen = [folds[each].values() for each in (tag, tag + SEEN) if each in folds]
        ordered = np.sort(np.concatenate([np.empty(0), *seen]))
        found[tag] = _result(metric, kaplan_meier(ordered, censored.values(), metric.scale))
    return found


def parts(
    listing: Catalogue, together: Together, groups: range, seconds: Callable[[int], float | None]
) -> Iterator[tuple[int, Tally, dict[str, Result]]]:
    """Each group's requests and results; *seconds*: what its rates divide by."""
    folds: dict[int, dict[str, Part]] = {group: {} for group in groups}
    known: dict[str, float] = {}
    arrived: dict[str, dict[int, int]] = {}
    for tag, metric in listing.metrics.items():
        if not isinstance(metric, Metric):
            continue
        for group, values in together.values(tag):
            known[tag] = 0.0
            folds[group][tag] = Part(values, metric.scale, _failed(together.tally(group)) if metric.adjusted else 0)
        if metric.arriving and (amounts := together.arrived(tag)):
            arrived[tag] = amounts
    for group in groups:
        tally, here = together.tally(group), folds.pop(group)
        sums = {tag: zero for tag, zero in known.items() if tag not in here}
        sums |= {tag: float(amounts.get(group, 0)) for tag, amounts in arrived.items() if tag in known}
        totals = PhaseTotals(
            listing, here, duration_s=seconds(group), window_s=seconds(group), valid=tally.kinds.get(_COMPLETED, 0),
            failed=_failed(tally), sums=sums,
        )  # fmt: skip
        yield group, tally, totals.results()


def _failed(tally: Tally) -> int:
    return sum(tally.kinds.get(kind, 0) for kind in _FAILED)


def load_folds(states: Iterable[list[tuple[int, str, bytes]]]) -> dict[int, dict[str, Merged]]:
    """Folds of several reducers, merged, by phase and tag."""
    found: dict[int, dict[str, list[Fold]]] = {}
    for state in states:
        for phase, tag, data in state:
            found.setdefault(phase, {}).setdefault(tag, []).append(Fold.load(data))
    return {phase: {tag: Merged(folds) for tag, folds in tags.items()} for phase, tags in found.items()}
