"""What is to be drawn, and for how long."""

from __future__ import annotations

from aiperf.sdk.environment import number
from msgspec import Struct

LIMIT = "AIPERF_AUTO_PLOT_TIMEOUT_SECONDS"
_LEAST_S, _MOST_S, _USUAL_S = 0.1, 86_400, 300


class PictureJob(Struct, frozen=True):
    """What is to be drawn.  config: the file that declares the pictures; None are those of the installed plots."""

    directory: str
    output: str
    config: str | None = None


def limit_s() -> float:
    """The time for the pictures in s, from the environment.

    Raises:
        ConfigError: The variable is no number from 0.1 to 86,400.
    """
    return number(LIMIT, _LEAST_S, _MOST_S, _USUAL_S)
