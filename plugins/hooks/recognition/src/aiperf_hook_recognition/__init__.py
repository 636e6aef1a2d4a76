"""The format of an input file: its first row and name are compared with what the manifests of the formats say."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiperf import hookimpl

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from aiperf.sdk.descriptor import Descriptor
    from aiperf.sdk.recognition import Recognition


class FileRecognition:
    """Imports nothing until a run has an input file."""

    @hookimpl(trylast=True)  # another package may know better
    def aiperf_recognise_file(self, path: Path, formats: Sequence[Descriptor] | None, option: str) -> Recognition:
        from aiperf_hook_recognition.recognition import recognition

        return recognition(path, formats, option)


__all__ = ["FileRecognition"]
