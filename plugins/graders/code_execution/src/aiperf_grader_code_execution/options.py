"""The option of the grader code_execution."""

from __future__ import annotations

from typing import Literal

from aiperf.sdk.options import Options, option


class CodeExecutionOptions(Options):
    """What the user allows."""

    allowed: Literal["isolated", "unisolated"] | None = option(
        "--accuracy-allow-code-execution", group="Accuracy", metavar="HOW", shown="refused", choices=("isolated", "unisolated"),
        place="accuracy.allow_code_execution",
        help="Let the grader code_execution run programs from answers: cut off from network and files, or as this user.",
    )  # fmt: skip
