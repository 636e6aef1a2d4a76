"""The process of an upload: it has the keys of other programs, and ends with the run."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from typing import Any

from aiperf.parts.processes import ignore_endings, send_reply
from aiperf.sdk.environment import secret_texts
from aiperf.sdk.redaction import redact, scrubbed

from aiperf_uploads.replies import ItemLeft, ItemSent, Reply, UploadEnded, UploadFacts

_LONGEST = 400
"""Characters of a reason."""


class Teller:
    """Tells the run what has arrived.  Threads may share it."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor, self._lock = descriptor, threading.Lock()

    def sent(self, item: str) -> None:
        self._tell(ItemSent(item))

    def left(self, item: str | None, why: str | BaseException) -> None:
        """An item, or None: all that are not sent yet."""
        self._tell(ItemLeft(item, why if isinstance(why, str) else reason(why)))

    def facts(self, **facts: Any) -> None:
        self._tell(UploadFacts(facts))

    def ended(self) -> None:
        self._tell(UploadEnded())

    def _tell(self, reply: Reply) -> None:
        with self._lock:
            send_reply(self._descriptor, reply)


def reason(error: BaseException) -> str:
    """What an exception says, on one line and without secrets; its type where it says nothing."""
    said = " ".join(str(error).split()) or type(error).__name__
    said = scrubbed(redact(said), secret_texts())
    return said if len(said) <= _LONGEST else f"{said[:_LONGEST]}…"


def serve(work: Callable[[bytes, Teller], None]) -> None:
    """Read the job, a line of JSON, call *work* with it, and tell the end; an exception is the reason for all that is left."""
    ignore_endings()
    teller = Teller(int(sys.argv[1]))
    job = _job()
    sys.stdin = open(os.devnull, encoding="utf-8")  # noqa: SIM115, PTH123  # nobody answers a question
    threading.Thread(target=_end_with_run, daemon=True).start()
    try:
        work(job, teller)
    except (Exception, SystemExit) as error:  # noqa: BLE001  # of the tracker's client
        teller.left(None, error)
    teller.ended()


def _job() -> bytes:
    """The line that the run sends first."""
    pieces = bytearray()
    while not pieces.endswith(b"\n") and (piece := os.read(0, 1 << 16)):
        pieces += piece
    return bytes(pieces)


def _end_with_run() -> None:
    """The run closes this process's input when it waits no longer, and the system does when the run is gone."""
    while os.read(0, 1 << 16):
        pass
    os._exit(1)


__all__ = ["Teller", "reason", "serve"]
