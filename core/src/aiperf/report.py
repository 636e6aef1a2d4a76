"""The summary of a run from what its journal holds: with the run's own reducers, or afterwards, without a server."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterable
from pathlib import Path

import msgspec
import numpy as np

from aiperf import intfile, journal
from aiperf.addresses import without_secrets
from aiperf.advice import advice
from aiperf.artifacts import batch_exporters, part_path, target_for
from aiperf.build import load
from aiperf.columns import Column, Floats, Ints, RecordBatch, ragged
from aiperf.earlier import recover
from aiperf.endpoint import Capabilities
from aiperf.errorkinds import Counts
from aiperf.errors import BadJournal
from aiperf.exporter import Scored
from aiperf.grading import COLUMNS as GRADES
from aiperf.grouped import BySlice, ByUrl, Together, named
from aiperf.model import ErrorDetails
from aiperf.pipeline import ARRIVAL, HELD, LATE, SLIP, Catalogue, Census, catalogue
from aiperf.plan import PhasePlan, Plan, Secrets
from aiperf.reduce import NUMBERS, TEXTS, Folded, Reducer, collecting_rarely
from aiperf.rundir import RunClock, hold, load_run
from aiperf.selection import key_of
from aiperf.store import Store
from aiperf.strangers import who, why
from aiperf.summary import (
    Arrivals,
    DeliveredLoad,
    ErrorCount,
    Measurement,
    PhaseSummary,
    PluginUsed,
    Slice,
    Summary,
    UrlSummary,
)
from aiperf.telemetry.windows import Window, telemetry
from aiperf.totals import Analyses, PhaseTotals, load_folds, parts, survival
from aiperf.trust import arrivals, asked_rate, delivered, finite, measurement, planned

log = logging.getLogger(__name__)

_NEVER_SENT_BATCH = 4096
MOST_SLICES = 100_000
"""Time slices of one run: more are no report."""


def report(directory: Path, change: Callable[[Plan], Plan] | None = None) -> tuple[Summary, Plan, RunClock]:
    """Reduce a run's directory again and summarise it; parts of batch exporters are written anew.

    *change* makes the plan to report by from the run's own: other metrics, options of metrics, or slices.

    Raises:
        BadJournal: There is no run in it.
        OSError: It can't be read or written.
    """
    if recover(directory):
        log.warning("%s: a start that was killed had set the results of an earlier run aside; they are back", directory)
    journal_path = directory / "journal"
    plan, clock = load_run(journal_path)
    if not journal.numbered(journal_path, "columns-*.*") and not journal.numbered(journal_path, "shard-*.seg"):
        raise BadJournal(f"{directory} holds a plan but no observations: the run ended before anything was sent")
    plan = msgspec.structs.replace(plan, artifacts=str(directory.absolute()), journal=str(journal_path.absolute()))
    plan = plan if change is None else change(plan)
    with hold(journal_path), collecting_rarely():
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
            warnings=past.run_warnings if past is not None else (),
            plan=plan,
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


def write_summary(
    journal_path: Path,
    *,
    cancelled: bool,
    incomplete_reason: str | None,
    warnings: tuple[str, ...],
    secrets: Secrets | None = None,
    plan: Plan | None = None,
) -> None:
    """Merge the reducers' folds into ``summary.msgpack``; adds the arrivals that were never sent to the ledger.

    *secrets*: options of plugins that were not written down; None where nobody has them any more.
    *plan*: the run's own where None.
    """
    own, clock = load_run(journal_path)
    whole = (secrets or Secrets()).restored(plan or own)
    made = _Summing(whole, clock, journal_path).summary(cancelled, incomplete_reason, warnings)
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
        self.warnings = [*self.catalogue.warnings, *(sentence for part in self.parts for sentence in part.off.values())]
        self.warnings += [sentence for part in self.parts for sentence in part.notes]
        self.failures = [sentence for part in self.parts for sentence in part.failures]
        # What failed in one reducer has only a part of its values in the others.
        self.catalogue.switch_off(tag for part in self.parts for tag in part.off)
        self.analyses = Analyses(self.catalogue, [kept for part in self.parts for kept in part.kept])

    def summary(self, cancelled: bool, incomplete_reason: str | None, warnings: tuple[str, ...]) -> Summary:
        plan = self.plan
        phases = [self._phase(phase) for phase in plan.phases]
        if plan.use_server_token_count:
            self.warnings += _server_counts(self.census.values())
        main_plan = next(phase for phase in plan.phases if phase.kind == "profiling")
        main = next(phase for phase in phases if phase.kind == "profiling")
        begin, end = self._window(main_plan)
        for phase in plan.phases:
            self._never_sent(phase)
        census = self.census.get(main_plan.index, Census())
        kept = self.folds.get(main_plan.index, {})
        found = arrivals(main_plan, census, kept.get(LATE), kept.get(HELD))
        single = Store(self.journal).max_turns == 1
        self.warnings += advice(plan, main_plan, census, main.results, single=single)
        lost = [sentence for part in self.parts for sentence in part.lost]
        if lost:
            incomplete_reason = f"requests are lost: {'; '.join(lost)}"
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
            config=plan.input_config(),
            valid=main.valid,
            failed=main.failed,
            cancelled=cancelled,
            complete=not cancelled and incomplete_reason is None,
            incomplete_reason=incomplete_reason,
            seed=plan.seed,
            outcomes=named(census.kinds),
            survival=survival(self.catalogue, self.folds.get(main_plan.index, {})),
            slices=self._slices(main_plan),
            slice_duration_s=None if plan.slice_ns is None else plan.slice_ns / 1e9,
            urls=self._urls(main_plan, census),
            telemetry=telemetry(self.journal, [self._sampled(phase) for phase in plan.phases]),
            observation_window_s=(end - begin) / 1e9 if end > begin else None,
            benchmark_duration_s=_duration_s(census),
            warnings=tuple(dict.fromkeys([*warnings, *self.warnings, *self.analyses.warnings, *self.failures])),
            run_warnings=warnings,
            extra={"failures": failures} if (failures := list(dict.fromkeys(self.failures))) else {},
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
        wall = self.clock.started_wall_ns
        results = totals.results() | self.analyses.results(phase.index, [(begin, end)])[0]
        self.warnings += totals.warnings
        return PhaseSummary(
            phase.name, phase.kind, phase.index, wall + round(begin), wall + round(end), results, _errors(census.errors),
            valid, failed,
        )  # fmt: skip

    def _slices(self, phase: PhasePlan) -> tuple[Slice, ...]:
        """The phase's time slices; the last ends with the phase."""
        width = self.plan.slice_ns
        if width is None:
            return ()
        begin, end = map(round, self._window(phase))
        count = max(1, math.ceil((end - begin) / width))
        if count > MOST_SLICES:
            self.warnings.append(
                f"no time slices: {count:,} of {width / 1e9:g} s in one phase are more than {MOST_SLICES:,};"
                " report again with a longer --slice-duration"
            )
            return ()
        ends = [min(begin + (i + 1) * width, end) for i in range(count)]
        together = self._together(phase, BySlice.name, count)
        found = parts(self.catalogue, together, range(count), lambda i: (ends[i] - begin - i * width) / 1e9)
        windows = [(begin + i * width, end) for i, end in enumerate(ends)]
        analysed = self.analyses.results(phase.index, windows)
        wall = self.clock.started_wall_ns
        return tuple(
            Slice(
                wall + windows[i][0], wall + ends[i], results | analysed[i], tally.started, named(tally.kinds),
                complete=ends[i] == begin + (i + 1) * width,
            )
            for i, tally, results in found
        )  # fmt: skip

    def _urls(self, phase: PhasePlan, census: Census) -> tuple[UrlSummary, ...]:
        """What each URL did, where there are several."""
        urls = self.plan.urls
        if len(urls) == 1:
            return ()
        together, duration_s = self._together(phase, ByUrl.name, len(urls)), _duration_s(census)
        found = parts(self.catalogue, together, range(len(urls)), lambda _: duration_s)
        return tuple(
            UrlSummary(without_secrets(urls[i]), results, tally.started, named(tally.kinds), _errors(tally.errors))
            for i, tally, results in found
        )

    def _together(self, phase: PhasePlan, grouping: str, count: int) -> Together:
        groups = [each for part in self.parts for each in part.groups]
        wanted = [each for each in groups if (each.phase, each.grouping) == (phase.index, grouping)]
        return Together(wanted, 0, count - 1)

    def _window(self, phase: PhasePlan) -> tuple[float, float]:
        """The phase's begin and end in ns since the run's start; what was observed where the journal doesn't say."""
        census = self.census.get(phase.index, Census())
        begin = min(self._moments(phase, "begin"), default=finite(census.first_start_ns) or 0.0)
        return begin, max([*self._moments(phase, "end"), finite(census.last_end_ns) or begin, begin])

    def _sampled(self, phase: PhasePlan) -> Window:
        """The phase on the clock of telemetry samples."""
        zero = self.clock.started_mono_ns
        begin, end = self._window(phase)
        return Window(phase.index, zero + begin, zero + end)

    def _moments(self, phase: PhasePlan, event: str) -> list[float]:
        """When the shards said that this happened to the phase, in ns since the run's start."""
        zero = self.clock.started_mono_ns
        said = [value for _, kind, value in self.side if kind == journal.PHASE]
        return [value["at_ns"] - zero for value in said if (value["phase"], value["event"]) == (phase.index, event)]

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
        asked = asked_rate(phase, self._due_ns(phase))
        if not census.outcomes:
            return DeliveredLoad(None, None, found.never_sent, asked)
        kept = self.folds.get(phase.index, {})
        return delivered(phase, census, found, kept.get(LATE), kept.get(HELD), begin_ns, asked)

    def _due_ns(self, phase: PhasePlan) -> Ints:
        """When arrivals are due after the phase's start, -1 where the schedule doesn't say; none where nothing is due."""
        if phase.due_file is None:
            return np.empty(0, dtype=np.int64)
        return intfile.read(self.journal / Path(phase.due_file).name)

    def _plugins(self) -> tuple[PluginUsed, ...]:
        plan = self.plan
        refs = [plan.endpoint, plan.transport, plan.dataset, *([plan.tokenizer] if plan.tokenizer else [])]
        refs += [ref for ref in (plan.grader, plan.ui, plan.engine, plan.url_strategy) if ref is not None]
        refs += [plan.samplers[plan.sampling]] if plan.sampling in plan.samplers else []
        refs += [*plan.schedules.values(), *plan.arrivals.values(), *plan.ramps.values()]
        refs += [*plan.metrics, *plan.exporters, *plan.telemetry, *plan.hooks]
        given = plan.config.get("plugins", {})
        return tuple(
            PluginUsed(
                ref.category, ref.name, ref.distribution, ref.version, plan.shadowed.get(key_of(ref), ()),
                given.get(key_of(ref), {}),
            )
            for ref in refs
        )  # fmt: skip

    def _never_sent(self, phase: PhasePlan) -> None:
        """Ledger rows of planned arrivals that nobody sent: one more part behind the reducers' own."""
        count = planned(phase)
        if count is None:
            return
        claimed = np.zeros(count, dtype=bool)
        sent = self.folds.get(phase.index, {}).get(ARRIVAL)
        if sent is not None:
            numbers = sent.values().astype(np.int64)
            claimed[numbers[numbers < count]] = True
        missing = np.flatnonzero(~claimed)
        due = np.full(count, np.nan)
        begins = self._moments(phase, "begin")
        if phase.due_file is not None and begins:  # a phase that never began has no instants
            after = self._due_ns(phase)
            due[after >= 0] = after[after >= 0] + min(begins)
        for ref, exporter in batch_exporters(self.plan, target_for(self.plan, self.clock)) if len(missing) else ():
            try:
                with part_path(self.journal, ref.name, self.plan.reducers).open("ab") as part:
                    for at in range(0, len(missing), _NEVER_SENT_BATCH):
                        rows = missing[at : at + _NEVER_SENT_BATCH]
                        part.write(exporter.rows(Scored(_unsent(rows, due[rows], phase, self.journal), {}, {})))
            except OSError:
                raise
            except Exception as error:  # strangers' code
                self.failures.append(f"{who(ref)} failed: {why(error)}")
                log.warning("%s", self.failures[-1], exc_info=error)


