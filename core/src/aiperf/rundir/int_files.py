"""Files of int64, little-endian, that workers map."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from aiperf.redaction import private

if TYPE_CHECKING:
    from aiperf.sdk.columns import Ints


def write_ints(path: Path, numbers: Ints) -> str:
    """Write a file of int64 for workers to map, and return its path as plans name it."""
    with private(path).open("wb") as file:
        append_ints(file, numbers)
    return str(path)


def append_ints(file: BinaryIO, numbers: Ints) -> None:
    file.write(numbers.astype("<i8", copy=False).tobytes())


def read_ints(path: Path) -> Ints:
    """The numbers of a file that was written so."""
    import numpy as np  # workers never come here

    return np.fromfile(path, dtype="<i8").astype(np.int64, copy=False)
