"""Options of the data set."""

from __future__ import annotations

from aiperf import Options, option


class GrpcMessagesOptions(Options):
    allow_commands: bool = option(
        "--grpc-allow-commands", default=False, group="gRPC endpoint",
        help="Run the commands that rows of genai-perf's form have (message_generator), once each, without a shell.",
    )  # fmt: skip
