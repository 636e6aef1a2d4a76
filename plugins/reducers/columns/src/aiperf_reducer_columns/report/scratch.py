"""A file without a name: the system frees it with the process, however that ends."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

from aiperf.parts import journal
from numpy.typing import NDArray


class Scratch:
    """Arrays on the disk, in *folder*.

    Raises:
        OSError: The folder can't be written, or, when an array is added, the disk is full.
    """

    def __init__(self, folder: Path) -> None:
        self._file = tempfile.TemporaryFile(dir=folder, prefix="scratch-", buffering=0)  # noqa: SIM115  # open as long as this
        self._bytes = 0

    def add(self, array: NDArray[Any]) -> int:
        """Write the array; its offset."""
        offset = self._bytes
        journal.write_all(self._file.fileno(), array.tobytes())
        self._bytes += array.nbytes
        return offset

    def read(self, offset: int, size: int) -> bytes:
        """*size* bytes, which have been written."""
        data = os.pread(self._file.fileno(), size, offset)
        while len(data) < size:
            data += os.pread(self._file.fileno(), size - len(data), offset + len(data))
        return data
