"""Live numbers of a run: what is reduced, folded while it comes, where somebody looks.

Each reducer folds its own values twice a second; the first takes the others' pieces, too, and makes the figures of the run.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec
import numpy as np
from aiperf.parts import journal
from aiperf.parts.segments import ShardEvent
from aiperf.sdk.columns import Floats, RecordBatch
from aiperf.sdk.metric import MetricObjective
from aiperf.sdk.plan import PhasePlan, Plan
from aiperf.sdk.reducer import Live, PhaseFigures
from aiperf.sdk.snapshot import RECENT_S, LiveDelays, LiveMetric, LiveObjective, LiveStatistics
from aiperf.sdk.summary import Result
from msgspec import Struct

from aiperf_reducer_columns.reduce.live_failures import FailureKinds, failure_kinds
from aiperf_reducer_columns.statistics.catalogue import Catalogue
from aiperf_reducer_columns.statistics.described import PERCENTILES
from aiperf_reducer_columns.statistics.fold import ESTIMATE, HIGH, LOW, SLACK, Buckets
from aiperf_reducer_columns.statistics.lateness import late_ns
from aiperf_reducer_columns.statistics.live_folds import FoldView, Histogram, LiveFold, Piece
from aiperf_reducer_columns.statistics.live_plugin_folds import LivePluginFolds
from aiperf_reducer_columns.statistics.phase_counts import PhaseCounts
from aiperf_reducer_columns.statistics.pipeline import LATE, SLIP
from aiperf_reducer_columns.statistics.plugin_folds import FoldResult, FoldState, PluginFolds
from aiperf_reducer_columns.statistics.totals import PhaseTotals

_LAG = "·lag"
"""Lags of the workers' loops, in ns."""
_KEPT = (SLIP, _LAG)
"""Values of the reducer's own that are folded beside the metrics."""
_RECENT_PERCENTILES = (50, 90, 95, 99)
_MOST_WAITING = 65_536
"""Values of a metric that wait until they are folded."""
_MS = 1e-6
_Key = tuple[int, str]


class Part(Struct):
    """What a reducer tells the first one.

    place: the directory from which it reduces; what a reducer tells from another one comes beside it.
    pieces: (phase, tag, elements of lists, values) since the part before; states: of folds of plugins, failures: by phase,
    likewise.
    counts, late, lateness: of all so far, by phase; the last one of reads behind their kernel stamps.
    """

    reducer: int
    pieces: list[tuple[int, str, bool, Piece]] = []
    states: list[FoldState] = []
    failures: list[tuple[int, FailureKinds]] = []
    counts: dict[int, PhaseCounts] = {}
    late: dict[int, int] = {}
    lateness: Buckets = msgspec.field(default_factory=Buckets)
    place: str = ""


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Part).decode


