"""The contract of planners: plans end, repeat themselves, and name each run once."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar

import msgspec
import pytest
from aiperf.errors import ConfigError
from aiperf.sdk.planner import PlanEnd, PlannedTrial, Planner, Space
from aiperf.sdk.study import Dimension, Scenario, StudyCell, StudyRun
from aiperf.sdk.summary import Result, Summary

from aiperf_testing.findings import shown, unlike
from aiperf_testing.manifests import check_row
from aiperf_testing.summaries import sample_summary

_LISTS = (
    Dimension("profiling.concurrency", "concurrency", (1, 2, 4)), Dimension("dataset.prompts.isl.mean", "mean", (16, 32, 64)),
)  # fmt: skip
_RANGES = (
    Dimension("profiling.concurrency", "concurrency", low=1, high=64, scale="log", kind="int"),
    Dimension("profiling.rate", "rate", low=0.5, high=2.0), Dimension("endpoint.streaming", "streaming", choices=(True, False)),
)  # fmt: skip
_SCENARIOS = (Scenario("small", {"profiling.concurrency": 1}), Scenario("large", {"profiling.concurrency": 64}))
SPACES = (
    Space(), Space(trials=3), Space(_LISTS[:1], trials=2),
    Space(_LISTS), Space(_LISTS, trials=2), Space(_LISTS, trials=2, order="independent"),
    Space(_RANGES, seed=7, settings={"samples": 8}), Space(scenarios=_SCENARIOS, trials=2),
)  # fmt: skip
"""Spaces as command lines and files ask for; a planner takes some, and refuses the others with a ConfigError."""
_MOST_PROPOSALS = 10_000


class PlannerContract:
    """Subclass with a planner's class; *spaces* where it takes none of :data:`SPACES`::

        class TestMineKeepsTheContract(PlannerContract):
            planner = Mine
            spaces = (Space((Dimension("profiling.concurrency", "concurrency", low=1, high=64),)),)
    """

    planner: ClassVar[type[Planner]]
    options: ClassVar[Any] = None
    spaces: ClassVar[Sequence[Space]] = SPACES

    def made(self, space: Space) -> Planner:
        """A planner in the space."""
        return type(self).planner(space, type(self).options)

    def summary(self, cell: StudyCell, trial: int) -> Summary:
        """What a run of the plan has measured."""
        latency = 10.0 + cell.index + 0.01 * trial
        stats = dict.fromkeys(("avg", "min", "max", "p50", "p90", "p95", "p99"), latency) | {"std": 1.0, "count": 24.0}
        first = Result("time_to_first_token", "Time to First Token", "ms", stats)
        whole = Result("request_latency", "Request Latency", "ms", stats)
        return sample_summary(first, whole, Result("request_throughput", "Request Throughput", "requests/sec", {"avg": 2.0}))

    def _taken(self) -> list[Space]:
        taken = []
        for space in type(self).spaces:
            try:
                self.made(space)
            except ConfigError:
                continue
            taken.append(space)
        assert taken, "it refuses all spaces of the tests: list some that it takes in the contract's attribute spaces"
        return taken

    def _plan(self, space: Space, *, fail: bool = False) -> Iterator[tuple[list[StudyRun], Sequence[PlannedTrial]]]:
        """Each proposal, with the runs that had ended before it."""
        planner, finished = self.made(space), list[StudyRun]()
        for _ in range(_MOST_PROPOSALS):
            proposal = planner.next(tuple(finished))
            if isinstance(proposal, PlanEnd):
                return
            assert len(proposal), "next gave no runs: give at least one, or PlanEnd"
            yield list(finished), proposal
            for planned in proposal:
                summary = None if fail else self.summary(planned.cell, planned.trial)
                why = "every request failed" if fail else ""
                finished.append(StudyRun(planned.cell, planned.trial, Path("none"), 1, summary, why))
        pytest.fail(f"it proposed runs {_MOST_PROPOSALS} times, and still hasn't ended: next must give PlanEnd once")

    def _runs(self, space: Space) -> list[PlannedTrial]:
        return [planned for _, proposal in self._plan(space) for planned in proposal]

    def test_its_manifest_says_what_it_is(self) -> None:
        settings = check_row("planners", self.planner).capabilities.get("settings", [])
        assert isinstance(settings, list) and all(re.fullmatch(r"[a-z][a-z0-9_]*", str(key)) for key in settings), (
            f"settings is {shown(settings)}: list keys in snake_case, [samples, label_format]"
        )

    def test_a_space_is_taken_or_refused_with_a_sentence(self) -> None:
        self._taken()

    def test_a_plan_ends_and_names_each_run_once(self) -> None:
        for space in self._taken():
            runs = [(planned.cell.index, planned.trial) for planned in self._runs(space)]
            assert runs, "the plan has no run: a space that nothing can be made of is refused with a ConfigError"
            assert len(set(runs)) == len(runs), f"a run is proposed twice: {shown(sorted(runs))}; propose what isn't finished"
            assert all(1 <= trial <= space.trials for _, trial in runs), (
                f"trials are {shown(sorted({trial for _, trial in runs}))}: count from 1 to the space's trials, {space.trials}"
            )

    def test_most_is_at_least_what_it_plans(self) -> None:
        for space in self._taken():
            most, count = self.made(space).most(), len(self._runs(space))
            assert most is None or most >= count, f"most() is {most}, and the plan has {count} runs: give the most it can have"

    def test_a_cell_keeps_its_name_and_values(self) -> None:
        for space in self._taken():
            cells: dict[int, StudyCell] = {}
            for planned in self._runs(space):
                known = cells.setdefault(planned.cell.index, planned.cell)
                assert known == planned.cell, unlike(planned.cell, known, "a cell is the same in each proposal")
            assert sorted(cells) == list(range(len(cells))), f"indices of cells are {shown(sorted(cells))}: count from 0"
            names = [cell.name.casefold() for cell in cells.values()]
            assert len(set(names)) == len(names), f"two cells have one name: {shown(sorted(names))}; add their index"
            if space.dimensions or space.scenarios:
                every = [cell.name for cell in cells.values()]
                bad = [name for name in every if not re.fullmatch(r"[^/\\\x00]{1,255}", name) or ".." in name]
                assert not bad, f"names {shown(bad)} can't be directories: see aiperf_studies.names.cells_of"
            else:
                assert names == [""], f"a space without dimensions has one cell, called '': it has {shown(names)}"

    def test_values_belong_to_the_dimensions(self) -> None:
        for space in self._taken():
            keys = {each.key for each in space.dimensions} | {path for each in space.scenarios for path in each.parameters}
            for planned in self._runs(space):
                assert set(planned.cell.parameters) <= keys, unlike(set(planned.cell.parameters), keys, "use keys of the space")
                msgspec.json.encode(planned.cell.parameters)

    def test_the_same_finished_runs_give_the_same_proposal(self) -> None:
        for space in self._taken():
            for finished, proposal in self._plan(space):
                again = self.made(space).next(tuple(finished))
                assert again == proposal, unlike(
                    again, proposal, "a new planner of the same space must propose the same, so that a study can be resumed"
                )

    def test_failed_runs_end_a_plan_too(self) -> None:
        for space in self._taken():
            proposals = list(self._plan(space, fail=True))
            assert proposals, "the plan has no run"

    def test_its_design_is_json(self) -> None:
        for space in self._taken():
            first, second = (msgspec.json.encode(self.made(space).design()) for _ in range(2))
            assert first == second, "design() differs between two planners of one space: it depends on the space alone"
