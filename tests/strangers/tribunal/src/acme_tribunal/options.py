"""The judge's server."""

from __future__ import annotations

from aiperf import Options, option


class RefereeOptions(Options):
    url: str | None = option("--referee-url", metavar="URL", shown="none", help="Base URL of the judge model's server.")
    model: str = option("--referee-model", default="judge", metavar="NAME", help="Name of the judge model.")
    limit_s: float = option("--referee-limit", default=30.0, gt=0, metavar="SECONDS", help="Longest wait for a verdict.")
