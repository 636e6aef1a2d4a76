"""Textual's loop beside the run's feed, in one thread."""

from __future__ import annotations

import asyncio
import gc
from collections import deque
from collections.abc import Callable
from pathlib import Path

from aiperf.sdk.environment import progress_s
from aiperf.sdk.live import LiveEnd, LiveFeed, LiveRun, Step
from aiperf.sdk.snapshot import LogLine, Snapshot

from aiperf_ui_dashboard.board import LOG_LINES, Board
from aiperf_ui_dashboard.driver import TerminalDriver
from aiperf_ui_dashboard.terminal import Terminal, encoding, shows_unicode


class Screen:
    """The board on a terminal.  Its methods only queue: the board draws in its own time."""

    def __init__(self, terminal: Terminal, stop: Callable[[str], None], cancel: Callable[[str], None]) -> None:
        self._pictures = "."
        driver = type("OurDriver", (TerminalDriver,), {"terminal": terminal, "encoding": encoding()})
        self.board = Board(
            lambda what: (stop if what == "stop" else cancel)("asked on the dashboard"), metrics_s=progress_s(),
            unicode=shows_unicode(), driver_class=driver, pictures=lambda: self._pictures,
        )  # fmt: skip
        self._snapshot: Snapshot | None = None
        self._lines = deque[LogLine](maxlen=LOG_LINES)
        self._due = False

    def begin(self, run: LiveRun) -> None:
        plan = run.plan
        self._snapshot = None
        self._pictures = str(plan.output.artifacts) if Path(plan.output.artifacts).is_dir() else "."
        if any("dashboard" in (options.values.get("gpu_telemetry") or ()) for options in plan.plugins.options.values()):
            self.board.call_later(self.board.open_telemetry, "gpu_")
        words = (", ".join(plan.target.models), plan.plugins.endpoint.name, ", ".join(plan.target.urls))
        self.board.call_later(self.board.next_run, "  ".join(word for word in words if word))

    def step(self, step: Step) -> None:
        self.board.call_later(self.board.say, step.line(), "head")

    def show(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._soon()

    def log(self, line: LogLine) -> None:
        self._lines.append(line)
        self._soon()

    def end(self, end: LiveEnd) -> None:
        if end.failure:
            self.board.call_later(self.board.say, end.failure, "bad", lasting=True)

    def live(self, feed: LiveFeed) -> None:
        """Run until the feed is over.  An error of the board is raised, once the terminal is as before."""
        asyncio.run(self._live(feed))

    async def _live(self, feed: LiveFeed) -> None:
        following = asyncio.create_task(feed.followed())
        following.add_done_callback(lambda _: self.board.call_later(self.board.exit))
        asyncio.get_running_loop().call_later(2.0, _freeze)
        await self.board.run_async(mouse=False)
        if self.board.failure is not None:
            raise self.board.failure
        if following.done():
            following.result()

    def _soon(self) -> None:
        if not self._due:
            self._due = True
            self.board.call_later(self._flush)

    def _flush(self) -> None:
        self._due = False
        while self._lines:
            self.board.log_line(self._lines.popleft())
        snapshot, self._snapshot = self._snapshot, None
        if snapshot is not None:
            self.board.take(snapshot)


def _freeze() -> None:
    """What is there by now stays to the end: collections need not look at it again."""
    gc.collect()
    gc.freeze()


__all__ = ["Screen"]
