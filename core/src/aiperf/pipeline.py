"""Metrics over batches: ordered by what they need, isolated from each other, folded per phase."""

from __future__ import annotations

import graphlib
import logging
import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from msgspec import Struct

from aiperf.columns import Column, Floats, Ragged, RecordBatch
from aiperf.endpoint import Capabilities
from aiperf.errorkinds import bounded, counted
from aiperf.exporter import Scored
from aiperf.fold import Fold, Merged, displayed
from aiperf.metric import Declared, Metric, Needs, Over, RunMetric
from aiperf.metric import Fold as How
from aiperf.plan import Plan
from aiperf.strangers import why
from aiperf.summary import Result

log = logging.getLogger(__name__)

_FAILED_OUTCOMES = (1.0, 2.0)  # journal.ERROR, journal.CANCELLED


class Catalogue:
    """The run's metrics in an order in which each comes behind what it needs; those that can't be computed are out.

    *warnings* has a sentence on each that should have been there.
    """

    def __init__(self, metrics: Iterable[tuple[str, Declared]], has: Needs, warnings: Iterable[str] = ()) -> None:
        """*metrics* are (who provides it, metric); *warnings* on those that could not even be loaded."""
        self.warnings = list(warnings)
        self._owners: dict[str, str] = {}
        fit: dict[str, Declared] = {}
        unfit: set[str] = set()
        for owner, metric in metrics:
            if metric.requires & ~has:
                unfit.add(metric.tag)
            elif metric.tag in fit:
                other = self._owners[metric.tag]
                self.warnings.append(f"metric {metric.tag} of {owner} is left out: {other} has one of that name")
            else:
                fit[metric.tag], self._owners[metric.tag] = metric, owner
        self.metrics = self._ordered(fit, unfit - fit.keys())

    def owner(self, tag: str) -> str:
        return self._owners[tag]

    def switch_off(self, tags: Iterable[str]) -> None:
        """Take these out, and what needs them."""
        off = set(tags)
        for tag, metric in self.metrics.items():  # each comes behind what it needs
            if off.intersection(metric.needs):
                off.add(tag)
        self.metrics = {tag: metric for tag, metric in self.metrics.items() if tag not in off}

    def _ordered(self, fit: dict[str, Declared], unfit: set[str]) -> dict[str, Declared]:
        """Behind their needs; a metric with a missing need, or in a circle, goes, and then those that need it.

        What needs something that doesn't apply to this run doesn't apply either, and nothing is said of it.
        """
        while True:
            missing = {tag: need for tag, metric in fit.items() for need in metric.needs if need not in fit}
            if missing:
                for tag, need in missing.items():
                    if need in unfit:
                        unfit.add(tag)
                    else:
                        owner = self._owners[tag]
                        self.warnings.append(f"metric {tag} of {owner} is left out: it needs {need}, which isn't there")
                    del fit[tag]
                continue
            try:
                order = list(graphlib.TopologicalSorter({tag: fit[tag].needs for tag in fit}).static_order())
            except graphlib.CycleError as error:
                circle: list[str] = error.args[1]
                self.warnings.append(f"metrics that need each other are left out: {' → '.join(circle)}")
                for tag in set(circle):
                    del fit[tag]
                continue
            return {tag: fit[tag] for tag in order}


def catalogue(plan: Plan, capabilities: Capabilities) -> Catalogue:
    """The plan's metrics; a package that can't be imported is left out with one line."""
    found: list[tuple[str, Declared]] = []
    warnings = []
    for ref in plan.metrics:
        owner = f"{ref.distribution} {ref.version}"
        try:
            metric = ref.load()()
            _declared(metric)
        except Exception as error:  # noqa: BLE001  # strangers' code
            warnings.append(f"metric {ref.name} of {owner} is left out: {why(error)}")
            continue
        found.append((owner, metric))
    return Catalogue(found, needs_of(plan, capabilities), warnings)


def _declared(metric: object) -> None:
    """Hold a metric to what it must say of itself, before anything relies on it."""
    if not isinstance(metric, Metric | RunMetric):
        raise TypeError(f"{type(metric).__name__} is neither a Metric nor a RunMetric")
    for name in ("tag", "title", "unit"):
        if not hasattr(metric, name):
            raise TypeError(f"{type(metric).__name__} has no {name}")
    _ = metric.scale  # units that don't measure the same thing


def needs_of(plan: Plan, capabilities: Capabilities) -> Needs:
    """What the run has."""
    has = Needs.NOTHING
    if plan.streaming:
        has |= Needs.STREAMING
    if capabilities.produces_tokens:
        has |= Needs.TOKENS_OUT
    if capabilities.tokenizes_input:
        has |= Needs.TOKENS_IN
    if not plan.use_server_token_count and plan.tokenizer is not None:
        has |= Needs.CLIENT_TOKENS
    if any(phase.paced for phase in plan.phases if phase.kind == "profiling"):
        has |= Needs.PACED
    return has


