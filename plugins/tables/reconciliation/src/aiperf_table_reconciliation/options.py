"""The option of the reconciliation."""

from __future__ import annotations

from aiperf.sdk.options import Options, option


class ReconciliationOptions(Options):
    expected_acceptance_length: float | None = option("--expected-acceptance-length", default=None,
        group="Server metrics", metavar="TOKENS", place="server_metrics.expected_acceptance_length", gt=0,
        help="Tokens that a server's speculative decoding is expected to accept a step; a server that is more than 2 % off is"
        " said.")  # fmt: skip
