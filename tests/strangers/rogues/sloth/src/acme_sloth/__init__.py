"""Everything in it never returns, catches what ends it, ends its process, or prints what steers a terminal.

``SLOTH`` in the environment names what hangs, by commas; without it everything does.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from aiperf import (
    Artifact,
    BatchExporter,
    Conversation,
    Dataset,
    Grade,
    Grader,
    RecordBatch,
    Summary,
    SummaryExporter,
    Turn,
    hookimpl,
)  # fmt: skip
from aiperf.sdk.companion import Companion
from aiperf.sdk.live import Step
from aiperf.sdk.snapshot import LogLine, Snapshot
from aiperf.sdk.ui import Ui

STEER = "\x1b[2J\x9b1m\u202e"


def hang(what: str) -> None:
    """For ever, and what ends it is caught once."""
    if what in os.environ.get("SLOTH", what).split(","):
        if said := os.environ.get("SLOTH_SAYS"):
            Path(said).touch()
        with contextlib.suppress(BaseException):
            threading.Lock().acquire() and threading.Event().wait()
        while True:
            time.sleep(3600)


class Guest(Companion[None]):
    def finish(self) -> None:
        hang("companion")


class Riddle(Dataset):
    def __iter__(self) -> Iterator[Conversation]:
        for number in range(self.context.entries):
            yield Conversation(f"riddle-{number}", (Turn(texts=("What has keys?",), max_tokens=4, expected="piano"),))


class Ledger(SummaryExporter):
    def export(self, summary: Summary) -> Sequence[Artifact]:
        print(f"wait{STEER}")
        hang("exporter")
        raise ValueError(f"woken{STEER}")


class Rows(BatchExporter):
    label, kind, files = "Sloth", "sloth.txt", {"sloth.txt": "{prefix_}sloth.txt"}

    def rows(self, batch: RecordBatch) -> bytes:
        hang("rows")
        return b"row\n" * len(batch["outcome"])


class Judge(Grader):
    def grade(self, expected: str, response: str) -> Grade:
        hang("grader")
        return Grade(correct=True)


class Hooks:
    @hookimpl
    def aiperf_batch_reduced(self, batch: RecordBatch) -> None:
        hang("batch hook")

    @hookimpl
    def aiperf_summary_made(self, summary: Summary) -> None:
        os._exit(0)

    @hookimpl
    def aiperf_export(self, summary: Summary, target: Any) -> None:
        hang("hook")


class Window(Ui):
    def show(self, snapshot: Snapshot) -> None:
        hang("display")

    def step(self, step: Step) -> None:
        hang("display")

    def log(self, line: LogLine) -> None:
        hang("display")
