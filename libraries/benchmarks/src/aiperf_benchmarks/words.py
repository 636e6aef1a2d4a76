"""Words of published protocols, which packages of benchmarks have as data files with their source and licence."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

import msgspec


@cache
def words(package: str) -> dict[str, str]:
    """The texts of ``words.json`` in the *package*, by name."""
    return msgspec.json.decode(files(package).joinpath("words.json").read_bytes(), type=dict[str, str])