def _server_counts(found: Iterable[Census]) -> list[str]:
    """What is wrong with the server's own token counts, where those are used."""
    each = list(found)
    valid = sum(census.outcomes.get(journal.COMPLETED, 0) for census in each)
    silent, clamped = sum(census.silent for census in each), sum(census.clamped for census in each)
    sentences = []
    if silent:
        sentences.append(
            f"the server sent no token counts with {silent:,} of {valid:,} answers: those have no token metrics;"
            " drop --use-server-token-count to count them here"
        )
    if clamped:
        sentences.append(f"{clamped:,} answers say more reasoning tokens than output tokens; their output is taken to be 0")
    return sentences


def _errors(counts: Counts) -> tuple[ErrorCount, ...]:
    """By when each was first; one without an instant stays where it is."""
    seen = sorted(counts.items(), key=lambda each: each[1][1])
    return tuple(ErrorCount(msgspec.json.decode(text, type=ErrorDetails), count) for text, (count, _) in seen)


def _duration_s(census: Census) -> float | None:
    """First request start to last response end, over everything that was sent."""
    span = census.last_end_ns - census.first_start_ns
    return span / 1e9 if math.isfinite(span) and span > 0 else None


def _unsent(numbers: Ints, due: Floats, phase: PhasePlan, directory: Path) -> RecordBatch:
    """Arrivals of which nothing is known but their numbers and due times, and whose they would have been."""
    count = len(numbers)
    columns: dict[str, Column] = {name: np.full(count, np.nan) for name in (*NUMBERS, *GRADES)}
    columns |= {"n": numbers.astype(np.float64), "due_ns": due}
    columns |= {"phase": np.full(count, float(phase.index)), "outcome": np.full(count, float(journal.NEVER_SENT))}
    columns |= _whose(numbers, phase, directory)
    none: list[list[float]] = [[]] * count
    columns |= {name: ragged(none, none) for name in ("chunk_ns", "gap_ns", "piece_count")}
    return RecordBatch(columns, np.zeros(count, dtype=bool), dict.fromkeys(TEXTS, [None] * count))


def _whose(numbers: Ints, phase: PhasePlan, directory: Path) -> dict[str, Floats]:
    """Sessions and turns of arrivals, where those don't depend on the answers."""
    if phase.sessions_file is not None:
        rows = intfile.read(directory / Path(phase.sessions_file).name).reshape(-1, 3)
        session = np.searchsorted(rows[:, 2], numbers, side="right") - 1
        turn, entry = numbers - rows[session, 2], rows[session, 0]
        return {"session": session.astype(np.float64), "turn": turn.astype(np.float64), "entry": entry.astype(np.float64)}
    if Store(directory).max_turns == 1:
        return {"session": numbers.astype(np.float64), "turn": np.zeros(len(numbers))}
    return {}
