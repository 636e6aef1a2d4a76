"""A reducer in this process, without a run."""

from __future__ import annotations

import gc
import os
import sys
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest
from aiperf.sdk.plan import Plan, Secrets
from aiperf.sdk.reducer import Reducer, ReducerJob, RunningReduction
from aiperf.sdk.summary import Summary

from aiperf_testing.findings import unlike
from aiperf_testing.journals import CLOCK
from aiperf_testing.reducers.load import SampleLoad, finished, steps


class OnJournal:
    """A reducer over the journal of a :class:`SampleLoad`: it begins, reduces, reports, or dies."""

    reducer: ClassVar[type[Reducer[Any]]]
    options: ClassVar[Any] = None

    @pytest.fixture(autouse=True)
    def _process(self) -> Iterator[None]:
        """A reducer has a process of its own, and may change its priority and its garbage collector."""
        policy, priority, thresholds = os.sched_getscheduler(0), os.sched_getparam(0), gc.get_threshold()
        yield
        os.sched_setscheduler(0, policy, priority)
        gc.set_threshold(*thresholds)

    def _reducer(self) -> Reducer[Any]:
        return type(self).reducer(type(self).options)

    def _begun(self, load: SampleLoad, index: int = 0) -> RunningReduction:
        def trouble(sentence: str) -> None:
            pytest.fail(f"it ends the load: {sentence}", pytrace=False)

        job = ReducerJob(
            load.plan, load.journal, index, CLOCK, Secrets(), say=lambda level, lines: None, trouble=trouble,
            moved=lambda: None, warned=tuple,
        )  # fmt: skip
        reduction = self._reducer().begin(job)
        assert isinstance(reduction, RunningReduction), unlike(type(reduction), "RunningReduction", "begin must return one")
        return reduction

    def _reduced(self, load: SampleLoad) -> Summary:
        """The summary of all that is in the journal, by new reducers."""
        running = [self._begun(load, index) for index in range(load.plan.run.reducers)]
        for reduction in running:
            steps(reduction)
        return finished(running, load)

    def _report(self, directory: Path, change: Callable[[Plan], Plan] | None = None) -> Summary:
        summary, _, clock = self._reducer().report(directory, change)
        assert isinstance(summary, Summary) and clock == CLOCK, (
            unlike(type(summary), Summary, "report gives a Summary, and the clock of the run")
        )
        return summary

    def _died(self, load: SampleLoad, work: Callable[[RunningReduction], object], *indices: int) -> None:
        """Let these reducers work in a process that dies then: what they only had in memory is gone."""
        sys.stdout.flush()
        pid = os.fork()
        if pid == 0:
            try:
                for index in indices:
                    work(self._begun(load, index))
            except BaseException:  # noqa: BLE001  # also a failed assertion; nothing of pytest may go on here
                traceback.print_exc()
                os._exit(1)
            os._exit(0)
        assert os.waitpid(pid, 0)[1] == 0, "a reducer failed, see its traceback above"
