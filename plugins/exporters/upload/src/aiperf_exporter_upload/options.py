"""Options of the upload to a bucket."""

from __future__ import annotations

from typing import Annotated

from aiperf import ConfigError, Options, option
from aiperf.sdk.options import After
from aiperf.sdk.redaction import without_secrets

LIMIT = "AIPERF_UPLOAD_TIMEOUT_SECONDS"


def _address(given: str) -> str:
    scheme, mark, rest = given.strip().partition("://")
    if not mark or not scheme or not rest.strip("/"):
        raise ValueError("must be a URL of a directory, such as s3://bucket/runs/today")
    if "?" in rest or "@" in without_secrets(f"{scheme}://{rest}"):
        raise ValueError("must have no credentials, which files would show: put them into the variables of the file system")
    return given.strip().rstrip("/")


class UploadOptions(Options):
    upload: Annotated[str, After(_address)] | None = option("--upload", group="Output", metavar="URL", place="artifacts.upload",
        help="Copy the result files to this directory of a bucket behind the run: s3://bucket/path; the marker comes last.")
    upload_journal: bool = option("--upload-journal", default=False, group="Output", place="artifacts.upload_journal",
        help="Copy the journal, too: aiperf report makes the results again from it.")


class StudyUploadOptions(UploadOptions):
    """The options of the upload of all runs of a study."""


class RunUploadOptions(UploadOptions):
    """The options of the upload of a run; they speak for both plugins."""

    def problems(self, typed: dict[str, str]) -> list[str]:
        """A setting of an upload that isn't made."""
        if self.upload is None:
            idle = [flag for field, flag in typed.items() if field != "upload"]
            return [f"{flag} needs --upload: it says where to\nadd --upload, or drop {flag}" for flag in idle]
        from aiperf_uploads import limit_s  # in no run without an upload

        try:
            limit_s(LIMIT)
        except ConfigError as error:
            return [error.message]
        return []


__all__ = ["LIMIT", "RunUploadOptions", "StudyUploadOptions", "UploadOptions"]
