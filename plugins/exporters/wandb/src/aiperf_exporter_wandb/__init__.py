"""Uploads a run, or all runs of a study, to Weights & Biases behind the last file, in a process of its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from aiperf import SummaryExporter
from aiperf.sdk.exporter import StudyExporter

from aiperf_exporter_wandb.options import WandbRunOptions, WandbStudyOptions

if TYPE_CHECKING:
    from aiperf import Artifact, Summary
    from aiperf.sdk.study import Study


class WandbExporter(SummaryExporter[WandbRunOptions]):
    """What was not uploaded is a warning."""

    sends = True

    def wanted(self) -> bool:
        return self.options is not None and self.options.project is not None

    def export(self, summary: Summary) -> Sequence[Artifact]:
        from aiperf_exporter_wandb.filing import file_run  # in no process of a run that isn't uploaded

        file_run(summary, self.options, self.target.directory)
        return []


class WandbStudyExporter(StudyExporter[WandbStudyOptions]):
    """The runs of a study are a group there; a further run of it has what they have in common."""

    sends = True

    def wanted(self) -> bool:
        return self.options is not None and self.options.project is not None

    def export_study(self, study: Study) -> Sequence[Artifact]:
        from aiperf_exporter_wandb.filing import file_study  # as above

        file_study(study, self.options)
        return []


__all__ = ["WandbExporter", "WandbStudyExporter"]
