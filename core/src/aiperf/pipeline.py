"""Metrics over batches: ordered by what they need, isolated from each other, folded per phase."""

from __future__ import annotations

import contextlib
import graphlib
import logging
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from msgspec import Struct

from aiperf import environment, journal
from aiperf.columns import Column, Floats, Ints, Ragged, RecordBatch
from aiperf.descriptor import PluginRef
from aiperf.endpoint import Capabilities
from aiperf.errorkinds import bounded, counted
from aiperf.errors import ConfigError
from aiperf.exporter import Scored
from aiperf.fold import Fold
from aiperf.grouped import Grouped, Grouping, Groups, kinds
from aiperf.kept import Keeper
from aiperf.metric import Analysis, Declared, Metric, MetricFamily, Needs, Over, RunMetric
from aiperf.plan import Plan
from aiperf.strangers import why

log = logging.getLogger(__name__)

_FAILED_OUTCOMES = (1.0, 2.0)  # journal.ERROR, journal.CANCELLED


class Catalogue:
    """The run's metrics in an order in which each comes behind what it needs; those that can't be computed are out.

    *warnings* has a sentence on each that should have been there.
    """

    def __init__(self, metrics: Iterable[tuple[str, Declared]], has: Needs, warnings: Iterable[str] = ()) -> None:
        """*metrics* are (who provides it, metric); *warnings* on those that could not even be loaded."""
        self.warnings = list(warnings)
        self.unfit: dict[str, Needs] = {}
        """Metrics that don't apply to this run, and what they lack."""
        self._owners: dict[str, str] = {}
        fit: dict[str, Declared] = {}
        for owner, metric in metrics:
            if lacking := metric.requires & ~has:
                self.unfit[metric.tag] = lacking
            elif metric.tag in fit:
                other = self._owners[metric.tag]
                self.warnings.append(f"metric {metric.tag} of {owner} is left out: {other} has one of that name")
            else:
                fit[metric.tag], self._owners[metric.tag] = metric, owner
        self.metrics = self._ordered(fit)

    def owner(self, tag: str) -> str:
        return self._owners[tag]

    def switch_off(self, tags: Iterable[str]) -> None:
        """Take these out, and what needs them."""
        off = set(tags)
        for tag, metric in self.metrics.items():  # each comes behind what it needs
            if off.intersection(metric.needs):
                off.add(tag)
        self.metrics = {tag: metric for tag, metric in self.metrics.items() if tag not in off}

    def _ordered(self, fit: dict[str, Declared]) -> dict[str, Declared]:
        """Behind their needs; a metric with a missing need, or in a circle, goes, and then those that need it.

        What needs something that doesn't apply to this run doesn't apply either, and nothing is said of it.
        """
        while True:
            missing = {tag: need for tag, metric in fit.items() for need in metric.needs if need not in fit}
            if missing:
                for tag, need in missing.items():
                    if need in self.unfit:
                        self.unfit[tag] = self.unfit[need]
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
    """The plan's metrics; a package that can't be imported is left out with one line.

    Raises:
        ConfigError: A metric can't be what its options, or its variables, say.
    """
    has = needs_of(plan, capabilities)
    found: list[tuple[str, Declared]] = []
    families: list[tuple[PluginRef, MetricFamily]] = []
    warnings: list[str] = []
    for ref in plan.metrics:
        with _left_out(ref, warnings):
            options = plan.plugin_options(ref)
            made = ref.load()() if options is None else ref.load()(options)
            if isinstance(made, MetricFamily):
                families.append((ref, made))
            else:
                _declared(made)
                found.append((_owner(ref), made))
    alone = Catalogue(found, has, warnings)
    more: list[tuple[str, Declared]] = []
    for ref, family in families:
        with _left_out(ref, warnings):
            given = list(family.metrics(alone.metrics, alone.unfit))
            for metric in given:
                _declared(metric)
            more += [(_owner(ref), metric) for metric in given]
    return Catalogue([*found, *more], has, warnings) if families else alone


