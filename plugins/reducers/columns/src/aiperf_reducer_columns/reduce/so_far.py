"""What verdicts say of a run under way."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

from aiperf.parts.loading import isolated
from aiperf.sdk.descriptor import PluginRef
from aiperf.sdk.plan import Plan
from aiperf.sdk.snapshot import Snapshot, VerdictSoFar
from aiperf.sdk.verdict import Finding, FindingLevel, UnfinishedRun, Verdict

from aiperf_reducer_columns.reduce.kept_samples import kept_samples
from aiperf_reducer_columns.reduce.recent import loaded
from aiperf_reducer_columns.statistics.lateness import late_ns

log = logging.getLogger("aiperf.reducer")


class VerdictsSoFar:
    """The verdicts of the plan that can judge unfinished runs; one that fails is left out, and the run's end tells of it."""

    def __init__(self, plan: Plan, journal: Path) -> None:
        self._plan, self._journal = plan, journal
        self._verdicts: list[tuple[PluginRef, Verdict[Any]]] | None = None

    def judge(self, snapshot: Snapshot) -> VerdictSoFar | None:
        if self._verdicts is None:
            self._verdicts = [(ref, verdict) for ref, verdict in loaded(self._plan) if verdict.unfinished]
        phase = next((each for each in self._plan.load.phases if each.name == snapshot.phase), None)
        if not self._verdicts or phase is None:
            return None
        run = UnfinishedRun(
            snapshot, self._plan.public(), phase, late_ns(phase), lambda source: kept_samples(self._journal, source)
        )
        found: list[Finding] = []
        for ref, verdict in [*self._verdicts]:
            failures: list[str] = []
            with isolated(ref, failures.append):
                told = verdict.judge_unfinished(run)
                found += [told] if isinstance(told, Finding) else list(told or ())
            if failures:
                log.debug("%s", failures[0])
                self._verdicts.remove((ref, verdict))
        reasons = tuple(each.sentence for each in found if each.level is FindingLevel.SUSPECT)
        notes = tuple(each.sentence for each in found if each.level is FindingLevel.NOTE)
        return VerdictSoFar("suspect" if reasons else "trustworthy", reasons, notes, snapshot.elapsed_s)
