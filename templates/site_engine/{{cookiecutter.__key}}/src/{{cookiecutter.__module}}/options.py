"""What can be typed about the {{ cookiecutter.name }} engine."""

from __future__ import annotations

from pathlib import Path

from aiperf import Options, option


class DirectoryOptions(Options):
    directories: tuple[Path, ...] = option(
        "--{{ cookiecutter.__word }}-directories", default=(), metavar="DIRS", help="A site in each of these directories.",
    )  # fmt: skip
