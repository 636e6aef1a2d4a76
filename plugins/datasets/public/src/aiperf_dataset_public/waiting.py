"""A hub that asks to wait, and the words for it."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime

from aiperf import BadDataset

log = logging.getLogger("aiperf.datasets.public")
TOO_MANY = 429
"""The HTTP status of a server that wants fewer requests."""
_USUAL_S = 10.0
_LONGEST_S = 15 * 60.0


class Patience:
    """Waits as a server asks, at most *longest_s* in all."""

    def __init__(self, longest_s: float = _LONGEST_S) -> None:
        self._left_s, self._longest_s = longest_s, longest_s

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)

    def told_to_wait(self, status: int, headers: Mapping[str, str]) -> bool:
        """Whether the server asked to wait (429); the wait is over then.

        Raises:
            BadDataset: It asks for more than is left.
        """
        if status != TOO_MANY:
            return False
        seconds = _retry_after_s(headers.get("Retry-After", ""))
        if seconds > self._left_s:
            raise BadDataset(
                f"the hub has had too many requests (429) and asks to wait {seconds:.0f} s; this run waits at most"
                f" {self._longest_s:.0f} s",
                "try later, or log in: limits of known users are higher",
            )
        self._left_s -= seconds
        log.warning("the hub has had too many requests (429): waiting %.0f s, as it asks", seconds)
        self.sleep(seconds)
        return True


def _retry_after_s(value: str) -> float:
    """Seconds of a ``Retry-After``, which is a number or a date (RFC 9110, 10.2.3); a usual wait where it is neither."""
    try:
        return max(1.0, float(value))
    except ValueError:
        pass
    try:
        return max(1.0, parsedate_to_datetime(value).timestamp() - time.time())
    except ValueError:
        return _USUAL_S