class Watch:
    """Folds for live numbers.

    *reducer*: its index; the first one makes the figures.  *lines_s*: seconds between lines of progress, by phase.
    *place*: as of :class:`Part`.
    *looked*: whether anything but these lines shows the numbers; else those alone are folded that the lines have.
    """

    def __init__(
        self, catalogue: Catalogue, plan: Plan, reducer: int, lines_s: Mapping[int, float], *, looked: bool = True,
        clock: Callable[[], float] = time.monotonic, place: str = "",
    ) -> None:  # fmt: skip
        self._catalogue, self._identity, self._tells_own = catalogue, (reducer, place), plan.run.restart_lost
        self._phases = {phase.index: phase for phase in plan.load.phases}
        self._late_ns = {phase.index: late_ns(phase) for phase in plan.load.phases}
        self._folded = None if looked else _of_lines(catalogue)
        self._waiting: dict[_Key, list[Floats]] = {}
        self._waits: dict[_Key, int] = {}
        self._listed: set[str] = set()
        self._pieces: list[tuple[int, str, bool, Piece]] = []
        self._late: dict[int, int] = {}
        self._running: dict[int, int] = {}
        self._figures = Figures(catalogue, self._phases, lines_s, clock)
        self._plugin_folds = PluginFolds(catalogue, {})
        self._states: list[FoldState] = []
        self._failures: dict[int, FailureKinds] = {}
        self._others: dict[tuple[int, str], Part] = {}
        self.follow({}, {}, Buckets())

    def add(self, phase: int, tag: str, values: Floats, *, listed: bool) -> None:
        """Take values of a metric; those that aren't finite are absent."""
        if tag == LATE:
            late = int((values > self._late_ns[phase]).sum())
            self._late[phase] = self._late.get(phase, 0) + late
        if tag not in _KEPT and (tag.startswith("·") or not (self._folded is None or tag.partition("·")[0] in self._folded)):
            return
        if listed:
            self._listed.add(tag)
        key = phase, tag
        self._waiting.setdefault(key, []).append(values)
        self._waits[key] = waits = self._waits.get(key, 0) + len(values)
        if waits > _MOST_WAITING:
            self._fold(key)

    def add_to_plugin_fold(self, phase: int, tag: str, values: Floats) -> None:
        """Take values of a metric with a fold of its own."""
        if self._folded is None or tag in self._folded:
            self._plugin_folds.add(phase, tag, values)

    def add_failures(self, phase: int, batch: RecordBatch) -> None:
        """Count the failed requests of a batch of the phase."""
        self._fail(phase, failure_kinds(batch))

    def _fail(self, phase: int, kinds: FailureKinds) -> None:
        if kinds.rows:
            self._failures.setdefault(phase, FailureKinds()).merge(kinds)

    def note(self, events: Iterable[ShardEvent]) -> None:
        """Take the lags of loops from a batch's events."""
        for shard, kind, value in events:
            if kind == journal.PHASE and value["event"] == "begin":
                self._running[shard] = value["phase"]
            elif kind == journal.LOOP and value["in_phase"] and shard in self._running:
                self.add(self._running[shard], _LAG, np.array(value["lag_ns"], dtype=np.float64), listed=False)

    def take_part(self, data: bytes) -> None:
        """Take what another reducer has."""
        part = _decode(data)
        if (part.reducer, part.place) == self._identity:
            return  # of one in whose place this one is, with its columns
        self._pieces += part.pieces
        self._states += part.states
        for phase, kinds in part.failures:
            self._fail(phase, kinds)
        part.pieces, part.states, part.failures = [], [], []
        self._others[part.reducer, part.place] = part

    def follow(self, counts: Mapping[int, PhaseCounts], begins_ns: Mapping[int, float], lateness: Buckets) -> None:
        """Where the reducer's counts by phase, the begins of phases since the run's start, and delays of reads stand."""
        self._counts, self._begins_ns, self._lateness = counts, begins_ns, lateness

    def live(self, done: int) -> Live:
        """The numbers so far."""
        for key in [*self._waiting]:
            self._fold(key)
        pieces, self._pieces = self._pieces, []
        states, self._states = self._plugin_folds.taken() + self._states, []
        failures, self._failures = [*self._failures.items()], {}
        reducer, place = self._identity
        counted = Part(reducer, counts=dict(self._counts), late=dict(self._late), lateness=self._lateness, place=place)
        own = msgspec.structs.replace(counted, pieces=pieces, states=states, failures=failures)
        if reducer:
            return Live(done, (), _encode(own))
        figures = self._figures.made([own, *self._others.values()], self._begins_ns)
        return Live(done, figures, _encode(counted) if self._tells_own else b"")

    def _fold(self, key: _Key) -> None:
        values = np.concatenate(self._waiting.pop(key))
        del self._waits[key]
        values = values[np.isfinite(values)]
        if len(values):
            self._pieces.append((*key, key[1] in self._listed, Piece.of(values)))


def _of_lines(catalogue: Catalogue) -> set[str]:
    """Tags of the metrics that lines of progress show."""
    return {tag for tag, metric in catalogue.metrics.items() if metric.headline is not None or metric.objective is not None}


