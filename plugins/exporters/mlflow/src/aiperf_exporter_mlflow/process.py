"""The process of an upload to MLflow, the only one that imports its client."""

from __future__ import annotations

import logging
import os
import time
from itertools import islice

import msgspec
from aiperf_uploads.process_side import Teller, serve

from aiperf_exporter_mlflow.jobs import METRICS, PARAMETERS, RUN, MlflowJob

_MOST_METRICS, _MOST_PARAMETERS = 1000, 100
"""Of one call."""
_LONGEST_PARAMETER = 6000
"""Characters."""


def work(message: bytes, teller: Teller) -> None:
    """Make the run, then fill it; each part by itself, so that one which fails keeps no other."""
    os.environ.setdefault("MLFLOW_ALLOW_FILE_STORE", "true")  # a store that the user names is meant
    os.environ.setdefault("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "1")  # of 7, which take minutes
    os.environ.setdefault("MLFLOW_HTTP_REQUEST_BACKOFF_FACTOR", "1")
    logging.disable(logging.CRITICAL)
    from mlflow.entities import Metric, Param
    from mlflow.tracking import MlflowClient

    job = msgspec.json.decode(message, type=MlflowJob)
    run, client = job.run, MlflowClient(tracking_uri=job.tracking_uri)
    experiment = client.get_experiment_by_name(job.experiment)
    experiment_id = client.create_experiment(job.experiment) if experiment is None else experiment.experiment_id
    tags = dict(run.tags)
    if job.parent_run_id is not None:
        tags["mlflow.parentRunId"] = job.parent_run_id
    made = client.create_run(experiment_id, start_time=run.start_ms, tags=tags, run_name=run.name)
    run_id = made.info.run_id
    teller.facts(run_id=run_id, experiment_id=experiment_id)
    teller.sent(RUN)
    metrics = [Metric(name, value, run.end_ms, 0) for name, value in run.metrics.items()]
    parameters = [Param(name, value[:_LONGEST_PARAMETER]) for name, value in run.parameters.items()]
    with _part(teller, METRICS):
        rest = iter(metrics)
        while some := list(islice(rest, _MOST_METRICS)):
            client.log_batch(run_id, metrics=some)
    with _part(teller, PARAMETERS):
        rest_parameters = iter(parameters)
        while several := list(islice(rest_parameters, _MOST_PARAMETERS)):
            client.log_batch(run_id, params=several)
    for path, name, folder in run.files:
        with _part(teller, name):
            client.log_artifact(run_id, path, folder)
    client.set_terminated(run_id, "FAILED" if run.failed else "FINISHED", run.end_ms)
    teller.facts(exported_at_ns=time.time_ns())


class _part:  # noqa: N801  # a block
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
