"""The run's tables, on standard output and as a text file."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Sequence
from typing import TextIO

from aiperf import Artifact, Summary, SummaryExporter, atomic

from aiperf_exporter_console.metrics import COLUMNS
from aiperf_exporter_console.options import ConsoleOptions
from aiperf_exporter_console.report import report
from aiperf_exporter_console.table import BOX, PLAIN, Look


class Console(SummaryExporter[ConsoleOptions]):
    """Prints as wide as the terminal, or as the file where there is none; writes ``profile_export_console.txt``."""

    files = {"console.txt": "{prefix}_console.txt"}
    early = True

    def export(self, summary: Summary) -> Sequence[Artifact]:
        path, columns = self.target.file("console.txt"), self.target.statistics(COLUMNS)
        verbose, trace = self.target.verbose, self.options is not None and self.options.show_trace_timing
        text = report(summary, Look(BOX), self.target.width, verbose=verbose, trace=trace, columns=columns)
        with atomic(path) as draft:
            draft.write_text(text, encoding="utf-8")
        if sys.stdout.isatty() or not can(BOX, sys.stdout.encoding or "ascii"):
            say(sys.stdout, summary, self.target.width, verbose=verbose, trace=trace, columns=columns)
        else:
            sys.stdout.write(text)  # as in the file
            sys.stdout.flush()
        return [Artifact("Console Export", path)]


def say(
    stream: TextIO, summary: Summary, width: int, *, verbose: bool, trace: bool = False, columns: Sequence[str] = COLUMNS
) -> None:
    """Print the report; a terminal gets its own width and no tables of groups, *width* serves elsewhere."""
    terminal = stream.isatty()
    if terminal:
        width = shutil.get_terminal_size((80, 24)).columns
    encoding = stream.encoding or "ascii"
    look = Look(BOX if can(BOX, encoding) else PLAIN, terminal and colourful())
    text = report(summary, look, width, verbose=verbose, trace=trace, screen=terminal, columns=columns)
    stream.write(text.encode(encoding, "replace").decode(encoding))
    stream.flush()


def can(characters: str, encoding: str) -> bool:
    """Whether the encoding has these characters."""
    try:
        characters.encode(encoding)
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def colourful() -> bool:
    """What the user's environment says of colours (https://no-color.org)."""
    return not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
