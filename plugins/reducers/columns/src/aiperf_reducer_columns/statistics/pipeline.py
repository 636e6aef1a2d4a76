"""Metrics over batches: each isolated from the others, their values folded per phase."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Protocol, TypeAlias

import numpy as np
from aiperf.parts import journal
from aiperf.sdk.columns import BOUND_COLUMNS, POLL_GAP, TREE_COLUMNS, Bounds, Column, Floats, Ragged, RecordBatch
from aiperf.sdk.metric import Analysis, Metric, MetricDeclaration, Over
from aiperf.sdk.raw_values import RawValueCollector
from msgspec.structs import astuple

from aiperf_reducer_columns.statistics.by_text import ByText
from aiperf_reducer_columns.statistics.catalogue import Catalogue
from aiperf_reducer_columns.statistics.fold import ESTIMATE, HIGH, LOW, SLACK, Samples
from aiperf_reducer_columns.statistics.grouped import Grouped, Grouping, Groups
from aiperf_reducer_columns.statistics.phase_counts import PhaseCounts
from aiperf_reducer_columns.statistics.plugin_folds import FoldState, PluginFolds

_FAILED_OUTCOMES = (journal.ERROR, journal.CANCELLED)
LATE, SLIP, HELD, ARRIVAL, TURNAROUND, POLLS = "·late", "·slip", "·held", "·arrival", "·turnaround", "·polls"
"""The kernel's own folds: delays of starts behind due times (ns); the client's own part of them (ns); waits for a slot or for
the answer before (ns); numbers of the arrivals that were sent; the client's time between two requests in one slot (ns); the
column POLL_GAP of good requests (ns)."""

SEEN, CENSORED = "·seen", "·censored"
"""Suffixes of a metric's tag, for requests cut off in flight: values that are known; durations so far of the others."""
_TREES = frozenset(TREE_COLUMNS)
_CUT_OFF = (journal.ABORTED, journal.UNFINISHED)


class Watch(Protocol):
    """What folds values for live numbers."""

    def add(self, phase: int, tag: str, values: Floats, *, listed: bool) -> None: ...

    def add_to_plugin_fold(self, phase: int, tag: str, values: Floats) -> None: ...

    def add_failures(self, phase: int, batch: RecordBatch) -> None: ...


Groupings: TypeAlias = Mapping[int, Sequence[Grouping]]


