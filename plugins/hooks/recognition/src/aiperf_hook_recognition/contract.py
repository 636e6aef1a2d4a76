"""The hooks for the conformance suite.  For tests, and for ``aiperf plugins validate``."""

from __future__ import annotations

from aiperf.testing import HooksContract

from aiperf_hook_recognition import FileRecognition


class FileRecognitionContract(HooksContract):
    hooks = FileRecognition
