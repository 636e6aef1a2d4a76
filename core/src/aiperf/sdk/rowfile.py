"""Files of rows, read lazily: one JSON object per line, or a table in CSV, Parquet, Arrow or Feather.

The names are those of the package aiperf-hook-recognition, which a package that reads files names among its dependencies.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiperf.doors import door

__all__ = [
    "blocks", "delimiter_of", "first_row", "head", "is_csv", "is_table", "lines", "opened", "row_of", "rows", "stored_rows",
    "tables",
]  # fmt: skip

__getattr__ = door(__name__, {}, packages=dict.fromkeys(__all__, "aiperf_hook_recognition.rowfile"))

if TYPE_CHECKING:
    from aiperf_hook_recognition.rowfile import (  # isort: skip
        blocks, delimiter_of, first_row, head, is_csv, is_table, lines, opened, row_of, rows, stored_rows, tables,
    )  # fmt: skip