class Pipeline:
    """Scores batches and folds their values, per phase.  *spool*: folder for values beyond the bounds in memory."""

    def __init__(
        self, catalogue: Catalogue, spool: Path, owner: str, groupings: Groupings | None = None, watch: Watch | None = None
    ) -> None:
        """*groupings*: further folds of a phase's requests, by its index.  *watch*: folds the values for live numbers, too."""
        self._catalogue, self._watch_live = catalogue, watch
        every = {tag: metric for tag, metric in catalogue.metrics.items() if isinstance(metric, Metric)}
        self._metrics = {tag: metric for tag, metric in every.items() if watch is not None or not metric.watched}
        self._analyses = {tag: metric for tag, metric in catalogue.metrics.items() if isinstance(metric, Analysis)}
        self._collectors: dict[tuple[int, str], RawValueCollector] = {}
        self._spool, self._owner = spool, owner
        self._folds: dict[tuple[int, str], Samples] = {}
        self.off: dict[str, str] = {}
        """Metrics that failed, with a sentence on each."""
        self.counts: dict[int, PhaseCounts] = {}
        self.begins_ns: dict[int, float] = {}
        """When each phase began, in ns since the run's start; must be known before its first batch."""
        self._groupings = groupings or {}
        self._groups: dict[tuple[int, str], Groups] = {}
        self._plugin_folds = PluginFolds(catalogue, self.off)
        for stale in spool.glob(f"fold-{owner}-*"):
            stale.unlink()

    def score(self, batch: RecordBatch) -> RecordBatch:
        """The batch with every metric's column."""
        values: dict[str, Column] = {}
        rows = {
            Over.VALID: batch.valid,
            Over.FAILED: np.isin(batch["outcome"], _FAILED_OUTCOMES),
            Over.ALL: np.ones(len(batch), dtype=bool),
        }
        cut = np.isin(batch["outcome"], _CUT_OFF)
        cut_off: dict[str, Floats] = {}
        bounds: dict[str, Bounds] = {}
        estimates = BOUND_COLUMNS[0] in batch.columns or bool(np.isfinite(batch["unreadable_ns"]).any())
        for tag, metric in self._metrics.items():
            if tag in self.off or _lacks(metric, batch, values):
                continue
            allowed = {need: values[need] for need in metric.needs if need not in batch.columns}

            def resolve(name: str, allowed: Mapping[str, Column] = allowed) -> Column:
                if name in allowed:
                    return allowed[name]
                raise KeyError(f"{name!r} is neither a column of the kernel nor in 'needs'")

            with self._catalogue.isolated(tag, partial(self.off.__setitem__, tag)):
                view = batch.viewed(resolve, {need: bounds[need] for need in metric.needs if need in bounds})
                column = metric.column(view)
                values[tag] = _checked(column, rows[metric.over])
                if estimates and (estimated := metric.bounds(view)) is not None:
                    bounds[tag] = Bounds(*(_checked(part, rows[metric.over]) for part in astuple(estimated)))
                if metric.since is not None and not isinstance(column, Ragged) and cut.any():
                    cut_off[tag] = np.where(cut & np.isfinite(column), column, np.nan)
        return batch.with_metrics(values, self._metrics, cut_off, bounds)

    def feed(self, scored: RecordBatch) -> None:
        """Fold the values of a batch that has its metrics."""
        phases = scored["phase"]
        present = np.unique(phases)
        for phase in present.astype(np.int64).tolist():
            batch = scored if len(present) == 1 else scored.select(phases == phase)
            for tag, column in batch.values.items():
                values, listed = (column.values, True) if isinstance(column, Ragged) else (column, False)
                if tag in self._plugin_folds.kinds:
                    self._plugin_folds.add(phase, tag, values)
                    if self._watch_live is not None and tag not in self.off:
                        self._watch_live.add_to_plugin_fold(phase, tag, values)
                    continue
                if tag in batch.bounds:
                    values = self._take_estimates(phase, tag, values, batch.bounds[tag], listed=listed)
                self._fold(phase, tag, listed=listed).add(values)
                if self._watch_live is not None:
                    self._watch_live.add(phase, tag, values, listed=listed)
            self._count(phase, batch)
            self._watch(phase, batch)
            self._collect(phase, batch)
            self._group(phase, batch)

    def _take_estimates(self, phase: int, tag: str, values: Floats, bounds: Bounds, *, listed: bool) -> Floats:
        """Fold the values that are estimates, and their bounds; gives the others."""
        low, high, slack = (part.values if isinstance(part, Ragged) else part for part in astuple(bounds))
        estimated = low < high
        if not estimated.any():
            return values
        for suffix, part in ((ESTIMATE, values), (LOW, low), (HIGH, high), (SLACK, slack)):
            self._add(phase, tag + suffix, part[estimated], listed=listed)
        return values[~estimated]

    def _count(self, phase: int, batch: RecordBatch) -> None:
        """Count the requests, and fold the kernel's own values."""
        self.counts.setdefault(phase, PhaseCounts()).add(batch)
        if self._watch_live is not None:
            self._watch_live.add_failures(phase, batch)
        late, held = batch["started_ns"] - batch["due_ns"], batch["held_ns"]
        self._add(phase, LATE, late)
        self._add(phase, SLIP, late - held)
        self._fold(phase, HELD).add(np.where(held > 0, held, np.nan))
        self._fold(phase, ARRIVAL).add(batch["n"])
        self._fold(phase, TURNAROUND).add(batch["turnaround_ns"])
        if POLL_GAP in batch.columns:
            self._fold(phase, POLLS).add(np.where(batch.valid, batch[POLL_GAP], np.nan))

    def _group(self, phase: int, batch: RecordBatch) -> None:
        """Fold the values by slice, URL and text."""
        own = self._plugin_folds.kinds
        for grouping in self._groupings.get(phase, ()):
            if isinstance(grouping, ByText) and grouping.text not in batch.texts:
                continue
            wanted = grouping.tags if grouping.tags is not None else batch.values.keys()
            values = {tag: column for tag, column in batch.values.items() if tag in wanted and tag not in own}
            key, begin_ns = (phase, grouping.name), self.begins_ns.get(phase, 0.0)
            if key not in self._groups:
                spool = str(self._spool / f"fold-{self._owner}-{phase}-by-{len(self._groups)}")
                self._groups[key] = Groups(grouping, phase, begin_ns, spool)
            self._groups[key].add(batch, values, self._metrics)
            for tag in own.keys() & batch.values.keys() & wanted:
                column = batch.values[tag]
                if isinstance(column, Ragged):
                    elements = grouping.elements(batch, column, begin_ns)
                    self._plugin_folds.add(phase, tag, column.values, grouping.name, elements)
                else:
                    self._plugin_folds.add(phase, tag, column, grouping.name, grouping.ends(batch, begin_ns))
            if isinstance(grouping, ByText):
                self._plugin_folds.drop(phase, grouping.name, grouping.dropped)

    def _watch(self, phase: int, batch: RecordBatch) -> None:
        """Fold durations of requests that were cut off in flight."""
        cut = np.isin(batch["outcome"], _CUT_OFF)
        if not cut.any():
            return
        for tag, column in batch.cut_off.items():
            metric = self._metrics[tag]
            assert metric.since is not None  # only such metrics are in cut_off
            known = cut & np.isfinite(column) if metric.early else np.zeros(len(batch), dtype=bool)
            self._fold(phase, tag + SEEN).add(column[known])
            self._fold(phase, tag + CENSORED).add((batch["ended_ns"] - batch[metric.since])[cut & ~known])

    def _collect(self, phase: int, batch: RecordBatch) -> None:
        """Collect the values of each request that analyses read."""
        for tag, analysis in self._analyses.items():
            if tag in self.off or _lacks(analysis, batch, batch.values) or (_of_trees(analysis) and not _has_trees(batch)):
                continue
            if (phase, tag) not in self._collectors:
                path = self._spool / f"fold-{self._owner}-{phase}-{tag}"
                self._collectors[phase, tag] = RawValueCollector(path, analysis.keeps, analysis.lists)
            with self._catalogue.isolated(tag, partial(self.off.__setitem__, tag), passing=(OSError,)):
                self._collectors[phase, tag].add(batch, batch.values)

    def _add(self, phase: int, tag: str, values: Floats, *, listed: bool = False) -> None:
        self._fold(phase, tag, listed=listed).add(values)
        if self._watch_live is not None:
            self._watch_live.add(phase, tag, values, listed=listed)

    def _fold(self, phase: int, tag: str, *, listed: bool = False) -> Samples:
        fold = self._folds.get((phase, tag))
        if fold is None:
            fold = self._folds[phase, tag] = Samples(self._spool / f"fold-{self._owner}-{len(self._folds)}")
        fold.listed |= listed
        return fold

    def folds(self) -> list[tuple[int, str, Samples]]:
        """The values of every fold, with its phase and tag."""
        return [(phase, tag, fold) for (phase, tag), fold in self._folds.items()]

    def dump_plugin_folds(self) -> list[FoldState]:
        return self._plugin_folds.dump()

    def dump_raw_values(self) -> list[tuple[int, str, bytes]]:
        """(phase, tag, state) of the values kept for analyses."""
        return [(phase, tag, keeper.dump()) for (phase, tag), keeper in self._collectors.items() if tag not in self.off]

    def groups(self) -> list[Grouped]:
        return [groups.grouped for groups in self._groups.values()]


