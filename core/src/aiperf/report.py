"""The summary of a run from what its journal holds: with the run's own reducers, or afterwards, without a server."""

from __future__ import annotations

import math
from pathlib import Path

import msgspec
import numpy as np

from aiperf import journal
from aiperf.artifacts import batch_exporters, part_path, target_for
from aiperf.build import load
from aiperf.columns import RecordBatch
from aiperf.endpoint import Capabilities
from aiperf.errors import BadJournal
from aiperf.exporter import Scored
from aiperf.model import ErrorDetails
from aiperf.pipeline import ARRIVAL, SLIP, Catalogue, Census, PhaseTotals, catalogue, load_folds
from aiperf.plan import PhasePlan, Plan
from aiperf.reduce import NUMBERS, Folded, Reducer, Stored, batch_of
from aiperf.rundir import RunClock, hold, load_run
from aiperf.store import Store
from aiperf.summary import Arrivals, DeliveredLoad, ErrorCount, Measurement, PhaseSummary, PluginUsed, Summary
from aiperf.trust import arrivals, delivered, finite, measurement

_NEVER_SENT_BATCH = 4096


def report(directory: Path) -> tuple[Summary, Plan, RunClock]:
    """Reduce a run's directory again and summarise it; parts of batch exporters are written anew.

    Raises:
        BadJournal: There is no run in it.
    """
    journal_path = directory / "journal"
    plan, clock = load_run(journal_path)
    if not journal.numbered(journal_path, "columns-*.*") and not journal.numbered(journal_path, "shard-*.seg"):
        raise BadJournal(f"{directory} holds a plan but no observations: the run ended before anything was sent")
    plan = msgspec.structs.replace(plan, artifacts=str(directory.absolute()), journal=str(journal_path.absolute()))
    with hold(journal_path):
        for stale in [*journal_path.glob("folds-*"), *journal_path.glob("part-*")]:
            stale.unlink()
        reducer = Reducer(plan, journal_path, 0, 1, clock=clock, durable=False)
        reducer.finish()
        past = _previous(journal_path)
        ended = _ended(plan, _folded(journal_path))
        reason = past.incomplete_reason if past is not None else None if ended else "the run ended before it was complete"
        write_summary(
            journal_path,
            cancelled=past.cancelled if past is not None else False,
            incomplete_reason=reason,
            warnings=past.warnings if past is not None else (),
        )
    return msgspec.msgpack.decode((journal_path / "summary.msgpack").read_bytes(), type=Summary), plan, clock


def _previous(journal_path: Path) -> Summary | None:
    try:
        return msgspec.msgpack.decode((journal_path / "summary.msgpack").read_bytes(), type=Summary)
    except (OSError, msgspec.MsgspecError):
        return None


def _ended(plan: Plan, parts: list[Folded]) -> bool:
    """Whether every shard said that the last phase ended."""
    ended = set()
    for folded in parts:
        for shard, kind, value in folded.side:
            if kind == journal.PHASE and value["event"] == "end" and value["phase"] == len(plan.phases) - 1:
                ended.add(shard)
    return len(ended) == plan.workers


def write_summary(journal_path: Path, *, cancelled: bool, incomplete_reason: str | None, warnings: tuple[str, ...]) -> None:
    """Merge the reducers' folds into ``summary.msgpack``; adds the arrivals that were never sent to the ledger."""
    plan, clock = load_run(journal_path)
    made = _Summing(plan, clock, journal_path).summary(cancelled, incomplete_reason, warnings)
    draft = journal_path / "summary.draft"
    draft.write_bytes(msgspec.msgpack.encode(made))
    draft.replace(journal_path / "summary.msgpack")
    for spent in [*journal_path.glob("fold-*"), *journal_path.glob("folds-*")]:
        spent.unlink()  # the columns are the truth; folds come again from them


def _folded(journal_path: Path) -> list[Folded]:
    paths = sorted(journal_path.glob("folds-[0-9]*"), key=lambda path: int(path.name.rpartition("-")[2]))
    return [msgspec.msgpack.decode(path.read_bytes(), type=Folded) for path in paths]


