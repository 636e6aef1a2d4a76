"""A trace from a trace: a file of any trace format in, rows of a Mooncake trace out."""

from __future__ import annotations

import gzip
import io
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, cast

import msgspec
from aiperf import AiperfError, BadDataset, atomic
from aiperf.sdk.exporter import visible
from aiperf.sdk.registry import InstalledPlugins
from aiperf.sdk.trace import Trace, TraceRow
from aiperf_command_analyze_trace.analysis import TraceReport, analyse
from aiperf_command_analyze_trace.reading import block_tokens, open_trace
from aiperf_dataset_mooncake_trace.recorded import checked, recorded
from aiperf_dataset_mooncake_trace.synthesis import Row, Scaling, Synthesis
from aiperf_dataset_single_turn.dataset import Rows

_MOONCAKE = "mooncake_trace"
_USUAL_BLOCK = 512
"""Tokens of a block where a trace doesn't say."""


def rescaled(
    source: Path, output: Path, form: str | None, scaling: Scaling, *, block: int | None, seed: int, registry: InstalledPlugins
) -> tuple[TraceReport, TraceReport, list[str]]:
    """Write *output*; gives the reports of both traces, and what a person should know.

    form: the format of *source*; None lets the file tell.  block: length of a block; None takes the format's.

    Raises:
        AiperfError: *source* is no trace, or *output* can't be written.
    """
    if output.resolve() == source.resolve():
        raise AiperfError(f"--output {output} is the trace itself", "name another file")
    name, trace = open_trace(source, form, registry)
    size = block_tokens(block, trace)
    read, session_of = _rows(source, name, registry)
    synthesis = Synthesis(scaling, read, session_of, size, seed, lambda line, why: BadDataset(f"{source}:{line}: {why}"))
    _write(output, synthesis, keep_sessions=name == _MOONCAKE)
    before, _ = analyse(trace.rows, size)
    after, _ = analyse(recorded(output), size)
    notes = [f"left out by --max-isl {scaling.max_isl}: {synthesis.dropped:,} of the rows"] if synthesis.dropped else []
    if synthesis.torn:
        notes.append(synthesis.torn)
    if size != _USUAL_BLOCK:
        notes.append(f"replay it with --isl-block-size {size}: a hash id stands for so many tokens")
    return before, after, notes


def _rows(
    source: Path, name: str, registry: InstalledPlugins
) -> tuple[Callable[[], Iterator[Row]], Callable[[dict[str, Any], int], str | None]]:
    """What reads the rows with the keys of a Mooncake trace, and their sessions.

    Rows of other formats are complete prompts at their times: their sessions decide about trees, and are not written.
    """
    if name == _MOONCAKE:
        reader = Rows(source)
        return (lambda: checked(reader)), reader.session

    def read() -> Iterator[Row]:
        trace: Trace = registry.load("datasets", name).recorded(source)
        for number, row in enumerate(trace.rows, 1):
            if row.texts:
                why = f"{source}: a row of {name} has texts in place of a length, which can't be scaled"
                raise BadDataset(why, "scale a trace that has lengths, such as mooncake_trace or bailian_trace")
            yield number, _converted(row)

    return read, lambda row, line: row["session_id"]


def _converted(row: TraceRow) -> dict[str, Any]:
    new: dict[str, Any] = {"session_id": row.session}
    if row.timestamp_ms is not None:
        new["timestamp"] = row.timestamp_ms
    elif row.delay_ms is not None:
        new["delay"] = row.delay_ms
    new |= {"input_length": max(1, row.input_tokens), "output_length": max(1, row.output_tokens)}
    return new | ({"hash_ids": list(row.blocks)} if row.blocks else {})


def _write(output: Path, synthesis: Synthesis, *, keep_sessions: bool) -> None:
    encode = msgspec.json.Encoder().encode
    try:
        with atomic(output) as draft, _opened(draft, compressed=output.suffix == ".gz") as file:
            for _, row in synthesis.rows():
                if not keep_sessions:
                    del row["session_id"]
                file.write(visible(encode(row)) + b"\n")
    except OSError as error:
        why = error.strerror or error
        raise AiperfError(f"{output} can't be written: {why}", "choose another place with --output") from error


@contextmanager
def _opened(path: Path, *, compressed: bool) -> Iterator[BinaryIO]:
    """The same rows are the same bytes: a compressed file has no time and no name in it."""
    with path.open("wb") as file:
        if not compressed:
            yield file
            return
        stream = gzip.GzipFile("", "wb", fileobj=file, mtime=0)
        with io.BufferedWriter(cast("io.RawIOBase", stream)) as buffered:  # closes the stream, too
            yield cast("BinaryIO", buffered)