def _lacks(metric: MetricDeclaration, batch: RecordBatch, values: Mapping[str, Column]) -> bool:
    """Whether something that the metric needs failed, or isn't there."""
    return any(need not in values and need not in batch.columns for need in metric.needs)


def _of_trees(analysis: Analysis) -> bool:
    """Whether the analysis is made of runs with trees alone."""
    return not _TREES.isdisjoint(analysis.keeps)


def _has_trees(batch: RecordBatch) -> bool:
    return batch.columns.keys() >= _TREES


def _checked(column: Column, rows: Any) -> Column:
    """A metric's column, held to its contract: read-only, absent outside *rows* and where it isn't finite.

    Raises:
        ValueError: It doesn't have one value, or one list, per request.
    """
    count = len(rows)
    if not isinstance(column, Ragged):
        array: Floats = np.asarray(column, dtype=np.float64)
        if array.shape != (count,):
            raise ValueError(f"shape {array.shape} for {count} requests")
        infinite = np.isinf(array)
        if infinite.any() or not rows.all():
            array = np.where(rows & ~infinite, array, np.nan)
        return _read_only(array)
    offsets = column.offsets
    if len(column) != count or len(column.at_ns) != len(column.values):
        raise ValueError(f"{len(column)} lists for {count} requests")
    if offsets[0] != 0 or offsets[-1] != len(column.values) or (np.diff(offsets) < 0).any():
        raise ValueError("offsets that don't cut the values into lists")
    kept = np.isfinite(column.values)
    if not rows.all():
        kept &= np.repeat(rows, np.diff(offsets))
    if not kept.all():
        ends = np.concatenate(([0], np.cumsum(kept)))
        column = Ragged(column.values[kept], ends[offsets].astype(np.int64), column.at_ns[kept])
    return Ragged(_read_only(column.values), column.offsets, _read_only(column.at_ns))


def _read_only(array: Floats) -> Floats:
    """A view that can't be written: other metrics and exporters read the same values."""
    view = array.view()
    view.flags.writeable = False
    return view
