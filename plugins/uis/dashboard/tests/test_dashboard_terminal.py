"""The dashboard on a real terminal: keys, sizes, kills, and terminals that nobody reads or that hang up."""

from __future__ import annotations

import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fcntl import ioctl
from typing import Any

import pyte
import pytest
from aiperf_ui_dashboard.driver import Frames
from aiperf_ui_dashboard.terminal import ENTER, LEAVE

LIMIT_S = 120.0
"""Against hanging."""
COLORS = re.compile(r"\x1b\[[\d;]*\b(3[0-8]|4[0-8]|9\d|10\d)[\d;]*m")


KEYS = {
    "3": "TPS (tokens/s)", "4": "high load", "5": "acme", "7": "503", "8": "suspect", "9": "ITL p99",
    "?": "draw the screen again",
}  # fmt: skip


class Watched:
    """A dashboard of the made-up run in a terminal, and what a person sees there."""

    def __init__(self, columns: int, lines: int, words: tuple[str, ...], environment: dict[str, str]) -> None:
        self.ours, self.theirs = pty.openpty()
        self.before = termios.tcgetattr(self.theirs)
        self.screen = pyte.Screen(columns, lines)
        self.stream = pyte.ByteStream(self.screen)
        self.raw = b""
        self.resize(columns, lines)
        around = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES", "NO_COLOR")}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "aiperf_ui_dashboard.testing", *words], stdin=subprocess.DEVNULL, stdout=self.theirs,
            stderr=self.theirs, env=around | {"TERM": "xterm-256color", "PYTHONIOENCODING": "utf-8"} | environment,
        )  # fmt: skip

    def resize(self, columns: int, lines: int) -> None:
        ioctl(self.theirs, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
        self.screen.resize(lines, columns)
        self.screen.reset()

    def press(self, keys: str) -> None:
        os.write(self.ours, keys.encode())

    def read(self, wait_s: float = 0.1) -> None:
        while select.select([self.ours], [], [], wait_s)[0]:
            piece = os.read(self.ours, 1 << 16)
            self.raw += piece
            self.stream.feed(piece)
            wait_s = 0.0

    @property
    def text(self) -> str:
        return "\n".join(line.rstrip() for line in self.screen.display)

    def until(self, seen: Callable[[], Any]) -> None:
        """Read until *seen* is true."""
        end_s = time.monotonic() + LIMIT_S
        while not seen():
            assert time.monotonic() < end_s, self.text
            self.read()

    def shows(self, *words: str) -> None:
        self.until(lambda: all(word in self.text for word in words))

    def ended(self) -> int | None:
        self.until(lambda: self.process.poll() is not None)
        self.read()
        return self.process.returncode

    @property
    def as_before(self) -> bool:
        return termios.tcgetattr(self.theirs) == self.before

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        for descriptor in (self.ours, self.theirs):
            if descriptor >= 0:
                os.close(descriptor)


@contextmanager
def watched(columns: int = 80, lines: int = 24, *words: str, **environment: str) -> Iterator[Watched]:
    dashboard = Watched(columns, lines, words or ("0.05", "100000"), environment)
    try:
        yield dashboard
    finally:
        dashboard.close()


def test_keys_sizes_and_the_end_on_a_terminal() -> None:
    with watched() as dashboard:
        dashboard.shows("─ 2 Progress", "─ 3 Metrics", "─ 6 Log", "Profiling")
        assert not dashboard.as_before
        for key, words in KEYS.items():
            dashboard.press(key)
            if key == "5":
                dashboard.shows("Telemetry: server_metrics")
                dashboard.press(key)
            dashboard.shows(words)
        dashboard.resize(10, 3)
        dashboard.shows("aiperf")
        dashboard.resize(60, 15)
        dashboard.press("1")
        dashboard.shows("─ 2 Progress", "─ 3 Metrics", "Rate 10 s")
        dashboard.press("c")
        dashboard.until(lambda: b"\x1b]52;c;" in dashboard.raw)
        dashboard.press("\x03")
        dashboard.shows("stopping; ^C again cancels")
        dashboard.press("\x03")
        assert dashboard.ended() == 0
        assert dashboard.as_before
    screen, _, after = dashboard.raw.decode().rpartition(LEAVE)
    assert screen.count(ENTER) == 1 and after.splitlines()[-1] == "asked: stop, cancel"
    assert "WARNING line 1 of the log" in after, "the log is on the ordinary screen"
    assert "\x1b[2J\x1b]0;title" not in dashboard.raw.decode(), "the canary is never obeyed"


def test_a_killed_dashboard_leaves_the_terminal_as_it_was() -> None:
    with watched() as dashboard:
        dashboard.shows("─ 3 Metrics")
        dashboard.process.send_signal(signal.SIGKILL)
        dashboard.until(lambda: dashboard.as_before and LEAVE.encode() in dashboard.raw)


def test_a_terminal_that_nobody_reads_stops_nothing() -> None:
    with watched(200, 60, "0.01", "600") as dashboard:
        end_s = time.monotonic() + LIMIT_S
        while dashboard.as_before:
            assert time.monotonic() < end_s
            time.sleep(0.01)
        while dashboard.process.poll() is None and not select.select([], [], [], 0.05)[0]:
            assert time.monotonic() < end_s
            if dashboard.as_before:
                break  # it has left the screen; its last words wait for somebody to read
        dashboard.ended()
        assert dashboard.as_before


def test_a_hung_up_terminal_ends_nothing_by_itself() -> None:
    with watched(80, 24, "0.02", "150") as dashboard:
        dashboard.shows("─ 3 Metrics")
        os.close(dashboard.theirs)
        os.close(dashboard.ours)
        dashboard.ours = dashboard.theirs = -1
        assert dashboard.process.wait(LIMIT_S) in (0, 1, 120), "1, 120: its last line can't be printed, or flushed"


@pytest.mark.parametrize(
    ("environment", "seen"),
    [({"NO_COLOR": "1"}, "─ 3 Metrics"), ({"PYTHONIOENCODING": "ascii"}, "- 3 Metrics")],
    ids=["no colour", "no UTF-8"],
)
def test_terminals_without_colour_or_utf_8_get_none(environment: dict[str, str], seen: str) -> None:
    with watched(80, 24, "0.02", "60", **environment) as dashboard:
        dashboard.shows(seen)
        dashboard.ended()
        assert dashboard.as_before
    drawn = dashboard.raw.partition(LEAVE.encode())[0]
    if "NO_COLOR" in environment:
        assert not COLORS.search(drawn.decode())
    else:
        assert COLORS.search(drawn.decode()) and drawn.isascii()


def test_a_dumb_terminal_gets_plain_lines() -> None:
    with watched(80, 24, "0.001", "60", TERM="dumb") as dashboard:
        assert dashboard.ended() == 0
        assert dashboard.as_before
    assert b"\x1b[?" not in dashboard.raw
    assert b"line 39 of the log" in dashboard.raw


def test_a_run_that_is_over_at_once_is_not_drawn() -> None:
    with watched(80, 24, "0.001", "3") as dashboard:
        assert dashboard.ended() == 0
    assert ENTER.encode() not in dashboard.raw and LEAVE.encode() not in dashboard.raw


def test_whole_frames_are_left_out_where_the_terminal_takes_none() -> None:
    read, write = os.pipe()
    os.set_blocking(write, False)
    frames = Frames(write)
    for number in range(100):
        frames.add(b"%02d" % number * 5000)
        assert frames.write()
    assert frames.lost and frames.waiting
    seen = b""
    while frames.waiting:
        seen += os.read(read, 1 << 16)
        assert frames.write()
    os.close(write)
    while piece := os.read(read, 1 << 16):
        seen += piece
    os.close(read)
    assert len(seen) % 10_000 == 0 and {len(set(seen[at : at + 10_000 : 2])) for at in range(0, len(seen), 10_000)} == {1}
