"""Uploads a run to Weights & Biases behind its last file, in a process of its own."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from aiperf import Artifact, Summary, SummaryExporter
from aiperf_uploads import exported_files, limit_s, upload

from aiperf_exporter_wandb.jobs import WandbJob, run_of
from aiperf_exporter_wandb.options import LIMIT, WandbOptions

log = logging.getLogger("aiperf.exporters.wandb")


class WandbExporter(SummaryExporter[WandbOptions]):
    """What was not uploaded is a warning."""

    sends = True

    def wanted(self) -> bool:
        return self.options is not None and self.options.project is not None

    def export(self, summary: Summary) -> Sequence[Artifact]:
        options = self.options
        assert options.project is not None  # wanted
        run = run_of(summary, options, exported_files(self.target.directory))
        job = WandbJob(options.project, options.entity, str(self.target.directory.absolute()), run)
        outcome = upload(f"{__name__}.process", job, run.items, limit_s(LIMIT))
        for sentence in outcome.sentences(f"--wandb-project {options.project}"):
            log.warning("%s", sentence)
        if offline := outcome.facts.get("offline"):
            log.info("the run of Weights & Biases is offline, in %s: upload it with wandb sync", offline)
        return []


__all__ = ["WandbExporter"]
