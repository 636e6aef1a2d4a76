"""``--request-rate-series``: a rate that changes over time, read from a file."""

from __future__ import annotations

import math
from pathlib import Path

import msgspec

from aiperf.errors import ConfigError

_FORM = "write [[0, 5], [60, 50]]: from 5 requests/s at the start to 50 after a minute"


def read(path: Path) -> tuple[tuple[float, float], ...]:
    """The points, (seconds, requests/s) each, linear in between.

    Raises:
        ConfigError: The file can't be read, isn't such a list, or its times don't rise; names the point.
    """
    try:
        points = msgspec.json.decode(path.read_bytes(), type=list[tuple[float, float]])
    except OSError as error:
        raise ConfigError(f"{path} can't be read: {error.strerror or error}") from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} is not a JSON list of points: {error}", _FORM) from error
    if not points:
        raise ConfigError(f"{path} has no points", _FORM)
    before_s = -1.0
    for number, (at_s, rate) in enumerate(points, 1):
        if not (math.isfinite(at_s) and math.isfinite(rate)) or at_s < 0 or rate < 0:
            raise ConfigError(f"{path}: point {number} is [{at_s:g}, {rate:g}]; neither time nor rate may be below 0")
        if at_s <= before_s:
            raise ConfigError(f"{path}: point {number} at {at_s:g} s is not after the one before, at {before_s:g} s")
        before_s = at_s
    if not any(rate > 0 for _, rate in points):
        raise ConfigError(f"{path}: every rate is 0: nothing would ever be sent", _FORM)
    return tuple(points)
