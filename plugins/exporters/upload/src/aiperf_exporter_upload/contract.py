"""The hooks, and the exporter with a place that is not there.  For tests, and for ``aiperf plugins validate``."""

from __future__ import annotations

from aiperf.testing import HooksContract, SendingStudyExporterContract

from aiperf_exporter_upload import Upload
from aiperf_exporter_upload.copying import UploadStudy
from aiperf_exporter_upload.options import StudyUploadOptions


class UploadContract(HooksContract):
    hooks = Upload


class UploadStudyContract(SendingStudyExporterContract):
    exporter = UploadStudy
    options = StudyUploadOptions(upload="nothing://is/here")
