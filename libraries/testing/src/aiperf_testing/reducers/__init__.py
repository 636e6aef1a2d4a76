"""The contract of reducers: every request is counted once, whatever died, and a report repeats the summary."""

from __future__ import annotations

from pathlib import Path

from aiperf_testing.journals import Plain
from aiperf_testing.manifests import check_row
from aiperf_testing.reducers.load import SampleLoad
from aiperf_testing.reducers.reporting import ReportTests
from aiperf_testing.reducers.running import RunningTests


class ReducerContract(RunningTests, ReportTests):
    """Subclass with a plugin's class::

        class TestMineKeepsTheContract(ReducerContract):
            reducer = Mine

    The contract writes the journal of a run of two workers, and has it reduced in this process, without a run.  A request is
    good where its answer came whole with content, and has failed where the server said 503.
    """

    def test_its_manifest_says_what_it_is(self) -> None:
        check_row("reducers", self.reducer)

    def test_a_plan_is_taken(self, tmp_path: Path) -> None:
        plan = SampleLoad(tmp_path).plan
        self._reducer().check(plan, Plain())
        self._reducer().preload(plan)
