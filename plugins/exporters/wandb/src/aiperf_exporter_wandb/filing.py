"""A run, or all runs of a study, on their way to Weights & Biases."""

from __future__ import annotations

import logging
import tempfile
from pathlib import Path

from aiperf import Summary
from aiperf.sdk.study import Study
from aiperf_uploads import exported_files, limit_s, upload

from aiperf_exporter_wandb.jobs import WandbJob, WandbRun, run_of, runs_of
from aiperf_exporter_wandb.options import LIMIT, WandbOptions

log = logging.getLogger("aiperf.exporters.wandb")


def file_run(summary: Summary, options: WandbOptions, directory: Path) -> None:
    """Upload a run."""
    _upload(options, directory, (run_of(summary, options, exported_files(directory)),))


def file_study(study: Study, options: WandbOptions) -> None:
    """Upload all runs of a study."""
    _upload(options, study.directory, runs_of(study, options))


def _upload(options: WandbOptions, directory: Path, runs: tuple[WandbRun, ...]) -> None:
    """Upload, and warn of what has not arrived."""
    assert options.project is not None  # wanted
    # Here, since a process that takes too long is killed and removes nothing.
    with tempfile.TemporaryDirectory(prefix="aiperf-wandb-", ignore_cleanup_errors=True) as passing:
        job = WandbJob(options.project, options.entity, str(directory.absolute()), passing, runs)
        log.info("uploading to Weights & Biases, for %g s at most", limit_s(LIMIT) * len(runs))
        outcome = upload("aiperf_exporter_wandb.process", job, job.items, limit_s(LIMIT) * len(runs))
    for sentence in outcome.sentences(f"--wandb-project {options.project}"):
        log.warning("%s", sentence)
    if offline := outcome.facts.get("offline"):
        log.info("what goes to Weights & Biases is offline, in %s: upload it with wandb sync", offline)


__all__ = ["file_run", "file_study"]
