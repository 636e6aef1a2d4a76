"""Uploads a run, or all runs of a study, to Weights & Biases behind the last file, in a process of its own."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path

from aiperf import Artifact, Summary, SummaryExporter
from aiperf.sdk.exporter import StudyExporter
from aiperf.sdk.study import Study
from aiperf_uploads import exported_files, limit_s, upload

from aiperf_exporter_wandb.jobs import WandbJob, WandbRun, run_of, runs_of
from aiperf_exporter_wandb.options import LIMIT, WandbOptions, WandbRunOptions, WandbStudyOptions

log = logging.getLogger("aiperf.exporters.wandb")

_PROCESS = f"{__name__}.process"


class WandbExporter(SummaryExporter[WandbRunOptions]):
    """What was not uploaded is a warning."""

    sends = True

    def wanted(self) -> bool:
        return self.options is not None and self.options.project is not None

    def export(self, summary: Summary) -> Sequence[Artifact]:
        run = run_of(summary, self.options, exported_files(self.target.directory))
        _upload(self.options, self.target.directory, (run,))
        return []


class WandbStudyExporter(StudyExporter[WandbStudyOptions]):
    """The runs of a study are a group there; a further run of it has what they have in common."""

    sends = True

    def wanted(self) -> bool:
        return self.options is not None and self.options.project is not None

    def export_study(self, study: Study) -> Sequence[Artifact]:
        _upload(self.options, study.directory, runs_of(study, self.options))
        return []


def _upload(options: WandbOptions, directory: Path, runs: tuple[WandbRun, ...]) -> None:
    """Upload, and warn of what has not arrived."""
    assert options.project is not None  # wanted
    job = WandbJob(options.project, options.entity, str(directory.absolute()), runs)
    outcome = upload(_PROCESS, job, job.items, limit_s(LIMIT) * len(runs))
    for sentence in outcome.sentences(f"--wandb-project {options.project}"):
        log.warning("%s", sentence)
    if offline := outcome.facts.get("offline"):
        log.info("what goes to Weights & Biases is offline, in %s: upload it with wandb sync", offline)


__all__ = ["WandbExporter", "WandbStudyExporter"]
