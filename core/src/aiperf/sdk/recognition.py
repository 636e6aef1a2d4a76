"""What a hook tells of an input file: its first row, and which format it has."""

from __future__ import annotations

from typing import Any

from msgspec import Struct


class Recognition(Struct, frozen=True):
    """The result of ``aiperf_recognise_file``.

    row: the first row of the file, or of the first file in a directory; of a long one what its first 64 KiB have.  None where
    there is none.
    format: the name of the format that fits best, and *remark* a sentence on why.  "" where there is none or several: then
    *refusal* says so, and *hints* what to do.
    warnings: sentences on formats that failed when they were asked.
    """

    row: dict[str, Any] | None = None
    format: str = ""
    remark: str = ""
    refusal: str = ""
    hints: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


__all__ = ["Recognition"]
