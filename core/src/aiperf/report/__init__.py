"""From columns to a summary."""

from typing import Any

from aiperf.moved import absent


def __getattr__(name: str) -> Any:
    raise absent(__name__, name)
