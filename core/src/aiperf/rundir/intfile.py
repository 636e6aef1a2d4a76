"""Files of little-endian int64, which workers map."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import numpy as np

if TYPE_CHECKING:
    from aiperf.sdk.columns import Ints


def write(path: Path, numbers: Ints) -> str:
    """Write the file, and return its path as plans name it."""
    with path.open("wb") as file:
        append(file, numbers)
    return str(path)


def append(file: BinaryIO, numbers: Ints) -> None:
    file.write(numbers.astype("<i8", copy=False).tobytes())


def read(path: Path) -> Ints:
    return np.fromfile(path, dtype="<i8").astype(np.int64, copy=False)
