"""``aiperf analyze-trace``: lengths, shared prefixes and times of a trace, without a server."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from aiperf import AiperfError, Command, atomic
from aiperf.sdk.exporter import visible
from msgspec import json, structs

from aiperf_command_analyze_trace.options import AnalyzeTraceOptions

if TYPE_CHECKING:
    from aiperf_command_analyze_trace.analysis import TraceReport

_BARS = ("█", "#")


class AnalyzeTrace(Command[AnalyzeTraceOptions]):
    """Reads a trace once; changes nothing."""

    arguments = "[FILE]"

    def run(self, options: AnalyzeTraceOptions, words: Sequence[str]) -> int:
        """0; what can't be read is an error.

        Raises:
            AiperfError: The file can't be read as a trace, or a file can't be written.
        """
        from aiperf_command_analyze_trace.reading import block_tokens, open_trace, the_file

        path = the_file("analyze-trace", words, options.input_file)
        if options.plot is not None:
            from aiperf_command_analyze_trace.pictures import refuse_other_endings

            refuse_other_endings(options.plot)
        _, trace = open_trace(path, options.dataset_type, self.registry)
        from aiperf_command_analyze_trace.analysis import analyse
        from aiperf_command_analyze_trace.texts import measured

        curve = options.cache_curve or options.plot is not None
        request_ms = None if options.request_seconds is None else options.request_seconds * 1000.0
        size = block_tokens(options.block_size, trace)
        rows = measured(trace.rows, size, self.registry)
        report, cache = analyse(rows, size, curve=curve, caches=bool(options.cache_blocks), request_ms=request_ms)
        report = structs.replace(report, asked_caches=[] if cache is None else cache.sizes(options.cache_blocks))
        _show(report, path, as_json=options.as_json)
        if options.output_file is not None:
            _write(options.output_file, report)
        if options.plot is not None:
            from aiperf_command_analyze_trace.pictures import draw

            print(draw(report, path, options.plot, self.registry), file=sys.stderr)
        return 0


def _show(report: TraceReport, path: Path, *, as_json: bool) -> None:
    if report.lengths_that_disagree:
        which = f"{report.lengths_that_disagree:,} of {report.total_requests:,} rows"
        print(
            f"warning: {path}: {which} have more hash ids than their prompts have blocks of {report.block_size} tokens;"
            " --block-size sets the length of a block",
            file=sys.stderr,
        )
    if as_json:
        print(_json(report))
        return
    from aiperf_command_analyze_trace.shown import shown

    encoding = sys.stdout.encoding or "ascii"
    bar = next(bar for bar in _BARS if bar.encode(encoding, "ignore"))
    for line in shown(report, bar):
        print(line.encode(encoding, "replace").decode(encoding))


def _write(path: Path, report: TraceReport) -> None:
    try:
        with atomic(path) as draft:
            draft.write_text(_json(report) + "\n", encoding="utf-8")
    except OSError as error:
        why = error.strerror or error
        raise AiperfError(f"{path} can't be written: {why}", "name another file with --output-file") from error
    print(f"written: {path}", file=sys.stderr)


def _json(report: TraceReport) -> str:
    return visible(json.format(json.encode(report), indent=2)).decode()


__all__ = ["AnalyzeTrace"]
