"""The process of an upload to Weights & Biases, the only one that imports its client."""

from __future__ import annotations

import logging
import os
from pathlib import Path

import msgspec
from aiperf_uploads.process_side import Teller, serve

from aiperf_exporter_wandb.jobs import COLUMNS, RUN, TABLE, WandbJob, WandbRun

_FOLDER = "wandb"


def work(message: bytes, teller: Teller) -> None:
    """An online run leaves nothing here; an offline one stands in the run's directory, unless WANDB_DIR says where."""
    job = msgspec.json.decode(message, type=WandbJob)
    logging.disable(logging.CRITICAL)
    offline = os.environ.get("WANDB_MODE", "").strip().lower() in ("offline", "dryrun")
    home = os.environ.get("WANDB_DIR") or (job.directory if offline else job.passing)
    for variable, place in (("WANDB_CACHE_DIR", "cache"), ("WANDB_DATA_DIR", "data"), ("WANDB_ARTIFACT_DIR", "artifacts")):
        os.environ.setdefault(variable, str(Path(job.passing, place)))
    for run in job.runs:
        try:
            _upload(job, run, home, teller)
        except Exception as error:  # noqa: BLE001  # of the client; the other runs are tried
            for item in run.items:
                teller.left(item, error)
    if offline:
        teller.facts(offline=str(Path(home, _FOLDER)))


def _upload(job: WandbJob, run: WandbRun, home: str, teller: Teller) -> None:
    import wandb

    settings = wandb.Settings(
        silent=True, console="off", disable_git=True, disable_code=True, save_code=False, x_disable_stats=True,
        x_disable_machine_info=True, x_save_requirements=False, login_timeout=10, init_timeout=20,
    )  # fmt: skip
    made = wandb.init(
        project=job.project, entity=job.entity, name=run.name, config=run.config, tags=run.tags, group=run.group, dir=home,
        job_type=run.kind, settings=settings,
    )  # fmt: skip
    teller.facts(run_id=made.id, url=made.url)
    held = [RUN]
    if run.files:
        artifact = wandb.Artifact(run.artifact, type=run.artifact_type)
        for path, name in run.files:
            try:
                artifact.add_file(path, name=name)
            except Exception as error:  # noqa: BLE001  # of the client
                teller.left(run.item(name), error)
            else:
                held.append(name)
        made.log_artifact(artifact)
    made.summary.update(run.summary)
    if run.rows:
        made.log({"summary_metrics": wandb.Table(columns=["Metric", *COLUMNS], data=run.rows)})
        held.append(TABLE)
    made.finish(exit_code=int(run.failed))  # returns when all has arrived
    for part in held:
        teller.sent(run.item(part))


if __name__ == "__main__":
    serve(work)