class Census(Struct):
    """What became of a phase's requests: counts by outcome; of each error, how often and when first; extremes.

    Times are in ns since the run's start.  instants: distinct arrivals of content; coalesced: pieces merged into those.
    silent: good answers with which the server sent no token counts; clamped: those that say more reasoning than output.
    """

    outcomes: dict[int, int] = {}
    errors: dict[str, tuple[int, float]] = {}
    first_start_ns: float = math.inf
    last_start_ns: float = -math.inf
    last_end_ns: float = -math.inf
    coalesced: int = 0
    instants: int = 0
    reconnected: int = 0
    silent: int = 0
    clamped: int = 0

    def add(self, batch: RecordBatch) -> None:
        for outcome, count in zip(*np.unique(batch["outcome"], return_counts=True), strict=True):
            self.outcomes[int(outcome)] = self.outcomes.get(int(outcome), 0) + int(count)
        ends = batch["ended_ns"]
        for i, error in enumerate(batch.texts["error"]):
            if error is not None:
                counted(self.errors, error, 1, float(ends[i]))
        self.errors = bounded(self.errors)
        self.first_start_ns = min(self.first_start_ns, float(np.nanmin(batch["started_ns"])))
        self.last_start_ns = max(self.last_start_ns, float(np.nanmax(batch["started_ns"])))
        if not np.isnan(ends).all():
            self.last_end_ns = max(self.last_end_ns, float(np.nanmax(ends)))
        self.coalesced += int(batch["coalesced"].sum())
        self.instants += len(batch.lists("chunk_ns").values)
        prompt, completion = batch["usage_prompt_tokens"], batch["usage_completion_tokens"]
        self.silent += int((batch.valid & np.isnan(prompt) & np.isnan(completion)).sum())
        self.clamped += int((batch.valid & (batch["usage_reasoning_tokens"] > completion)).sum())
        self.reconnected += int(batch["reconnected"].sum())

    def merge(self, other: Census) -> None:
        for outcome, count in other.outcomes.items():
            self.outcomes[outcome] = self.outcomes.get(outcome, 0) + count
        for error, (count, first_ns) in other.errors.items():
            counted(self.errors, error, count, first_ns)
        self.errors = bounded(self.errors)
        self.first_start_ns = min(self.first_start_ns, other.first_start_ns)
        self.last_start_ns = max(self.last_start_ns, other.last_start_ns)
        self.last_end_ns = max(self.last_end_ns, other.last_end_ns)
        self.coalesced += other.coalesced
        self.instants += other.instants
        self.silent += other.silent
        self.clamped += other.clamped
        self.reconnected += other.reconnected


SLIP, ARRIVAL = "·slip", "·arrival"
"""The kernel's own folds beside the metrics': start behind due, in ns; numbers of the arrivals that were sent."""


class Pipeline:
    """Scores batches and folds their values, per phase.  *spool* holds values that memory should not."""

    def __init__(self, listing: Catalogue, spool: Path, owner: str) -> None:
        self._catalogue = listing
        self._metrics = {tag: metric for tag, metric in listing.metrics.items() if isinstance(metric, Metric)}
        self._spool, self._owner = spool, owner
        self._folds: dict[tuple[int, str], Fold] = {}
        self.off: dict[str, str] = {}
        """Metrics that failed, with the sentence on each."""
        self.census: dict[int, Census] = {}
        for stale in spool.glob(f"fold-{owner}-*"):
            stale.unlink()

    def score(self, batch: RecordBatch) -> Scored:
        """Every metric's column over the batch."""
        values: dict[str, Column] = {}
        rows = {
            Over.VALID: batch.valid,
            Over.FAILED: np.isin(batch["outcome"], _FAILED_OUTCOMES),
            Over.ALL: np.ones(len(batch), dtype=bool),
        }
        for tag, metric in self._metrics.items():
            if tag in self.off or any(need not in values for need in metric.needs):
                continue
            allowed = {need: values[need] for need in metric.needs}

            def resolve(name: str, allowed: Mapping[str, Column] = allowed) -> Column:
                if name in allowed:
                    return allowed[name]
                raise KeyError(f"{name!r} is neither a column of the kernel nor in 'needs'")

            try:
                column = metric.column(batch.viewed(resolve))
                values[tag] = _still(_masked(_checked(column, len(batch)), rows[metric.over]))
            except Exception as error:  # strangers' code
                self.off[tag] = f"metric {tag} of {self._catalogue.owner(tag)} is switched off: {why(error)}"
                log.warning("%s", self.off[tag], exc_info=error)
        return Scored(batch, values, self._metrics)

    def feed(self, scored: Scored) -> None:
        """Fold the scored batch."""
        batch = scored.batch
        phases = batch["phase"]
        present = np.unique(phases)
        for phase in present:
            part_of = batch if len(present) == 1 else batch.select(phases == phase)
            self.census.setdefault(int(phase), Census()).add(part_of)
            self._fold(int(phase), SLIP, listed=False).add(part_of["started_ns"] - part_of["due_ns"])
            self._fold(int(phase), ARRIVAL, listed=False).add(part_of["n"])
        for tag, column in scored.values.items():
            for phase in present:
                if isinstance(column, Ragged):
                    part = column.values if len(present) == 1 else column.take(np.flatnonzero(phases == phase)).values
                else:
                    part = column if len(present) == 1 else column[phases == phase]
                self._fold(int(phase), tag, listed=isinstance(column, Ragged)).add(part)

    def _fold(self, phase: int, tag: str, *, listed: bool) -> Fold:
        fold = self._folds.get((phase, tag))
        if fold is None:
            fold = Fold(self._spool / f"fold-{self._owner}-{len(self._folds)}")
            self._folds[phase, tag] = fold
        fold.listed |= listed
        return fold

    def dump(self) -> list[tuple[int, str, bytes]]:
        """(phase, tag, state) of every fold."""
        return [(phase, tag, fold.dump()) for (phase, tag), fold in self._folds.items()]


