"""Progress before and behind the load: what the run does, how far it is, and for how long, once it takes over a second."""

from __future__ import annotations

import contextlib
import logging
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, TextIO, TypeAlias

from aiperf.run.display import Display
from aiperf.sdk.live import Step

log = logging.getLogger(__name__)

_FIRST_S = 1.0
_EVERY_S = 0.25

Far: TypeAlias = tuple[int | None, int | None, str]
"""Done and total, None for unknown, and their unit."""


def unknown() -> Far:
    return None, None, ""


@contextlib.contextmanager
def step(
    display: Display, what: str, far: Callable[[], Far] = unknown, *, logged: bool = False
) -> Iterator[Callable[[], None]]:
    """A step; the block calls the result often, which shows it four times a second.  *logged*: it logs its progress itself."""
    begun_s = time.monotonic()
    due_s = begun_s + _FIRST_S

    def tell() -> None:
        nonlocal due_s
        now_s = time.monotonic()
        if now_s >= due_s:
            due_s = now_s + _EVERY_S
            display.step(Step(what, now_s - begun_s, *far()), logged=logged)

    yield tell
    log.debug("%s took %.2f s", what, time.monotonic() - begun_s)


@contextlib.contextmanager
def watched(display: Display, what: str) -> Iterator[None]:
    """A step whose work can't tell how far it is: a thread shows it.  What the work prints takes a drawn display's place."""
    over = threading.Event()

    def watch() -> None:
        with step(display, what) as tell:
            while not over.wait(_EVERY_S):
                tell()

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        if display.draws:
            with contextlib.redirect_stdout(_Closing(sys.stdout, display)):
                yield
        else:
            yield
    finally:
        over.set()
        thread.join()


class _Closing:
    """Standard output that closes the display before the first text."""

    def __init__(self, stream: TextIO, display: Display) -> None:
        self._stream, self._display = stream, display

    def write(self, text: str) -> int:
        self._display.close()
        return self._stream.write(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)
