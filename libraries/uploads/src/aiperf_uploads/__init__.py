"""Results sent elsewhere in a process of their own: the side of the run, and the files of a run."""

from aiperf_uploads.files import EXPORTS, PICTURES, ExportedFile, exported_files, study_files
from aiperf_uploads.run_side import UploadOutcome, limit_s, upload

__all__ = ["EXPORTS", "PICTURES", "ExportedFile", "UploadOutcome", "exported_files", "limit_s", "study_files", "upload"]