def _checked(column: Column, count: int) -> Column:
    """A metric's column, held to its contract; what isn't finite is absent."""
    if isinstance(column, Ragged):
        offsets = column.offsets
        if len(column) != count or len(column.at_ns) != len(column.values):
            raise ValueError(f"{len(column)} lists for {count} requests")
        if offsets[0] != 0 or offsets[-1] != len(column.values) or (np.diff(offsets) < 0).any():
            raise ValueError("offsets that don't cut the values into lists")
        known = np.isfinite(column.values)
        if not known.all():
            ends = np.concatenate(([0], np.cumsum(known)))
            column = Ragged(column.values[known], ends[offsets].astype(np.int64), column.at_ns[known])
        return column
    array: Floats = np.asarray(column, dtype=np.float64)
    if array.shape != (count,):
        raise ValueError(f"shape {array.shape} for {count} requests")
    infinite = np.isinf(array)
    return np.where(infinite, np.nan, array) if infinite.any() else array


def _masked(column: Column, rows: Any) -> Column:
    """Absent outside *rows*."""
    if rows.all():
        return column
    if not isinstance(column, Ragged):
        return np.where(rows, column, np.nan)
    lengths = np.where(rows, column.offsets[1:] - column.offsets[:-1], 0)
    keep = np.repeat(rows, column.offsets[1:] - column.offsets[:-1])
    return Ragged(column.values[keep], np.concatenate(([0], np.cumsum(lengths))).astype(np.int64), column.at_ns[keep])


def _still(column: Column) -> Column:
    """The same to look at, and not to change: others read it, too."""
    if isinstance(column, Ragged):
        return Ragged(_still_array(column.values), column.offsets, _still_array(column.at_ns))
    return _still_array(column)


def _still_array(array: Floats) -> Floats:
    view = array.view()
    view.flags.writeable = False
    return view


class PhaseTotals:
    """One phase's folds and what derives from them: the ``Totals`` that run metrics see."""

    def __init__(
        self,
        listing: Catalogue,
        folds: dict[str, Merged],
        *,
        duration_s: float | None,
        window_s: float | None,
        valid: int,
        failed: int,
    ) -> None:
        self.duration_s, self.window_s, self.valid, self.failed = duration_s, window_s, valid, failed
        self._catalogue, self._folds = listing, folds
        self._derived: dict[str, float] = {}
        self.warnings: list[str] = []

    def sum(self, tag: str) -> float | None:
        fold = self._folds.get(tag)
        return fold.sum() if fold is not None else None

    def count(self, tag: str) -> int:
        fold = self._folds.get(tag)
        return fold.count if fold is not None else 0

    def value(self, tag: str) -> float | None:
        if tag in self._derived:
            return self._derived[tag]
        metric, fold = self._catalogue.metrics.get(tag), self._folds.get(tag)
        if fold is None or not isinstance(metric, Metric):
            return None
        if metric.fold is How.DISTRIBUTION:
            total = fold.sum()
            return None if total is None else total / fold.count
        return {How.SUM: fold.sum, How.MIN: fold.least, How.MAX: fold.most}[metric.fold]()

    def results(self) -> dict[str, Result]:
        """Every metric's result, in the display unit; those without a value are absent."""
        results: dict[str, Result] = {}
        for tag, metric in self._catalogue.metrics.items():
            stats = self._stats(tag, metric)
            if stats is not None and not metric.hidden and all(np.isfinite(value) for value in stats.values()):
                results[tag] = Result(tag, metric.title, metric.shown.value, stats, metric.short, metric.group, metric.order)
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


def load_folds(states: Iterable[list[tuple[int, str, bytes]]]) -> dict[int, dict[str, Merged]]:
    """Folds of several reducers, merged, by phase and tag."""
    found: dict[int, dict[str, list[Fold]]] = {}
    for state in states:
        for phase, tag, data in state:
            found.setdefault(phase, {}).setdefault(tag, []).append(Fold.load(data))
    return {phase: {tag: Merged(folds) for tag, folds in tags.items()} for phase, tags in found.items()}
