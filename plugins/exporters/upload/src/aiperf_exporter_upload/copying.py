"""The upload of a job, and of all runs of a study."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from aiperf import Artifact
from aiperf.sdk.exporter import StudyExporter
from aiperf.sdk.study import Study
from aiperf_uploads import limit_s, upload

from aiperf_exporter_upload.jobs import UploadJob, job_of_study
from aiperf_exporter_upload.options import LIMIT, StudyUploadOptions

log = logging.getLogger("aiperf.hooks.upload")


class UploadStudy(StudyExporter[StudyUploadOptions]):
    """The files of the study keep their paths below the URL."""

    sends = True

    def wanted(self) -> bool:
        return self.options is not None and self.options.upload is not None

    def export_study(self, study: Study) -> Sequence[Artifact]:
        assert self.options.upload is not None  # wanted
        copied(job_of_study(study, self.options.upload, journal=self.options.upload_journal), runs=len(study.runs))
        return []


def copied(job: UploadJob, *, runs: int) -> None:
    """Copy the files, and warn of those that have not arrived."""
    log.info("uploading %d files to %s, for %g s at most", len(job.items), job.url, limit_s(LIMIT) * runs)
    outcome = upload("aiperf_exporter_upload.process", job, job.items, limit_s(LIMIT) * runs)
    for sentence in outcome.sentences(f"--upload {job.url}"):
        log.warning("%s", sentence)
    if not outcome.left:
        log.info("%d files were uploaded to %s", len(outcome.sent), job.url)


__all__ = ["UploadStudy", "copied"]