class Figures:
    """Makes the figures of a run from the parts of its reducers."""

    def __init__(
        self, catalogue: Catalogue, phases: Mapping[int, PhasePlan], lines_s: Mapping[int, float], clock: Callable[[], float]
    ) -> None:  # fmt: skip
        self._catalogue, self._phases, self._lines_s, self._clock = catalogue, phases, lines_s, clock
        self._headlines = {tag for tag, metric in catalogue.metrics.items() if metric.headline is not None}
        self._plugin_folds: dict[int, LivePluginFolds] = {}
        self._failures: dict[int, FailureKinds] = {}
        self._folds: dict[int, dict[str, LiveFold]] = {}
        self._told: deque[tuple[float, int, int, int]] = deque()
        """When, the phase, and its good and failed requests so far."""

    def made(self, parts: Sequence[Part], begins_ns: Mapping[int, float]) -> tuple[PhaseFigures, ...]:
        now_s = self._clock()
        for part in parts:
            for phase, tag, listed, piece in part.pieces:
                folds = self._folds.setdefault(phase, {})
                if (fold := folds.get(tag)) is None:
                    lined = self._lines_s.get(phase, 0.0) > 0 and tag.partition("·")[0] in self._headlines
                    fold = folds[tag] = LiveFold(lined=lined)
                fold.listed |= listed
                fold.add(piece, now_s)
            for state in part.states:
                self._plugin_folds.setdefault(state.phase, LivePluginFolds(self._catalogue)).add(state, now_s)
            for phase, kinds in part.failures:
                self._failures.setdefault(phase, FailureKinds()).merge(kinds)
        counts: dict[int, PhaseCounts] = {}
        for part in parts:
            for phase, each in part.counts.items():
                counts.setdefault(phase, PhaseCounts()).merge(each)
        latest = max(counts, default=None)
        for earlier in [phase for phase in self._folds if latest is not None and phase < latest]:
            del self._folds[earlier]
            self._plugin_folds.pop(earlier, None)
            self._failures.pop(earlier, None)
        figures = []
        for phase, tally in sorted(counts.items()):
            late = sum(part.late.get(phase, 0) for part in parts) if self._phases[phase].paced else None
            plain = PhaseFigures(phase, sum(tally.kinds.values()), tally.failed, late)
            figures.append(plain if phase != latest else self._whole(plain, tally, parts, now_s, begins_ns.get(phase, 0.0)))
        return tuple(figures)

    def _whole(
        self, plain: PhaseFigures, tally: PhaseCounts, parts: Sequence[Part], now_s: float, begin_ns: float
    ) -> PhaseFigures:  # fmt: skip
        """The figures of the phase under way, with its metrics."""
        begun_s, good, failed = self._recent(plain.phase, now_s, tally)
        folds = self._folds.get(plain.phase, {})
        for fold in folds.values():
            fold.expire(begun_s, now_s - self._lines_s.get(plain.phase, 0.0))
        own_so_far, own_recent = self._plugin_folds.get(plain.phase, LivePluginFolds(self._catalogue)).results(begun_s)
        totals = {tag: fold.total for tag, fold in folds.items()}
        recent = {tag: fold.recent for tag, fold in folds.items() if fold.recent.count}
        listed = {tag for tag, fold in folds.items() if fold.listed}
        span_s = max(0.0, (tally.last_end_ns - tally.first_start_ns) / 1e9)
        window_s = max(0.0, (tally.last_end_ns - begin_ns) / 1e9)
        of_phase = self._totals(totals, listed, PERCENTILES, own_so_far, (span_s, window_s), (tally.valid, tally.failed))
        recent_s = now_s - begun_s
        lately = self._totals(recent, listed, _RECENT_PERCENTILES, own_recent, (recent_s, recent_s), (good, failed))
        lined = {tag: fold.interval for tag, fold in folds.items() if fold.interval is not None and fold.interval.count}
        between = self._totals(lined, listed, _RECENT_PERCENTILES, {}, (0.0, 0.0), (0, 0))
        kinds, further = self._failures.get(plain.phase, FailureKinds()).commonest()
        objectives = self._objectives(totals, recent)
        return msgspec.structs.replace(
            plain, metrics=tuple(self._metrics(of_phase.results(), lately.results(), between)),
            good=next((each for each in objectives if not each.tag), None),
            objectives=tuple(each for each in objectives if each.tag), failures=kinds, further_failures=further,
            delays=LiveDelays(_p99_ms(folds, SLIP), _p99_ms(folds, _LAG), _lateness_ms([part.lateness for part in parts])),
        )  # fmt: skip

    def _recent(self, phase: int, now_s: float, tally: PhaseCounts) -> tuple[float, int, int]:
        """When the recent time began, and how many requests succeeded and failed in it."""
        told = self._told
        if told and told[-1][1] != phase:
            told.clear()
        if not told:
            told.append((now_s - max(0.0, (tally.last_end_ns - tally.first_start_ns) / 1e9), phase, 0, 0))
        told.append((now_s, phase, tally.valid, tally.failed))
        while len(told) > 2 and told[1][0] <= now_s - RECENT_S:
            told.popleft()
        begun_s, _, good, failed = told[0]
        return max(begun_s, now_s - RECENT_S) if len(told) == 2 else begun_s, tally.valid - good, tally.failed - failed

    def _totals(
        self, folds: Mapping[str, Histogram], listed: set[str], percentiles: Sequence[float], own: Mapping[str, FoldResult],
        seconds: tuple[float, float], requests: tuple[int, int],
    ) -> PhaseTotals:  # fmt: skip
        """*own*: of folds of plugins.  *seconds*: of the requests, and of the phase.  *requests*: good and failed ones."""
        views: dict[str, FoldView | FoldResult] = {**own}
        for tag in [tag for tag in folds if "·" not in tag] + [tag for tag in folds if tag.endswith(ESTIMATE)]:
            plain = tag.removesuffix(ESTIMATE)
            if plain in views:
                continue
            known = [folds[plain]] if plain in folds else []
            if (estimated := folds.get(plain + ESTIMATE)) is None:
                views[plain] = FoldView(known, percentiles, listed=plain in listed)
                continue
            low, high = ([*known, folds[plain + side]] for side in (LOW, HIGH))
            slack = folds.get(plain + SLACK)
            bounds = (low, high, 0.0 if slack is None else float(slack.sum))
            views[plain] = FoldView([*known, estimated], percentiles, listed=plain in listed, bounds=bounds)
        (span_s, window_s), (valid, failed) = seconds, requests
        return PhaseTotals(
            self._catalogue, views, duration_s=span_s or None, window_s=window_s or None, valid=valid, failed=failed
        )

    def _metrics(
        self, so_far: Mapping[str, Result], recent: Mapping[str, Result], between: PhaseTotals
    ) -> Iterable[LiveMetric]:  # fmt: skip
        for tag, result in so_far.items():
            if not result.stats:  # counts by name
                continue
            lately, metric = recent.get(tag), self._catalogue.metrics.get(tag)
            headline = None if metric is None else metric.headline
            of_recent = None if lately is None else _statistics(lately.stats)
            of_interval = None if headline is None else _statistics(between.statistics_of(tag))
            yield LiveMetric(
                tag, result.title, result.unit, LiveStatistics.of(result.stats), of_recent, result.short, result.group,
                result.order, headline, of_interval,
            )  # fmt: skip

    def _objectives(self, totals: Mapping[str, Histogram], recent: Mapping[str, Histogram]) -> list[LiveObjective]:
        found = []
        for tag, metric in self._catalogue.metrics.items():
            objective = metric.objective
            if objective is not None:
                judged, met = _counted(totals, tag)
                found.append(LiveObjective(*_about(objective), judged, met, *_counted(recent, tag)))
        return found


def _about(objective: MetricObjective) -> tuple[str, str, float | None]:
    return objective.title, objective.tag, objective.bound


def _counted(folds: Mapping[str, Histogram], tag: str) -> tuple[int, int]:
    """How many requests were judged, and how many met the objective; what is estimated counts."""
    parts = [folds[name] for name in (tag, tag + ESTIMATE) if name in folds]
    return sum(part.count for part in parts), int(sum(part.sum for part in parts))


def _statistics(stats: Mapping[str, float] | None) -> LiveStatistics | None:
    return LiveStatistics.of(stats) if stats else None


def _p99_ms(folds: Mapping[str, LiveFold], tag: str) -> float | None:
    fold = folds.get(tag)
    return None if fold is None else max(0.0, fold.total.statistics(_MS, (99,))["p99"])


def _lateness_ms(parts: Sequence[Buckets]) -> float | None:
    known = [part for part in parts if part.count]
    if not known:
        return None
    whole = known[0]
    if len(known) > 1:
        whole = Buckets()
        for part in known:
            whole.merge(part)
    return max(0.0, whole.statistics(_MS, (99,))["p99"])

