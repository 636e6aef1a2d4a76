"""What a study is beside its measured runs, as its manifest keeps it for a later report."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from aiperf.sdk.descriptor import PluginRef
from aiperf.sdk.study import Dimension, Objective, Scenario, Setting, SlaFilter, Study, StudyCell, StudyRun


class Unsuccessful(Struct, frozen=True):
    """A run without results.  failed: why."""

    cell: StudyCell
    trial: int
    seed: int
    failed: str


class StudyOutline(Struct, frozen=True):
    """Fields as in :class:`aiperf.sdk.study.Study`.

    exporters: plugins that write what the runs have in common.  unsuccessful: runs without results.
    """

    planner: str
    dimensions: tuple[Dimension, ...]
    scenarios: tuple[Scenario, ...]
    trials: int
    order: str
    confidence_level: float
    cooldown_s: float
    objectives: tuple[Objective, ...]
    complete: bool
    reason: str
    design: dict[str, Setting] | None = None
    exporters: tuple[PluginRef, ...] = ()
    unsuccessful: tuple[Unsuccessful, ...] = ()
    sla_filters: tuple[SlaFilter, ...] = ()

    @classmethod
    def of(cls, study: Study, exporters: Sequence[PluginRef]) -> StudyOutline:
        """The outline of a study."""
        failed = (run for run in study.runs if run.summary is None)
        return cls(
            study.planner, study.dimensions, study.scenarios, study.trials, study.order, study.confidence_level,
            study.cooldown_s, study.objectives, study.complete, study.reason, study.design, tuple(exporters),
            tuple(Unsuccessful(run.cell, run.trial, run.seed, run.failed) for run in failed), study.sla_filters,
        )  # fmt: skip

    def study(self, study_id: str, version: str, command: str, directory: Path, runs: Sequence[StudyRun]) -> Study:
        """The study with its runs."""
        configs = [run.summary.config for run in runs if run.summary is not None]
        return Study(
            study_id, version, directory, tuple(runs), self.planner, self.dimensions, self.scenarios, self.trials, self.order,
            self.confidence_level, self.cooldown_s, self.objectives, self.complete, self.reason, command, common(configs),
            self.design, self.sla_filters,
        )  # fmt: skip


def common(configs: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """The values that all have alike, by section; of none none."""
    first, *others = list(configs) or [{}]
    found: dict[str, Any] = {}
    for key, value in first.items():
        values = [other.get(key) for other in others]
        sections = [each for each in values if isinstance(each, dict)]
        if isinstance(value, dict) and len(sections) == len(others):
            found[key] = common([value, *sections])
        elif all(each == value for each in values):
            found[key] = value
    return found


__all__ = ["StudyOutline", "Unsuccessful", "common"]
