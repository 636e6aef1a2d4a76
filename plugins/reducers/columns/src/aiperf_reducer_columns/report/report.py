"""The summary of a run: from its reducers at the end, or later from its directory, without a server."""

from __future__ import annotations

import logging
import math
import shutil
from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from aiperf.parts import journal
from aiperf.parts.journal import Store
from aiperf.parts.loading import isolated, load
from aiperf.parts.reporting import target_for
from aiperf.parts.samples import read_samples, sample_files
from aiperf.sdk.endpoint import Endpoint
from aiperf.sdk.errors import BadJournal
from aiperf.sdk.plan import PhasePlan, Plan, Secrets
from aiperf.sdk.redaction import private, without_secrets
from aiperf.sdk.reducer import ReducerJob, plugins_used
from aiperf.sdk.series import MOST_SLICES, Window
from msgspec.structs import replace

from aiperf_reducer_columns.reduce.batches import REST
from aiperf_reducer_columns.reduce.reducer import Reduction, collecting_rarely, saved_reductions
from aiperf_reducer_columns.reduce.ungraded import least
from aiperf_reducer_columns.report.again import begin_grading, grades_wait, reduced_again, watch_for
from aiperf_reducer_columns.report.evidence import (
    Loops,
    arrivals,
    asked_rate,
    delivered,
    evidence,
    measurement,
    read_loops,
)
from aiperf_reducer_columns.report.kept import Kept
from aiperf_reducer_columns.report.planned_trees import PlannedTrees
from aiperf_reducer_columns.report.scenarios import provenance, ruled, source_facts
from aiperf_reducer_columns.report.tables import tables
from aiperf_reducer_columns.report.tree_turns import TreeTurns
from aiperf_reducer_columns.report.unsent import due_times, unsent_batches, unsent_numbers, write_rest
from aiperf_reducer_columns.report.verdicts import concluded, findings, sentences

from aiperf.sdk.summary import (  # isort: skip
    Arrivals, DeliveredLoad, PhaseSummary, Slice, SourceSummary, Summary, UrlSummary,
)  # fmt: skip
from aiperf.sdk.table import TAKEN
from aiperf.sdk.verdict import FindingLevel

from aiperf_reducer_columns.report.sources import lacking, summaries
from aiperf_reducer_columns.statistics.catalogue import catalogue
from aiperf_reducer_columns.statistics.described import PERCENTILES
from aiperf_reducer_columns.statistics.fold import merged_buckets
from aiperf_reducer_columns.statistics.grouped import BySlice, ByUrl, MergedGroups
from aiperf_reducer_columns.statistics.phase_counts import PhaseCounts, listed
from aiperf_reducer_columns.statistics.pipeline import ARRIVAL, HELD, LATE, POLLS, SLIP, TURNAROUND
from aiperf_reducer_columns.statistics.text_groups import TextGroups
from aiperf_reducer_columns.statistics.totals import Analyses, PhaseTotals, merged_folds, parts, survival

log = logging.getLogger("aiperf.reducer")

_NO_VERDICTS = "no plugin of the category verdicts is in use; aiperf-verdict-measurement is one"


def report(directory: Path, change: Callable[[Plan], Plan] | None = None) -> tuple[Summary, Plan, journal.RunClock]:
    """Reduce a run's directory again and summarise it; the parts of batch exporters are written again.

    *change* turns the run's plan into the plan of the report: other metrics, options of metrics, or slices.

    Raises:
        BadJournal: The directory holds no run.
        OSError: The directory can't be read or written.
    """
    journal_path = directory / "journal"
    plan, clock = journal.load_run(journal_path)
    end = journal.load_end(journal_path)
    files = [path for pattern in ("columns-*.*", "shard-*.seg") for path in journal.numbered(journal_path, pattern)]
    if not files and not (end and any(end.requests.values())):
        raise BadJournal(f"{directory} holds a plan but no observations: the run ended before anything was sent")
    plan = plan.replacing(artifacts=str(directory.absolute()), journal=str(journal_path.absolute()))
    plan = plan if change is None else change(plan)
    with journal.hold(journal_path), collecting_rarely():
        if plan.plugins.grading_again:
            begin_grading(plan, journal_path)
        summary = write_summary(journal_path, plan=plan, reductions=[reduced_again(plan, clock, journal_path)])
    return summary, plan, clock


