"""What can be typed about the {{ cookiecutter.name }} driver."""

from __future__ import annotations

from aiperf import Options, option


class PauseOptions(Options):
    pause_s: float = option(
        "--{{ cookiecutter.__word }}-pause",
        default=0.1,
        ge=0,
        metavar="SECONDS",
        help="Time between an answer and the next request.",
    )
