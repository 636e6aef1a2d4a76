"""``aiperf plot --mlflow-upload``: pictures on their way to an MLflow run that is there."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from aiperf import AiperfError, UsageError
from aiperf.sdk.redaction import without_secrets
from aiperf_uploads import limit_s, upload

from aiperf_exporter_mlflow.filing import RECEIPT
from aiperf_exporter_mlflow.jobs import MlflowPictures
from aiperf_exporter_mlflow.options import LIMIT, address

_PROCESS = "aiperf_exporter_mlflow.pictures_process"


def place_of(directory: Path, tracking_uri: str | None, run_id: str | None) -> tuple[str, str]:
    """Tracking URI and id of the MLflow run of the results in *directory*: as given, else from their receipt.

    Raises:
        UsageError: One is not known, or the URI is none.
    """
    path = directory / RECEIPT
    try:
        told = json.loads(path.read_bytes()) if tracking_uri is None or run_id is None else {}
    except FileNotFoundError:
        told = {}
    except (OSError, ValueError) as error:
        raise UsageError(f"--mlflow-upload: {path} can't be read: {error}", *_HINTS) from error
    known = told if isinstance(told, dict) else {}
    uri, run = (given or known.get(key) for given, key in ((tracking_uri, "tracking_uri"), (run_id, "run_id")))
    if not isinstance(uri, str) or not isinstance(run, str) or not uri or not run:
        raise UsageError(f"--mlflow-upload: {directory} was not uploaded to MLflow: it has no {RECEIPT}", *_HINTS)
    try:
        return address(uri), run
    except ValueError as error:
        raise UsageError(f"--mlflow-tracking-uri {without_secrets(uri)!r} {error}") from error


_HINTS = ("name the run with --mlflow-tracking-uri and --mlflow-run-id",)


def upload_pictures(paths: Sequence[Path], tracking_uri: str, run_id: str) -> list[str]:
    """Send the pictures to ``plots`` of the MLflow run; a sentence on what has not arrived.

    Raises:
        AiperfError: The variable of the upload's time is no number.
    """
    job = MlflowPictures(tracking_uri, run_id, tuple((str(path), path.name) for path in paths))
    try:
        seconds = limit_s(LIMIT)
    except AiperfError as error:
        raise UsageError(error.message) from error
    outcome = upload(_PROCESS, job, [path.name for path in paths], seconds)
    return outcome.sentences(f"--mlflow-upload to {without_secrets(tracking_uri)}")


__all__ = ["place_of", "upload_pictures"]
