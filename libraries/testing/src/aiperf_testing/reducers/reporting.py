"""What a reducer reports of a directory, without a run."""

from __future__ import annotations

from pathlib import Path

import pytest
from aiperf.errors import BadJournal

from aiperf_testing.findings import unlike
from aiperf_testing.reducers.load import COUNTS, SHARDS, SampleLoad, counts
from aiperf_testing.reducers.stage import OnJournal


class ReportTests(OnJournal):
    """A report repeats the summary, or makes the one that a killed run left out."""

    @pytest.mark.parametrize("reducers", [1, SHARDS])
    def test_a_report_has_the_same_counts(self, tmp_path: Path, reducers: int) -> None:
        load = SampleLoad(tmp_path / "run", reducers).whole()
        summary = self._reduced(load)
        for _ in range(2):
            told = self._report(load.directory)
            assert (counts(told), told.outcomes, told.complete) == (counts(summary), summary.outcomes, True), (
                unlike(counts(told), counts(summary), "the report has the counts of the run")
            )
            assert load.summary() == told, "a report replaces the summary of the directory"

    def test_a_report_goes_where_the_directory_went(self, tmp_path: Path) -> None:
        load = SampleLoad(tmp_path / "run").whole()
        self._reduced(load)
        (tmp_path / "run").rename(tmp_path / "moved")
        summary, plan, _ = self._reducer().report(tmp_path / "moved", lambda plan: plan.replacing(verbose=True))
        assert counts(summary) == COUNTS and not (tmp_path / "run").exists(), (
            "the counts of a directory that was moved are others, or the old place was made again: use the given directory"
        )
        assert (plan.output.artifacts, plan.output.journal) == (str(tmp_path / "moved"), str(tmp_path / "moved" / "journal")), (
            unlike(plan.output.artifacts, str(tmp_path / "moved"), "write the new places into the plan")
        )
        assert plan.run.verbose, "change(plan) is the plan of the report"

    def test_a_run_that_was_killed_has_a_partial_report(self, tmp_path: Path) -> None:
        load = SampleLoad(tmp_path)
        for part in range(load.parts):
            load.write(part)
        summary = self._report(load.directory)
        assert counts(summary) == COUNTS, unlike(counts(summary), COUNTS, "count each arrival once, by its phase")
        assert not summary.complete and summary.incomplete_reason, (
            "the summary of a killed run is complete, or has no incomplete_reason: say that it was killed"
        )

    def test_a_directory_without_observations_is_refused(self, tmp_path: Path) -> None:
        load = SampleLoad(tmp_path)
        with pytest.raises(BadJournal):
            self._reducer().report(load.directory)