def _owner(ref: PluginRef) -> str:
    return f"{ref.distribution} {ref.version}"


@contextlib.contextmanager
def _left_out(ref: PluginRef, warnings: list[str]) -> Iterator[None]:
    """What a stranger's metric raises becomes a line of *warnings*."""
    try:
        yield
    except ConfigError:
        raise
    except (Exception, SystemExit) as error:  # noqa: BLE001  # a stranger's module may raise anything while it is imported
        warnings.append(f"metric {ref.name} of {_owner(ref)} is left out: {why(error)}")


def _declared(metric: object) -> None:
    """Hold a metric to what it must say of itself, before anything relies on it."""
    if not isinstance(metric, Metric | RunMetric | Analysis):
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
    if any(phase.replay is not None for phase in plan.phases):
        has |= Needs.REPLAYED
    if environment.experimental():
        has |= Needs.EXPERIMENTAL
    return has


_OPENING = 8
"""Requests of a phase that are remembered as its first."""


class Census(Struct):
    """What became of a phase's requests: counts by outcome; of each error, how often and when first; extremes.

    Times are in ns since the run's start.  instants: distinct arrivals of content; coalesced: pieces merged into those.
    kinds: counts by :data:`aiperf.grouped.KINDS`.
    silent: good answers with which the server sent no token counts; clamped: those that say more reasoning than output;
    hidden_reasoning: those that count reasoning and show none.  prompt_tokens, cached_tokens: by the server, of good answers
    with which it says what came from its prefix cache.  opening: start and time to the first token, or the end, of the
    first good requests.
    """

    outcomes: dict[int, int] = {}
    kinds: dict[int, int] = {}
    errors: dict[str, tuple[int, float]] = {}
    first_start_ns: float = math.inf
    last_start_ns: float = -math.inf
    last_end_ns: float = -math.inf
    coalesced: int = 0
    instants: int = 0
    reconnected: int = 0
    silent: int = 0
    clamped: int = 0
    hidden_reasoning: int = 0
    prompt_tokens: int = 0
    cached_tokens: int = 0
    opening: list[tuple[float, float]] = []

    def add(self, batch: RecordBatch) -> None:
        for outcome, count in zip(*np.unique(batch["outcome"], return_counts=True), strict=True):
            self.outcomes[int(outcome)] = self.outcomes.get(int(outcome), 0) + int(count)
        for kind, count in zip(*np.unique(kinds(batch), return_counts=True), strict=True):
            self.kinds[int(kind)] = self.kinds.get(int(kind), 0) + int(count)
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
        reasoned = batch["usage_reasoning_tokens"]
        self.clamped += int((batch.valid & (reasoned > completion)).sum())
        at_once = batch["first_output_ns"] == batch["first_token_ns"]
        self.hidden_reasoning += int((batch.valid & (reasoned > 0) & at_once).sum())
        told = batch.valid & ~np.isnan(batch["usage_cached_tokens"]) & ~np.isnan(prompt)
        self.prompt_tokens += int(prompt[told].sum())
        self.cached_tokens += int(batch["usage_cached_tokens"][told].sum())
        self._open(batch)
        self.reconnected += int(batch["reconnected"].sum())

    def _open(self, batch: RecordBatch) -> None:
        started, first = batch["started_ns"][batch.valid], batch["first_token_ns"][batch.valid]
        took = np.where(np.isnan(first), batch["ended_ns"][batch.valid], first) - started
        earliest = np.argsort(started, kind="stable")[:_OPENING]
        these = zip(started[earliest].tolist(), took[earliest].tolist(), strict=True)
        self.opening = sorted([*self.opening, *these])[:_OPENING]

    def merge(self, other: Census) -> None:
        for outcome, count in other.outcomes.items():
            self.outcomes[outcome] = self.outcomes.get(outcome, 0) + count
        for kind, count in other.kinds.items():
            self.kinds[kind] = self.kinds.get(kind, 0) + count
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
        self.hidden_reasoning += other.hidden_reasoning
        self.prompt_tokens += other.prompt_tokens
        self.cached_tokens += other.cached_tokens
        self.opening = sorted([*self.opening, *other.opening])[:_OPENING]
        self.reconnected += other.reconnected


