"""The process of a slow grader: it grades case by case, one at a time, and ends with the run.

    python -m aiperf_reducer_columns.reduce.grader_process REPLIES

Standard input has a line of JSON per message: :class:`Open` first, then an :class:`Ask` for each case.  Each gets a
:class:`Reply` on the descriptor *REPLIES*.
"""

from __future__ import annotations

import os
import queue
import signal
import sys
import threading

import msgspec
from aiperf.parts.loading import made, why
from aiperf.parts.processes import ignore_endings, send_reply
from aiperf.sdk.descriptor import PluginRef
from aiperf.sdk.grader import Case, Grade, Grader, takes_case
from aiperf.sdk.options import EncodedOptions
from msgspec import Struct

from aiperf_reducer_columns.reduce.checked_grades import checked_grade


class Open(Struct, frozen=True, tag=True):
    """Make the grader.  scratch: where temporary files go; it is removed after the process."""

    ref: PluginRef
    options: EncodedOptions | None
    scratch: str


class Ask(Struct, frozen=True, tag=True):
    """Grade the case."""

    case: Case


class Reply(Struct, frozen=True):
    """A grade, or why there is none; neither after a start."""

    grade: Grade | None = None
    failed: str | None = None


def main(replies: str) -> None:
    """Answer until the run ends, even in the middle of a case."""
    ignore_endings()
    lines: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    # A descriptor of its own: code of a plugin that reads the standard input gets its end.
    source, null = os.dup(0), os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    threading.Thread(target=_listen, args=(source, lines), daemon=True).start()
    decode = msgspec.json.Decoder(Open | Ask).decode
    grader: Grader | None = None
    while True:
        try:
            match decode(lines.get()):
                case Open(ref, options, scratch):
                    os.environ["TMPDIR"] = scratch
                    if (loaded := sys.modules.get("tempfile")) is not None:
                        vars(loaded)["tempdir"] = None  # it remembers another one
                    grader = made(ref, None if options is None else options.decoded())
                    reply = Reply()
                case Ask(case):
                    assert grader is not None
                    reply = Reply(checked_grade(grader, case, whole=takes_case(grader)))
        except Exception as error:  # noqa: BLE001  # code of a plugin
            reply = Reply(failed=f"the grader failed: {why(error)}")
        sys.stdout.flush()  # the process will be killed: what the grader printed is in the log before its reply
        send_reply(int(replies), reply)


def _listen(source: int, lines: queue.SimpleQueue[bytes]) -> None:
    part = b""
    while piece := os.read(source, 1 << 16):
        *whole, part = (part + piece).split(b"\n")
        for line in whole:
            lines.put(line)
    if os.getpgrp() == os.getpid():
        os.killpg(0, signal.SIGKILL)
    os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1])
