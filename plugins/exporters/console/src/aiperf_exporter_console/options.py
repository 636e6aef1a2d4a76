"""What the report can be told."""

from __future__ import annotations

from aiperf.sdk.options import Options, option


class ConsoleOptions(Options):
    show_trace_timing: bool = option("--show-trace-timing", default=False, group="Output",
        place="artifacts.show_trace_timing",
        help="Print the parts of HTTP requests: blocked, name lookup, connecting, sending, waiting, receiving.")  # fmt: skip