def merged_early(journal_path: Path, secrets: Secrets, reductions: list[Reduction] | None) -> Merging | None:
    """The part of a summary that needs no samples of telemetry, for :func:`write_summary`; None where that isn't whole."""
    plan, clock = journal.load_run(journal_path)
    parts = reductions or saved_reductions(journal_path)
    if _cut(parts) or any(part.pending for part in parts):  # they are reduced again, or graded
        return None
    made = Merging(secrets.restored(plan), clock, journal_path, parts)
    if (series := plan.plugins.series) is not None and plan.plugins.telemetry:
        with isolated(series, lambda sentence: None):  # told when it makes the summary
            load(series).preload()
            for path in sample_files(journal_path):
                next(read_samples(path), None)  # makes the decoder
    return made


def write_summary(
    journal_path: Path, *, secrets: Secrets | None = None, plan: Plan | None = None,
    reductions: list[Reduction] | None = None, merged: Merging | None = None, job: ReducerJob | None = None,
) -> Summary:  # fmt: skip
    """Merge the reducers' work into ``summary.msgpack``, and add arrivals without a request to the ledger.

    *secrets*: options of plugins that the saved plan lacks; None in a report.  *plan*: None for the saved plan.
    *reductions*: None for those that the reducers saved.  *merged*: what :func:`merged_early` gave, for this once.
    *job*: of the run, which may wait for grades; None in a report.
    """
    if merged is None:
        merged = _merged(journal_path, secrets, plan, reductions, job)
    summary = merged.summary()
    draft = journal_path / "summary.draft"
    private(draft).write_bytes(msgspec.msgpack.encode(summary))
    draft.replace(journal_path / "summary.msgpack")
    for spent in [*journal_path.glob("fold-*"), *journal_path.glob("folds-*")]:
        spent.unlink()  # a report makes them again from the columns
    shutil.rmtree(journal_path / REST, ignore_errors=True)
    return summary


def _cut(parts: list[Reduction]) -> bool:
    """Whether answers count as good that may have been cut."""
    return any(part.finishing for part in parts) and any(part.endless for part in parts)


def _merged(
    journal_path: Path, secrets: Secrets | None, plan: Plan | None, reductions: list[Reduction] | None,
    job: ReducerJob | None,
) -> Merging:  # fmt: skip
    own, clock = journal.load_run(journal_path)
    whole = (secrets or Secrets()).restored(plan or own)
    parts = reductions or saved_reductions(journal_path)
    if _cut(parts):
        pending = sum(part.pending for part in parts)
        parts = [reduced_again(whole, clock, journal_path, finishing=True, watch=watch_for(job, pending))]
    elif pending := sum(part.pending for part in parts):
        end = journal.load_end(journal_path)
        if end is None or end.cancelled or end.hurried:  # whoever ends a run wants its end
            parts[0].notes.append(grades_wait(pending))
        else:
            parts = [reduced_again(whole, clock, journal_path, watch=watch_for(job, pending))]
    return Merging(whole, clock, journal_path, parts)


