"""Options of ``aiperf validate``."""

from __future__ import annotations

from pathlib import Path

from aiperf.sdk.options import Options, option


class ValidateOptions(Options):
    input: Path | None = option("--input", metavar="FILE", help="A data set's file, instead of a word for it.")
    as_json: bool = option("--json", default=False, help="Print the faults as JSON.")
