"""What ``aiperf validate`` can be told."""

from __future__ import annotations

from aiperf.options import Options, option


class ValidateOptions(Options):
    as_json: bool = option("--json", default=False, help="Print what was found as JSON.")
