"""Options of the upload to MLflow."""

from __future__ import annotations

import json
from typing import Annotated, Any

from aiperf import ConfigError, Options, option
from aiperf.sdk.options import After
from aiperf.sdk.redaction import without_secrets

LIMIT = "AIPERF_MLFLOW_EXPORT_TIMEOUT_SECONDS"
_GROUP = "Trackers"


def address(given: str) -> str:
    """The tracking URI.

    Raises:
        ValueError: It is empty, or has a user and a password.
    """
    if not given.strip():
        raise ValueError("must be a tracking URI, such as http://127.0.0.1:5000")
    if "@" in without_secrets(given):
        raise ValueError(
            "must have no user and password, which files would show: set MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD"
        )
    return given.strip()


def _tags(given: list[str]) -> list[str]:
    tags_of(given)
    return given


def tags_of(given: list[str]) -> dict[str, str]:
    """The tags of ``KEY:VALUE``, each split at its first colon, or of JSON objects.

    Raises:
        ValueError: A text has neither form.
    """
    tags: dict[str, str] = {}
    for text in given:
        found: Any = None
        if text.lstrip().startswith("{"):
            try:
                found = json.loads(text)
            except ValueError as error:
                raise ValueError(f"{text!r} is no JSON object: {error}") from error
            tags |= {str(key): value if isinstance(value, str) else json.dumps(value) for key, value in found.items()}
            continue
        key, colon, value = text.partition(":")
        if not colon or not key.strip():
            raise ValueError(f"{text!r} is no KEY:VALUE")
        tags[key.strip()] = value.strip()
    return tags


def _globs(given: list[str]) -> list[str]:
    if wrong := [text for text in given if not text.strip("/. ")]:
        raise ValueError(f"{wrong[0]!r} is no pattern of files, such as *.json")
    return given


class MlflowOptions(Options):
    tracking_uri: Annotated[str, After(address)] | None = option("--mlflow-tracking-uri", group=_GROUP, metavar="URI",
        place="mlflow.tracking_uri", help="Upload the run to this MLflow server, or store, behind its end.")
    experiment: str = option("--mlflow-experiment", default="aiperf", group=_GROUP, metavar="NAME", min_length=1,
        place="mlflow.experiment", help="The experiment that the run belongs to; it is made where it isn't there.")
    run_name: str | None = option("--mlflow-run-name", group=_GROUP, metavar="NAME", min_length=1, place="mlflow.run_name",
        shown="aiperf- and 8 digits of the run's id", help="Name of the run.")
    tags: Annotated[list[str], After(_tags)] = option("--mlflow-tag", default=[], group=_GROUP, metavar="KEY:VALUE",
        place="mlflow.tags", help="Further tags of the run.")
    parent_run_id: str | None = option("--mlflow-parent-run-id", group=_GROUP, metavar="ID", min_length=1,
        place="mlflow.parent_run_id", help="The MLflow run that the run is nested in.")
    artifact_globs: Annotated[list[str], After(_globs)] = option("--mlflow-artifact-glob", default=[], group=_GROUP,
        metavar="GLOB", shown="result files, pictures and pages", place="mlflow.artifact_globs",
        help="The files to upload, below the run's directory.")


class MlflowStudyOptions(MlflowOptions):
    """The options of the upload of all runs of a study."""


class MlflowRunOptions(MlflowOptions):
    """The options of the upload of a run; they speak for both plugins."""

    def problems(self, typed: dict[str, str]) -> list[str]:
        """A setting of an upload that isn't made."""
        if self.tracking_uri is None:
            idle = [flag for field, flag in typed.items() if field != "tracking_uri"]
            switch = "--mlflow-tracking-uri"
            return [f"{flag} needs {switch}: it says how\nadd {switch}, or drop {flag}" for flag in idle]
        from aiperf_uploads import limit_s  # in no run without an upload

        try:
            limit_s(LIMIT)
        except ConfigError as error:
            return [error.message]
        return []


__all__ = ["LIMIT", "MlflowOptions", "MlflowRunOptions", "MlflowStudyOptions", "address", "tags_of"]
