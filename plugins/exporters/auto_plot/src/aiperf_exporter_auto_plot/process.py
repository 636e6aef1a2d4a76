"""The process of the pictures: ``aiperf plot`` on the results, without its lines on the terminal."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable
from pathlib import Path

import msgspec
from aiperf import AiperfError
from aiperf.parts.registry import Registry
from aiperf.sdk.command import PluginOptions
from aiperf_command_plot import PlotCommand
from aiperf_command_plot.options import PlotOptions
from aiperf_uploads.process_side import Teller, serve

from aiperf_exporter_auto_plot.job import PictureJob

_MARK = "error: "


class _Lines(io.TextIOBase):
    """Calls *heard* with each line that is printed."""

    def __init__(self, heard: Callable[[str], None]) -> None:
        self._heard, self._line = heard, ""

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        *lines, self._line = (self._line + text).split("\n")
        for line in lines:
            self._heard(line)
        return len(text)


def work(message: bytes, teller: Teller) -> None:
    """Draw the pictures; tell of each file, and of each picture that failed."""
    job = msgspec.json.decode(message, type=PictureJob)
    files: list[str] = []
    failures: list[str] = []

    def drawn(line: str) -> None:
        files.append(line)
        teller.facts(files=files)

    def failed(line: str) -> None:
        if line.startswith(_MARK):
            failures.append(line.removeprefix(_MARK))
            teller.facts(failures=failures)

    command = PlotCommand()
    command.registry = Registry.discover()
    command.plugin_options = PluginOptions(command.registry, {}, {})
    config = None if job.config is None else Path(job.config)
    options = PlotOptions(paths=[Path(job.directory)], output=Path(job.output), config=config)
    try:
        with contextlib.redirect_stdout(_Lines(drawn)), contextlib.redirect_stderr(_Lines(failed)):
            command.run(options, ())
    except AiperfError as error:
        teller.left(None, "; ".join((error.message, *error.hints)))
    else:
        teller.sent("pictures")


if __name__ == "__main__":
    serve(work)
