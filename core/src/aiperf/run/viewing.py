"""The process of a live view, or of the display: turns the messages of the run into calls of the plugin.

    python -m aiperf.run.viewing REPLIES

A display works at idle priority.  A live view gets it from the run once it has begun, or the load begins: before that it stands
back a little (``views.py``).  A view that fails ends its process, and says why.
"""

from __future__ import annotations

import contextlib
import os
import select
import sys
import threading
from pathlib import Path
from typing import TypeAlias

import msgspec

from aiperf.cores import ask_for_short_slices, work_apart
from aiperf.processes.local import end_without_reader, ignore_endings, send_reply
from aiperf.registry.imports import leave
from aiperf.registry.third_party import load, why
from aiperf.sdk.descriptor import PluginRef
from aiperf.sdk.live import Asked, LiveEnd, LiveFeed, LiveRun, LiveView, Said, Step
from aiperf.sdk.options import EncodedOptions
from aiperf.sdk.snapshot import LogLine, Snapshot

_PIECE_BYTES = 1 << 20
_BEFORE_LOAD_NICE = 5
"""Of a live view before the load: a core that the run's own processes want, too, is theirs for three quarters of the time."""


class Opened(msgspec.Struct, frozen=True, tag=True):
    """The first message to the process: the plugin and its options.  display: it is no live view."""

    ref: PluginRef
    options: EncodedOptions | None
    display: bool = False


class Began(msgspec.Struct, frozen=True, tag=True):
    """A plan begins.  log: the file that standard output and error go to from now on; "" leaves them."""

    run: LiveRun
    log: str = ""


class Shown(msgspec.Struct, frozen=True, tag=True):
    snapshot: Snapshot


class Stepped(msgspec.Struct, frozen=True, tag=True):
    step: Step


class Logged(msgspec.Struct, frozen=True, tag=True):
    line: LogLine


class PlanEnded(msgspec.Struct, frozen=True, tag=True):
    end: LiveEnd


class Broke(msgspec.Struct, frozen=True, tag=True):
    """The reply of a view that failed."""

    why: str


Message: TypeAlias = Opened | Began | Shown | Stepped | Logged | PlanEnded
Reply: TypeAlias = Asked | Said | Broke
encode = msgspec.json.Encoder().encode
decode_reply = msgspec.json.Decoder(Reply).decode
_SHOWN = b'{"type":"Shown"'


class _Feed(LiveFeed):
    """The run's messages on standard input."""

    def __init__(self, view: LiveView) -> None:
        self._view, self._part, self.over = view, b"", False
        self._decode = msgspec.json.Decoder(Message).decode

    def fileno(self) -> int:
        return 0

    def take(self, wait_s: float | None = 0.0) -> bool:
        if self.over or not select.select([0], [], [], wait_s)[0]:
            return not self.over
        piece = os.read(0, _PIECE_BYTES)
        self.over = not piece
        *lines, self._part = (self._part + piece).split(b"\n")
        newest = max((at for at, line in enumerate(lines) if line.startswith(_SHOWN)), default=-1)
        for at, line in enumerate(lines):
            if at == newest or not line.startswith(_SHOWN):
                self._call(self._decode(line))
        return not self.over

    def _call(self, message: Message) -> None:
        match message:
            case Began(run, log):
                _print_to(log)
                self._view.begin(run)
            case Shown(snapshot):
                self._view.show(snapshot)
            case Stepped(step):
                self._view.step(step)
            case Logged(line):
                self._view.log(line)
            case PlanEnded(end):
                self._view.end(end)


def _print_to(log: str) -> None:
    if log:
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        with contextlib.suppress(OSError), Path(log).open("ab") as file:
            os.dup2(file.fileno(), 1)
            os.dup2(file.fileno(), 2)


def work_idly() -> None:
    """Take only what others leave of the cores, and leave a core soon when another process wakes."""
    ask_for_short_slices()  # an idle process keeps those that it had
    with contextlib.suppress(OSError):
        if sys.platform == "linux":
            os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
        else:
            os.setpriority(os.PRIO_PROCESS, 0, 19)


def _take_place(*, display: bool) -> None:
    """Be apart from the run, and behind it; a live view only so far that it may begin on a machine without a free core."""
    if not os.isatty(2):  # a display leaves the session by itself, if it can do without a controlling terminal
        work_apart()
    if display or sys.platform != "linux":
        work_idly()
    else:
        ask_for_short_slices()
        os.nice(_BEFORE_LOAD_NICE)


def _first_line() -> bytes:
    """The first message, and no byte behind it; empty where there is none."""
    line = b""
    while (byte := os.read(0, 1)) not in (b"", b"\n"):
        line += byte
    return line if byte else b""


def main(arguments: list[str]) -> int:
    (replies,) = map(int, arguments)
    ignore_endings()
    first = _first_line()
    opened = msgspec.json.decode(first, type=Opened) if first else None
    _take_place(display=opened is None or opened.display)
    threading.Thread(target=end_without_reader, args=[replies], daemon=True).start()
    lock = threading.Lock()

    def answer(message: Reply) -> None:
        with lock:
            send_reply(replies, message)

    try:
        if opened is not None:
            view: LiveView = load(opened.ref)(None if opened.options is None else opened.options.decoded())
            view.answer = answer
            view.run(_Feed(view))
            view.close()
    except (Exception, SystemExit) as error:  # noqa: BLE001  # code of a plugin
        answer(Broke(why(error)))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(leave(main(sys.argv[1:])))
