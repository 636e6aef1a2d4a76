"""Copies the files of a run to a bucket behind its end, in a process of its own."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING

from aiperf import hookimpl

if TYPE_CHECKING:
    from aiperf import Summary

    from aiperf_exporter_upload.options import UploadOptions

log = logging.getLogger("aiperf.hooks.upload")


class Upload:
    """The marker goes last, and only where every other file has arrived.  What was not copied is a warning."""

    options: UploadOptions | None = None

    @hookimpl(trylast=True)
    def aiperf_run_ended(self, summary: Summary) -> None:
        if self.options is None or self.options.upload is None:
            return
        from aiperf_uploads import limit_s, upload  # not in a run without an upload

        from aiperf_exporter_upload.jobs import job_of
        from aiperf_exporter_upload.options import LIMIT

        try:
            job = job_of(Path(summary.directory), self.options.upload, journal=self.options.upload_journal)
        except (OSError, ValueError) as error:
            log.warning("--upload %s: nothing was uploaded: %s", self.options.upload, error)
            return
        outcome = upload(f"{__name__}.process", job, job.items, limit_s(LIMIT))
        for sentence in outcome.sentences(f"--upload {job.url}"):
            log.warning("%s", sentence)
        if not outcome.left:
            log.info("%d files were uploaded to %s", len(outcome.sent), job.url)


__all__ = ["Upload"]
