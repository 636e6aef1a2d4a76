"""Files of integers: little-endian int64, one behind the other, as workers map them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import numpy as np

if TYPE_CHECKING:
    from aiperf.columns import Ints


def write(path: Path, numbers: Ints) -> str:
    """Write a file of them; its path, as a plan names it."""
    with path.open("wb") as file:
        append(file, numbers)
    return str(path)


def append(file: BinaryIO, numbers: Ints) -> None:
    file.write(numbers.astype("<i8", copy=False).tobytes())


def read(path: Path) -> Ints:
    return np.fromfile(path, dtype="<i8").astype(np.int64, copy=False)
