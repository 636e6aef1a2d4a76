"""Copies the files of a run, or of all runs of a study, to a bucket behind the end, in a process of its own."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING

from aiperf import hookimpl

if TYPE_CHECKING:
    from aiperf import Summary

    from aiperf_exporter_upload.options import RunUploadOptions

log = logging.getLogger("aiperf.hooks.upload")


class Upload:
    """The marker goes last, and only where every other file has arrived.  What was not copied is a warning."""

    options: RunUploadOptions | None = None

    @hookimpl(trylast=True)
    def aiperf_run_ended(self, summary: Summary) -> None:
        if self.options is None or self.options.upload is None or summary.study_id:
            return
        from aiperf_exporter_upload.copying import copied  # not in a run without an upload
        from aiperf_exporter_upload.jobs import job_of

        try:
            job = job_of(Path(summary.directory), self.options.upload, journal=self.options.upload_journal)
        except (OSError, ValueError) as error:
            log.warning("--upload %s: nothing was uploaded: %s", self.options.upload, error)
            return
        copied(job, runs=1)


__all__ = ["Upload"]
