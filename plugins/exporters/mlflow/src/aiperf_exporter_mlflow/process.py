"""The process of an upload to MLflow, the only one that imports its client."""

from __future__ import annotations

import logging
import os
import time
from itertools import islice
from typing import TYPE_CHECKING

import msgspec
from aiperf_uploads.process_side import Teller, serve

from aiperf_exporter_mlflow.jobs import METRICS, PARAMETERS, RUN, MlflowJob, MlflowRun

if TYPE_CHECKING:
    from mlflow.tracking import MlflowClient

_MOST_METRICS, _MOST_PARAMETERS = 1000, 100
"""Of one call."""
_LONGEST_PARAMETER = 6000
"""Characters."""


def client_of(tracking_uri: str) -> MlflowClient:
    """A client that gives up soon, and says nothing itself."""
    os.environ.setdefault("MLFLOW_ALLOW_FILE_STORE", "true")  # a store that the user names is meant
    os.environ.setdefault("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "1")  # of 7, which take minutes
    os.environ.setdefault("MLFLOW_HTTP_REQUEST_BACKOFF_FACTOR", "1")
    logging.disable(logging.CRITICAL)
    from mlflow.tracking import MlflowClient

    return MlflowClient(tracking_uri=tracking_uri)


def work(message: bytes, teller: Teller) -> None:
    """Make the run, then fill it; each part by itself, so that one which fails keeps no other."""
    job = msgspec.json.decode(message, type=MlflowJob)
    client = client_of(job.tracking_uri)
    experiment = client.get_experiment_by_name(job.experiment)
    experiment_id = client.create_experiment(job.experiment) if experiment is None else experiment.experiment_id
    parent = _upload(client, experiment_id, job.run, job.parent_run_id, teller)
    teller.facts(run_id=parent, experiment_id=experiment_id)
    made = {}
    for child in job.children:
        try:
            made[child.label] = _upload(client, experiment_id, child, parent, teller)
        except Exception as error:  # noqa: BLE001  # of the client; the other runs are tried
            for item in child.items:
                teller.left(item, error)
        teller.facts(children=made)
    teller.facts(exported_at_ns=time.time_ns())


def _upload(client: MlflowClient, experiment_id: str, run: MlflowRun, parent: str | None, teller: Teller) -> str:
    """Make the run, or fill the known one, and return its id."""
    from mlflow.entities import Metric, Param

    if run.known is None:
        tags = run.tags if parent is None else {**run.tags, "mlflow.parentRunId": parent}
        run_id: str = client.create_run(experiment_id, start_time=run.start_ms, tags=tags, run_name=run.name).info.run_id
    else:
        run_id = client.get_run(run.known).info.run_id
    teller.sent(run.item(RUN))
    with part(teller, run.item(METRICS)):
        metrics = iter([Metric(name, value, run.end_ms, 0) for name, value in run.metrics.items()])
        while some := list(islice(metrics, _MOST_METRICS)):
            client.log_batch(run_id, metrics=some)
    with part(teller, run.item(PARAMETERS)):
        parameters = iter([Param(name, value[:_LONGEST_PARAMETER]) for name, value in run.parameters.items()])
        while several := list(islice(parameters, _MOST_PARAMETERS)):
            client.log_batch(run_id, params=several)
    for path, name, folder in run.files:
        with part(teller, run.item(name)):
            client.log_artifact(run_id, path, folder)
    client.set_terminated(run_id, "FAILED" if run.failed else "FINISHED", run.end_ms)
    return run_id


class part:  # noqa: N801  # a block
    """A part of the upload: told as sent, or as left with the reason."""

    def __init__(self, teller: Teller, item: str) -> None:
        self._teller, self._item = teller, item

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> bool:
        if error is None:
            self._teller.sent(self._item)
        elif isinstance(error, Exception):
            self._teller.left(self._item, error)
        return isinstance(error, Exception)


if __name__ == "__main__":
    serve(work)