LATE, SLIP, HELD, ARRIVAL = "·late", "·slip", "·held", "·arrival"
"""The kernel's own folds beside the metrics', in ns: how long after its due time a request was started; of that, what was the
client's own doing, and what it waited for a slot or for the answer before it, where it did; numbers of the arrivals sent."""

SEEN, CENSORED = "·seen", "·censored"
"""Behind a metric's tag: values known of requests that were cut off in flight, and how long the others had lasted."""
_CUT_OFF = (journal.ABORTED, journal.UNFINISHED)
Groupings: TypeAlias = Mapping[int, Sequence[Grouping]]


class Pipeline:
    """Scores batches and folds their values, per phase.  *spool* holds values that memory should not."""

    def __init__(self, listing: Catalogue, spool: Path, owner: str, groupings: Groupings | None = None) -> None:
        """*groupings*: how a phase's requests are folded apart besides, by its index."""
        self._catalogue = listing
        self._metrics = {tag: metric for tag, metric in listing.metrics.items() if isinstance(metric, Metric)}
        self._analyses = {tag: metric for tag, metric in listing.metrics.items() if isinstance(metric, Analysis)}
        self._keepers: dict[tuple[int, str], Keeper] = {}
        self._spool, self._owner = spool, owner
        self._folds: dict[tuple[int, str], Fold] = {}
        self.off: dict[str, str] = {}
        """Metrics that failed, with the sentence on each."""
        self.census: dict[int, Census] = {}
        self.begins_ns: dict[int, float] = {}
        """When each phase began, in ns since the run's start; must be known before its first batch."""
        self._groupings = groupings or {}
        self._groups: dict[tuple[int, str], Groups] = {}
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
        cut = np.isin(batch["outcome"], _CUT_OFF)
        late: dict[str, Floats] = {}
        for tag, metric in self._metrics.items():
            if tag in self.off or any(need not in values for need in metric.needs):
                continue
            allowed = {need: values[need] for need in metric.needs}

            def resolve(name: str, allowed: Mapping[str, Column] = allowed) -> Column:
                if name in allowed:
                    return allowed[name]
                raise KeyError(f"{name!r} is neither a column of the kernel nor in 'needs'")

            try:
                column = _checked(metric.column(batch.viewed(resolve)), len(batch))
                values[tag] = _still(_masked(column, rows[metric.over]))
                if metric.since is not None and not isinstance(column, Ragged) and cut.any():
                    late[tag] = np.where(cut, column, np.nan)
            except Exception as error:  # noqa: BLE001  # strangers' code
                self._switch_off(tag, error)
        return Scored(batch, values, self._metrics, late)

    def feed(self, scored: Scored) -> None:
        """Fold the scored batch."""
        phases = scored.batch["phase"]
        present = np.unique(phases)
        for phase in present:
            self._feed(int(phase), scored if len(present) == 1 else _taken(scored, np.flatnonzero(phases == phase)))

    def _feed(self, phase: int, scored: Scored) -> None:
        """Fold requests of one phase."""
        batch = scored.batch
        self.census.setdefault(phase, Census()).add(batch)
        late, held = batch["started_ns"] - batch["due_ns"], batch["held_ns"]
        self._fold(phase, LATE).add(late)
        self._fold(phase, SLIP).add(late - held)
        self._fold(phase, HELD).add(np.where(held > 0, held, np.nan))
        self._fold(phase, ARRIVAL).add(batch["n"])
        for tag, column in scored.values.items():
            if isinstance(column, Ragged):
                self._fold(phase, tag, listed=True).add(column.values)
            else:
                self._fold(phase, tag).add(column)
        self._watch(phase, scored)
        self._keep(phase, scored)
        for grouping in self._groupings.get(phase, ()):
            groups = self._groups.get((phase, grouping.name))
            if groups is None:
                spool = str(self._spool / f"fold-{self._owner}-{phase}-{grouping.name}")
                groups = Groups(grouping, phase, self.begins_ns.get(phase, 0.0), spool)
                self._groups[phase, grouping.name] = groups
            groups.add(batch, scored.values, self._metrics)

    def _watch(self, phase: int, scored: Scored) -> None:
        """Fold what is known of durations of requests that were cut off in flight."""
        batch = scored.batch
        cut = np.isin(batch["outcome"], _CUT_OFF)
        if not cut.any():
            return
        for tag, column in scored.cut_off.items():
            metric = self._metrics[tag]
            assert metric.since is not None  # such metrics alone are there
            known = cut & np.isfinite(column) if metric.early else np.zeros(len(batch), dtype=bool)
            self._fold(phase, tag + SEEN).add(column[known])
            self._fold(phase, tag + CENSORED).add((batch["ended_ns"] - batch[metric.since])[cut & ~known])

    def _keep(self, phase: int, scored: Scored) -> None:
        """Keep what analyses want of each request."""
        for tag, analysis in self._analyses.items():
            if tag in self.off or any(need not in scored.values for need in analysis.needs):
                continue
            keeper = self._keepers.get((phase, tag))
            if keeper is None:
                path = self._spool / f"fold-{self._owner}-{phase}-{tag}"
                keeper = self._keepers[phase, tag] = Keeper(path, analysis.keeps, analysis.lists)
            try:
                keeper.add(scored.batch, scored.values)
            except OSError:
                raise
            except Exception as error:  # noqa: BLE001  # strangers' code
                self._switch_off(tag, error)

    def _switch_off(self, tag: str, error: Exception) -> None:
        self.off[tag] = f"metric {tag} of {self._catalogue.owner(tag)} is switched off: {why(error)}"
        log.warning("%s", self.off[tag], exc_info=error)

    def _fold(self, phase: int, tag: str, *, listed: bool = False) -> Fold:
        fold = self._folds.get((phase, tag))
        if fold is None:
            fold = Fold(self._spool / f"fold-{self._owner}-{len(self._folds)}")
            self._folds[phase, tag] = fold
        fold.listed |= listed
        return fold

    def dump(self) -> list[tuple[int, str, bytes]]:
        """(phase, tag, state) of every fold."""
        return [(phase, tag, fold.dump()) for (phase, tag), fold in self._folds.items()]

    def dump_kept(self) -> list[tuple[int, str, bytes]]:
        """(phase, tag, state) of what was kept for analyses."""
        return [(phase, tag, keeper.dump()) for (phase, tag), keeper in self._keepers.items() if tag not in self.off]

    def dump_groups(self) -> list[Grouped]:
        return [groups.dump() for groups in self._groups.values()]


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


def _taken(scored: Scored, rows: Ints) -> Scored:
    """These requests alone."""
    values = {tag: column.take(rows) if isinstance(column, Ragged) else column[rows] for tag, column in scored.values.items()}
    cut_off = {tag: column[rows] for tag, column in scored.cut_off.items()}
    return Scored(scored.batch.take(rows), values, scored.metrics, cut_off)


def _still(column: Column) -> Column:
    """The same to look at, and not to change: others read it, too."""
    if isinstance(column, Ragged):
        return Ragged(_still_array(column.values), column.offsets, _still_array(column.at_ns))
    return _still_array(column)


def _still_array(array: Floats) -> Floats:
    view = array.view()
    view.flags.writeable = False
    return view
