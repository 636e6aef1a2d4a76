"""How a run goes: signals that the user sends, and what the report says of the run's course."""

from __future__ import annotations

import contextlib
import logging
import signal
import sys
from collections.abc import Iterator
from time import monotonic_ns
from types import FrameType

log = logging.getLogger(__name__)


class Interruption(Exception):  # noqa: N818  # the user's wish, not an error
    """The user ended the run while there was nothing to drain."""


class Signals:
    """Counts SIGINT and SIGTERM.  *code* is the exit code that the first one asks for, 0 before it."""

    def __init__(self) -> None:
        self.count = self.code = 0

    @contextlib.contextmanager
    def caught(self) -> Iterator[Signals]:
        handlers = {number: signal.signal(number, self._note) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield self
        finally:
            for number, handler in handlers.items():
                signal.signal(number, handler)

    def check(self) -> None:
        """Raises Interruption after a signal."""
        if self.count:
            raise Interruption

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.count += 1
        self.code = self.code or (130 if number == signal.SIGINT else 143)
        if self.count == 1:
            print("\naiperf: stopping; results so far will be written. Press Ctrl-C again to drop them.", file=sys.stderr)


class Outcome:
    """Signals, warnings, the reason why a run is incomplete, its lost workers, and the instants of its stages.

    incomplete: a sentence, None while nothing cut the run short.  lost: indices of workers that died without a replacement.
    replaced: how many workers had one.  times: monotonic ns by stage, the content of ``run-times.json``.
    """

    def __init__(self, signals: Signals) -> None:
        self.signals = signals
        self.warnings: list[str] = []
        self.incomplete: str | None = None
        self.lost: set[int] = set()
        self.replaced = 0
        self.times: dict[str, int] = {}
        self.stamp("begun_ns")

    def stamp(self, stage: str) -> None:
        self.times[stage] = monotonic_ns()

    def warn(self, sentence: str) -> None:
        """Log the sentence and put it into the report."""
        log.warning("%s", sentence)
        self.warnings.append(sentence)