class Merging:
    """Merges the work of a run's reducers into its summary, once."""

    def __init__(self, plan: Plan, clock: journal.RunClock, journal_path: Path, parts: list[Reduction]) -> None:
        self.plan, self.clock, self.journal, self.parts = plan, clock, journal_path, parts
        self._percentiles = sorted({*PERCENTILES, *plan.output.asked_percentiles})
        self.folds = defaultdict(dict, merged_folds((part.folds for part in self.parts), self._percentiles))
        self.events = [event for part in parts for event in part.events]
        self.counts: defaultdict[int, PhaseCounts] = defaultdict(PhaseCounts)
        for part in self.parts:
            for phase, counts in part.counts.items():
                self.counts[phase].merge(counts)
        endpoint: type[Endpoint[Any]] = load(plan.plugins.endpoint)
        self.title = endpoint.capabilities.title
        self.catalogue = catalogue(plan, endpoint)
        self.warnings = [*self.catalogue.warnings, *(sentence for part in self.parts for sentence in part.off.values())]
        self.warnings += [sentence for part in self.parts for sentence in part.notes]
        self.failures = [sentence for part in self.parts for sentence in part.failures]
        # A metric that failed in one reducer lacks that reducer's values.
        self.catalogue.switch_off(tag for part in self.parts for tag in part.off)
        self.by_text = TextGroups(self.catalogue, [(part.groups, part.plugin_folds) for part in parts], self._percentiles)
        self.plugin_folds = self.by_text.plugin_folds
        self.phase_folds = {phase.index: self.plugin_folds.results(phase.index).get(0, {}) for phase in plan.load.phases}
        self.catalogue.switch_off(self.plugin_folds.off)
        states = [state for part in self.parts for state in part.raw_values]
        self.analyses = Analyses(self.catalogue, states, plan.output, PlannedTrees(self.journal).of)
        self.lost = [sentence for part in self.parts for sentence in part.lost]
        if missing := sum(part.missing for part in self.parts):
            sent = missing + sum(sum(counts.outcomes.values()) for counts in self.counts.values())
            self.lost.append(f"{missing:,} of {sent:,} requests are in no file")

    @cached_property
    def end(self) -> journal.RunEnd | None:
        """What the run noted of its end, when the summary is made."""
        return journal.load_end(self.journal)

    def summary(self) -> Summary:
        plan, ended = self.plan, self.end or journal.RunEnd(incomplete="the run did not record its end")
        phases = [self._phase(phase) for phase in plan.load.phases]
        main_plan = next(phase for phase in plan.load.phases if phase.kind == "profiling")
        main = next(phase for phase in phases if phase.kind == "profiling")
        begin, end = self._window(main_plan)
        for phase in plan.load.phases:
            self._write_unsent(phase)
        counts, folds, slices = self.counts[main_plan.index], self.folds[main_plan.index], self._slices(main_plan)
        known, turns = self._accounts_for(main_plan), self._trees.counts(main_plan.index)
        outcome = arrivals(main_plan, counts, folds.get(LATE), folds.get(HELD), known=known, turns=turns)
        reasons = [ended.incomplete] if ended.incomplete is not None else []
        reasons += self._unseen() if ended.cancelled or self.end is None else []
        reasons += [f"requests are lost: {'; '.join(self.lost)}"] if self.lost else []
        reasons = reasons or ([f"{outcome.unfinished} requests have no end"] if outcome.unfinished else [])
        extra = {"failures": list(dict.fromkeys(self.failures)), "lost": self.lost, "dataset": source_facts(plan)}
        lateness = merged_buckets(part.lateness for part in self.parts)
        loops = read_loops(self.events, {each.index for each in plan.load.phases if each.kind == "profiling"})
        measured = measurement(
            plan, counts, outcome, folds.get(SLIP), folds.get(TURNAROUND), loops,
            lateness=lateness, clock_steps=sum(part.clock_steps for part in self.parts), polls=folds.get(POLLS),
            sites=ended.sites or None, machine=ended.machine,
        )  # fmt: skip
        survived, urls = survival(self.catalogue, folds, self._percentiles), self._urls(main_plan, counts)
        late = [*self.plugin_folds.off.values(), *self.analyses.warnings, *self.by_text.warnings]
        late += lacking(self._telemetry, {each.index: each.name for each in plan.load.phases}, plan.plugins.given)
        summary = Summary(
            plan.run.run_id, plan.run.version, main.results, main.errors, tuple(phases), measured,
            self._delivered(main_plan, counts, outcome, begin),
            plugins_used(plan, self.catalogue.shadowed), main.start_ns, main.end_ns, title=self.title, command=plan.run.command,
            config=plan.input_config(),
            valid=main.valid, failed=main.failed, cancelled=ended.cancelled, incomplete_reason="; ".join(reasons) or None,
            complete=not ended.cancelled and not reasons, seed=plan.run.seed, outcomes=counts.outcomes,
            finish_reasons=dict(sorted(counts.reasons.items(), key=lambda each: (-each[1], each[0]))),
            survival=survived, slices=slices, urls=urls, groups=tuple(self.by_text.made),
            ungraded=tuple(least(each for part in self.parts for each in part.ungraded)),
            slice_duration_s=None if plan.output.slice_ns is None else plan.output.slice_ns / 1e9,
            telemetry=self._telemetry, provenance=provenance(plan),
            observation_window_s=_seconds(end - begin), benchmark_duration_s=_duration_s(counts),
            warnings=tuple(dict.fromkeys([*ended.warnings, *self.warnings, *late, *self.failures])),
            run_warnings=ended.warnings, extra={name: told for name, told in extra.items() if told},
        )  # fmt: skip
        return self._judged(summary, main_plan, loops, begin)

    @cached_property
    def _telemetry(self) -> tuple[SourceSummary, ...]:
        """The telemetry sources, their series by phase and by time slice."""
        zero = self.clock.started_mono_ns
        main = next(phase for phase in self.plan.load.phases if phase.kind == "profiling")
        slices = [Window(main.index, zero + a, zero + b) for a, b in self._slice_windows(main)]
        return tuple(summaries(self.journal, self.plan.plugins, self._windows, slices, self.warnings.append))

    @cached_property
    def _windows(self) -> tuple[Window, ...]:
        """A window for each phase."""
        zero = self.clock.started_mono_ns
        return tuple(Window(each.index, *(zero + round(at) for at in self._window(each))) for each in self.plan.load.phases)

    def _judged(self, summary: Summary, phase: PhasePlan, loops: Loops, begin_ns: float) -> Summary:
        """The summary with what the verdicts find."""
        intervals = merged_buckets(part.intervals for part in self.parts)
        first = merged_buckets(part.first_intervals for part in self.parts)
        known = evidence(
            summary, self.plan, phase, self.counts, loops, self.events, intervals=intervals, first_intervals=first,
            turnarounds=self.folds[phase.index].get(TURNAROUND), zero_ns=self.clock.started_mono_ns, begin_ns=begin_ns,
            single_turn=Store(self.journal).max_turns == 1, models=[pair for part in self.parts for pair in part.models],
            windows=self._windows, looks=None if self.end is None else self.end.looks,
        )  # fmt: skip
        kept, failures = Kept(self.journal, phase.index, again=any(part.again for part in self.parts)), list[str]()
        known = kept.shown_in(known)
        made, facts = tables(self.plan, known, {*TAKEN, *self.catalogue.metrics}, self._report)
        summary = replace(summary, tables=made, extra=summary.extra | facts)
        found = findings(self.plan, replace(known, summary=summary), failures.append)
        lacking = "a verdict failed, see the warnings" if failures else None if self.plan.plugins.verdicts else _NO_VERDICTS
        more = [*summary.run_warnings, *self.warnings, *sentences(found, FindingLevel.ADVICE), *failures, *summary.warnings]
        summary = replace(summary, measurement=concluded(summary, found, lacking), warnings=tuple(dict.fromkeys(more)))
        return ruled(self.plan, replace(known, summary=summary))

    def _accounts_for(self, phase: PhasePlan) -> bool:
        """Whether every request of the phase that was sent is known: by number, or because the shard has noted its end.

        A worker that took the place of one that died can't speak for what that one had not yet written.
        """
        events = [(shard, value) for shard, kind, value in self.events if kind == journal.PHASE]
        own = [(shard, value) for shard, value in events if value["phase"] == phase.index]
        ended = {shard for shard, value in own if value["event"] == "end"}
        ended -= {shard for shard, value in own if value.get("resumed")}
        numbered = set() if self.end is None else self.end.requests.keys()
        return not self.lost and ended | numbered >= set(range(self.plan.run.workers))

    def _unseen(self) -> Iterator[str]:
        """What of each phase was not seen, in a run that was cut short."""
        for phase in self.plan.load.phases:
            (begin, end), count = self._window(phase), self._trees.planned(phase)
            sent = sum(self.counts[phase.index].outcomes.values())
            if not sent and not self._instants(phase, "begin"):
                yield f"phase {phase.name} did not begin"
            elif phase.duration_ns is not None and end - begin < phase.duration_ns:
                yield f"phase {phase.name} was seen for {(end - begin) / 1e9:.1f} of {phase.duration_ns / 1e9:g} s"
            elif count is not None and sent < count:
                yield f"of phase {phase.name} {sent:,} of {count:,} arrivals were seen"

    def _write_unsent(self, phase: PhasePlan) -> None:
        """Hand what the phase has not sent to the batch exporters, as a part behind those of the reducers."""
        unsent = unsent_numbers(self._trees.planned(phase), self.folds[phase.index].get(ARRIVAL))
        outcome = journal.NEVER_SENT if self._accounts_for(phase) else journal.UNKNOWN
        begin_ns = min(self._instants(phase, "begin"), default=np.nan)
        rest = unsent_batches(unsent, phase, self.journal, outcome, begin_ns, self.plan.run.sites)
        batches = chain(rest, self._trees.batches(phase.index))
        write_rest(batches, self.plan, target_for(self.plan, self.clock), self.journal, self._report)

    @cached_property
    def _trees(self) -> TreeTurns:
        again = any(part.again for part in self.parts)
        return TreeTurns(self.plan, self.journal, self.events, self._accounts_for, again=again)

    def _phase(self, phase: PhasePlan) -> PhaseSummary:
        counts, (begin, end) = self.counts[phase.index], self._window(phase)
        (analyses,) = self.analyses.results(phase.index, [(begin, end)])
        series = [series for source in self._telemetry for series in source.series if series.phase == phase.index]
        totals = PhaseTotals(
            self.catalogue, {**self.folds[phase.index], **self.phase_folds[phase.index]}, duration_s=_duration_s(counts),
            window_s=_seconds(end - begin), valid=counts.valid, failed=counts.failed, analyses=analyses,
            telemetry=lambda: series, concurrency=phase.concurrency, percentiles=self._percentiles,
        )  # fmt: skip
        wall = self.clock.started_wall_ns
        results = totals.results() | analyses | self.by_text.results(phase, _duration_s(counts))
        self.warnings += totals.warnings
        return PhaseSummary(
            phase.name, phase.kind, phase.index, wall + round(begin), wall + round(end), results, listed(counts.errors),
            counts.valid, counts.failed,
        )  # fmt: skip

    def _slice_windows(self, phase: PhasePlan) -> list[tuple[int, int]]:
        """Begin and end of the phase's time slices, in ns since the run's start; the last ends with the phase."""
        width = self.plan.output.slice_ns
        if width is None:
            return []
        begin, end = map(round, self._window(phase))
        count = max(1, math.ceil((end - begin) / width))
        if count > MOST_SLICES:
            self.warnings.append(
                f"no time slices: {count:,} of {width / 1e9:g} s in one phase are more than {MOST_SLICES:,};"
                " report again with a longer --slice-duration"
            )
            return []
        return [(begin + i * width, min(begin + (i + 1) * width, end)) for i in range(count)]

    def _slices(self, phase: PhasePlan) -> tuple[Slice, ...]:
        """The phase's time slices."""
        width, windows = self.plan.output.slice_ns, self._slice_windows(phase)
        if not windows:
            return ()
        count = len(windows)
        analyses = self.analyses.results(phase.index, windows)
        slices = parts(
            self.catalogue, self._merged_groups(phase, BySlice.name, count), range(count),
            lambda i: (windows[i][1] - windows[i][0]) / 1e9, analyses=analyses,
            plugin_folds=self.plugin_folds.results(phase.index, BySlice.name, count - 1),
            telemetry=lambda i: [series for source in self._telemetry for series in source.slices[i]],
        )  # fmt: skip
        wall = self.clock.started_wall_ns
        return tuple(
            Slice(
                wall + windows[i][0], wall + windows[i][1], results | analyses[i], tally.started, tally.outcomes,
                complete=windows[i][1] - windows[i][0] == width,
            )
            for i, tally, results in slices
        )  # fmt: skip

    def _urls(self, phase: PhasePlan, counts: PhaseCounts) -> tuple[UrlSummary, ...]:
        """The summary of each URL, where there are several."""
        urls = self.plan.target.urls
        if len(urls) == 1:
            return ()
        groups, duration_s = self._merged_groups(phase, ByUrl.name, len(urls)), _duration_s(counts)
        folds = self.plugin_folds.results(phase.index, ByUrl.name, len(urls) - 1)
        summaries = parts(self.catalogue, groups, range(len(urls)), lambda _: duration_s, plugin_folds=folds)
        return tuple(
            UrlSummary(without_secrets(urls[i]), results, tally.started, tally.outcomes, listed(tally.errors))
            for i, tally, results in summaries
        )

    def _merged_groups(self, phase: PhasePlan, grouping: str, count: int) -> MergedGroups:
        groups = [groups for part in self.parts for groups in part.groups]
        chosen = [each for each in groups if (each.phase, each.grouping) == (phase.index, grouping)]
        return MergedGroups(chosen, 0, count - 1, self._percentiles)

    def _window(self, phase: PhasePlan) -> tuple[float, float]:
        """Begin and end of the phase in ns since the run's start; from its requests where the journal lacks them."""
        counts = self.counts[phase.index]
        begin = min(self._instants(phase, "begin"), default=counts.first_start_ns if counts.kinds else 0.0)
        return begin, max(*self._instants(phase, "end"), counts.last_end_ns, begin)

    def _instants(self, phase: PhasePlan, event: str) -> list[float]:
        """Instants of this event of the phase, one per shard, in ns since the run's start."""
        zero = self.clock.started_mono_ns
        values = [value for _, kind, value in self.events if kind == journal.PHASE]
        return [value["at_ns"] - zero for value in values if (value["phase"], value["event"]) == (phase.index, event)]

    def _delivered(self, phase: PhasePlan, counts: PhaseCounts, outcome: Arrivals, begin_ns: float) -> DeliveredLoad:
        asked = asked_rate(phase, due_times(phase, self.journal))
        if not counts.kinds:
            return DeliveredLoad(None, None, outcome.never_sent, asked)
        folds, complete = self.folds[phase.index], self._instants(phase, "sending_complete")
        return delivered(phase, counts, outcome, folds.get(LATE), folds.get(HELD), begin_ns, asked, complete)

    def _report(self, failure: str) -> None:
        self.failures.append(failure)
        log.warning("%s", failure)


def _duration_s(counts: PhaseCounts) -> float | None:
    """From the first start of a request to the last end of one; None where nothing ended."""
    return _seconds(counts.last_end_ns - counts.first_start_ns)


def _seconds(span_ns: float) -> float | None:
    return span_ns / 1e9 if span_ns > 0 else None  # -inf where nothing ended
