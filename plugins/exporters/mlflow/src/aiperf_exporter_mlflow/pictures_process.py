"""The process of an upload of pictures to an MLflow run that is there; its state and times stay."""

from __future__ import annotations

import msgspec
from aiperf_uploads.process_side import Teller, serve

from aiperf_exporter_mlflow.jobs import PICTURES, MlflowPictures
from aiperf_exporter_mlflow.process import client_of, part


def work(message: bytes, teller: Teller) -> None:
    job = msgspec.json.decode(message, type=MlflowPictures)
    client = client_of(job.tracking_uri)
    run_id = client.get_run(job.run_id).info.run_id
    for path, name in job.files:
        with part(teller, name):
            client.log_artifact(run_id, path, PICTURES)


if __name__ == "__main__":
    serve(work)
