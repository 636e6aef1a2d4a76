"""What can be typed after ``aiperf {{ cookiecutter.__word }}``."""

from __future__ import annotations

from aiperf import Options, option


class CommandOptions(Options):
    top: int = option("--top", default=10, ge=1, metavar="INT", help="How many requests to print.")
