"""A module whose import never ends, and catches what would end it."""

from __future__ import annotations

import contextlib
import time

while True:
    with contextlib.suppress(Exception):
        time.sleep(3600)