class _Summing:
    """The merging of one run."""

    def __init__(self, plan: Plan, clock: RunClock, journal_path: Path) -> None:
        self.plan, self.clock, self.journal = plan, clock, journal_path
        self.parts = _folded(journal_path)
        self.folds = load_folds(part.folds for part in self.parts)
        self.side = [row for part in self.parts for row in part.side]
        self.census: dict[int, Census] = {}
        for part in self.parts:
            for phase, census in part.census.items():
                self.census.setdefault(phase, Census()).merge(census)
        capabilities: Capabilities = load(plan.endpoint).capabilities
        self.title = capabilities.title
        self.catalogue: Catalogue = catalogue(plan, capabilities)

    def summary(self, cancelled: bool, incomplete_reason: str | None, warnings: tuple[str, ...]) -> Summary:
        plan = self.plan
        phases = [self._phase(phase) for phase in plan.phases]
        main_plan = next(phase for phase in plan.phases if phase.kind == "profiling")
        main = next(phase for phase in phases if phase.kind == "profiling")
        begin, end = self._window(main_plan)
        census = self.census.get(main_plan.index, Census())
        slips = self.folds.get(main_plan.index, {}).get(SLIP)
        found = arrivals(main_plan, census, slips)
        self._never_sent(main_plan)
        failures = [sentence for part in self.parts for sentence in part.failures]
        if incomplete_reason is None and found.unfinished:
            incomplete_reason = f"{found.unfinished} requests have no end"
        return Summary(
            run_id=plan.run_id,
            version=plan.version,
            results=main.results,
            errors=main.errors,
            phases=tuple(phases),
            measurement=self._measurement(main_plan, census, found, main),
            delivered=self._delivered(main_plan, census, found, begin),
            plugins=self._plugins(),
            start_ns=main.start_ns,
            end_ns=main.end_ns,
            title=self.title,
            command=plan.command,
            config=plan.config,
            valid=main.valid,
            failed=main.failed,
            cancelled=cancelled,
            complete=not cancelled and incomplete_reason is None,
            incomplete_reason=incomplete_reason,
            seed=plan.seed,
            observation_window_s=(end - begin) / 1e9 if end > begin else None,
            benchmark_duration_s=_duration_s(census),
            warnings=warnings,
            extra={"failures": failures} if failures else {},
        )

    def _phase(self, phase: PhasePlan) -> PhaseSummary:
        census = self.census.get(phase.index, Census())
        begin, end = self._window(phase)
        valid = census.outcomes.get(journal.COMPLETED, 0)
        failed = census.outcomes.get(journal.ERROR, 0) + census.outcomes.get(journal.CANCELLED, 0)
        totals = PhaseTotals(
            self.catalogue,
            self.folds.get(phase.index, {}),
            duration_s=_duration_s(census),
            window_s=(end - begin) / 1e9 if end > begin else None,
            valid=valid,
            failed=failed,
        )
        errors = tuple(ErrorCount(msgspec.json.decode(text, type=ErrorDetails), count) for text, count in census.errors.items())
        wall = self.clock.started_wall_ns
        return PhaseSummary(
            phase.name, phase.kind, phase.index, wall + round(begin), wall + round(end), totals.results(), errors, valid, failed
        )

    def _window(self, phase: PhasePlan) -> tuple[float, float]:
        """The phase's begin and end in ns since the run's start; what was observed where the journal doesn't say."""
        begins, ends = [], []
        for _, kind, value in self.side:
            if kind == journal.PHASE and value["phase"] == phase.index:
                if value["event"] == "begin":
                    begins.append(value["at_ns"] - self.clock.started_mono_ns)
                elif value["event"] == "end":
                    ends.append(value["at_ns"] - self.clock.started_mono_ns)
        census = self.census.get(phase.index, Census())
        begin = min(begins, default=finite(census.first_start_ns) or 0.0)
        return begin, max([*ends, finite(census.last_end_ns) or begin, begin])

    def _measurement(self, phase: PhasePlan, census: Census, found: Arrivals, main: PhaseSummary) -> Measurement:
        lateness, intervals = self.parts[0].lateness, self.parts[0].intervals
        for part in self.parts[1:]:
            lateness.merge(part.lateness)
            intervals.merge(part.intervals)
        itl = main.results.get("inter_token_latency")
        return measurement(
            self.plan, phase, census, found, self.folds.get(phase.index, {}).get(SLIP), self.side,
            lateness=lateness, intervals=intervals, clock_steps=sum(part.clock_steps for part in self.parts),
            itl_p50_ms=itl.stats["p50"] if itl is not None else None,
        )  # fmt: skip

    def _delivered(self, phase: PhasePlan, census: Census, found: Arrivals, begin_ns: float) -> DeliveredLoad:
        if not census.outcomes:
            return DeliveredLoad(None, None, found.never_sent, phase.rate)
        return delivered(phase, census, found, self.folds.get(phase.index, {}).get(SLIP), begin_ns)

    def _plugins(self) -> tuple[PluginUsed, ...]:
        plan = self.plan
        refs = [plan.endpoint, plan.transport, plan.dataset, *([plan.tokenizer] if plan.tokenizer else [])]
        refs += [*plan.schedules.values(), *plan.arrivals.values(), *plan.metrics, *plan.exporters, *plan.hooks]
        return tuple(
            PluginUsed(
                ref.category, ref.name, ref.distribution, ref.version, plan.shadowed.get(f"{ref.category}:{ref.name}", ())
            )
            for ref in refs
        )

    def _never_sent(self, phase: PhasePlan) -> None:
        """Ledger rows of planned arrivals that nobody sent: one more part behind the reducers' own."""
        if phase.due_file is None or phase.session_count is not None or not Path(phase.due_file).exists():
            return
        claimed = np.zeros(phase.planned or 0, dtype=bool)
        numbers = self.folds.get(phase.index, {}).get(ARRIVAL)
        if numbers is not None and numbers.count:
            claimed[numbers.values().astype(np.int64)] = True
        missing = np.flatnonzero(~claimed)
        begin, _ = self._window(phase)
        due = np.fromfile(phase.due_file, dtype=np.int64)
        store = Store(self.journal)
        target = target_for(self.plan, self.clock)
        for ref, exporter in batch_exporters(self.plan, target):
            path = part_path(self.journal, ref.name, self.plan.reducers)
            with path.open("wb") as part:
                for at in range(0, len(missing), _NEVER_SENT_BATCH):
                    rows = missing[at : at + _NEVER_SENT_BATCH]
                    batch = _unsent(rows, due[rows] + begin, phase, self.plan, store)
                    part.write(exporter.rows(Scored(batch, {}, {})))


def _duration_s(census: Census) -> float | None:
    """First request start to last response end, over everything that was sent."""
    span = census.last_end_ns - census.first_start_ns
    return span / 1e9 if math.isfinite(span) and span > 0 else None


def _unsent(numbers: object, due: object, phase: PhasePlan, plan: Plan, store: Store) -> RecordBatch:
    n = np.asarray(numbers, dtype=np.float64)
    table = np.full((len(NUMBERS), len(n)), np.nan)
    at = {name: i for i, name in enumerate(NUMBERS)}
    table[at["n"]], table[at["due_ns"]] = n, np.asarray(due, dtype=np.float64)
    table[at["phase"]], table[at["outcome"]] = phase.index, journal.NEVER_SENT
    for name in ("session", "turn", "entry", "shard", "request", "url", "model", "coalesced", "reconnected"):
        table[at[name]] = 0
    table[at["session"]] = n
    stored = Stored(len(n), table.tobytes(), b"", b"", np.zeros(len(n), dtype=np.int64).tobytes())
    batch = batch_of(stored, plan, store)
    nothing: list[str | None] = [None] * len(n)
    batch.texts = dict.fromkeys(batch.texts, nothing)
    return batch
