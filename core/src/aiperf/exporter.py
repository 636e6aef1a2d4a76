"""The exporter contracts: readers of results.

A :class:`SummaryExporter` runs once, in the parent, at the end.  A :class:`BatchExporter` turns each batch of finished
requests into bytes, in the reducer; the kernel writes and joins the parts.  A :class:`DatasetExporter` sees what will
be asked, before load starts.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from msgspec import Struct

if TYPE_CHECKING:
    from aiperf.columns import Column, Floats, RecordBatch
    from aiperf.metric import Declared
    from aiperf.model import Conversation
    from aiperf.summary import Summary

LEVELS = ("summary", "records", "raw")
"""Values of ``--export-level``; each includes the ones before it."""

_JOIN_BYTES = 1 << 20

_DEFAULT_NAMES = {
    "aiperf.json": "profile_export_aiperf.json",
    "aiperf.csv": "profile_export_aiperf.csv",
    "jsonl": "profile_export.jsonl",
    "arrivals.jsonl": "profile_export_arrivals.jsonl",
    "console.txt": "profile_export_console.txt",
    "raw.jsonl": "profile_export_raw.jsonl",
    "parquet": "profile_export.parquet",
    "chunks.parquet": "profile_export_chunks.parquet",
    "timeslices.csv": "profile_export_aiperf_timeslices.csv",
    "timeslices.json": "profile_export_aiperf_timeslices.json",
}

_NEVER_PREFIXED = ("inputs.json", "outputs.json")


class Target(Struct, frozen=True):
    """Where and how much to export.

    prefix: base name from ``--profile-export-prefix``, suffixes already stripped; None for the default names.
    level: one of LEVELS.  width: columns of the console copy.  options of the run a reader may want are in *config*.
    started_wall_ns: wall clock at the run's time zero: adding it to a column gives an exported time stamp.
    phases: phase names by index; *kinds* ``warmup`` or ``profiling`` likewise.  reducers: how many the run has; shard i
    belongs to reducer i modulo that.  journal: the run's segments and columns, None where there are none.
    """

    directory: Path
    prefix: str | None = None
    level: str = "records"
    width: int = 140
    verbose: bool = False
    started_wall_ns: int = 0
    phases: tuple[str, ...] = ("profiling",)
    kinds: tuple[str, ...] = ("profiling",)
    reducers: int = 1
    journal: Path | None = None
    config: dict[str, Any] = {}

    def file(self, kind: str) -> Path:
        """The path of an artifact of this kind: ``aiperf.json``, ``aiperf.csv``, ``jsonl``, ``arrivals.jsonl``,
        ``raw.jsonl``, ``console.txt``, under the reference's names; any other kind is its own default name.  A prefix
        is put before all but ``inputs.json`` and ``outputs.json``.
        """
        if self.prefix is None or kind in _NEVER_PREFIXED:
            return self.directory / _DEFAULT_NAMES.get(kind, kind)
        ending = kind.removeprefix("aiperf.")
        joiner = "_" if "." in ending else "."
        return self.directory / f"{self.prefix}{joiner}{ending}"


def prefix_of(directory: Path) -> str | None:
    """The base name that a directory's files were exported under; None for the default names.

    Where none of those is there: of ``B.json`` and ``B.csv`` that stand beside each other, if the former is a summary.
    """
    usual = Target(directory)
    if usual.file("aiperf.json").exists() or usual.file("jsonl").exists():
        return None
    bases = [one.stem for one in sorted(directory.glob("*.json")) if one.with_suffix(".csv").exists()]
    return next((base for base in bases if _is_summary(directory / f"{base}.json")), None)


def _is_summary(path: Path) -> bool:
    try:
        found = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return False
    return isinstance(found, dict) and "schema_version" in found


class Artifact(Struct, frozen=True):
    """A file an exporter wrote, under the label the console prints."""

    label: str
    path: Path


@contextlib.contextmanager
def atomic(path: Path) -> Iterator[Path]:
    """A name to write to, which becomes *path* when the block ends well and vanishes when it doesn't."""
    draft = path.with_name(f".{path.name}.{os.getpid()}.draft")
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        yield draft
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


class Exporter:
    """Base of all exporters.  *options* has the exporter's own options as attributes (None where it declares none)."""

    level: ClassVar[str] = "summary"
    """The lowest ``--export-level`` at which it runs."""

    def __init__(self, target: Target, options: Any = None) -> None:
        self.target = target
        self.options = options

    def wanted(self) -> bool:
        """Whether this run asked for it; else nothing is written, and no file of it named."""
        return True


class SummaryExporter(Exporter):
    """Reads the summary at the end; in the parent, once."""

    def export(self, summary: Summary) -> Sequence[Artifact]:
        raise NotImplementedError(f"{type(self).__name__} must define export(summary)")


class Scored(Struct, frozen=True):
    """A batch with its metrics: *values* by tag in base units (NaN absent), *metrics* the declarations.

    cut_off: of durations, what stands so far for requests that were cut off in flight, and isn't in *values*.
    """

    batch: RecordBatch
    values: Mapping[str, Column]
    metrics: Mapping[str, Declared]
    cut_off: Mapping[str, Floats] = {}


class BatchExporter(Exporter):
    """Turns batches into a file; in the reducer, per batch.  All requests come by, whatever their outcome.

    The kernel writes ``header()`` once, then the rows of every batch, and joins the parts of several reducers.
    """

    level = "records"
    label: ClassVar[str] = ""
    kind: ClassVar[str] = ""
    """The artifact's kind, see :meth:`Target.file`."""

    def header(self) -> bytes:
        return b""

    def rows(self, scored: Scored) -> bytes:
        """The batch's lines; deterministic."""
        raise NotImplementedError(f"{type(self).__name__} must define rows(scored)")

    def join(self, parts: Sequence[Path]) -> Iterator[bytes]:
        """The whole file from the parts of the reducers, in their order.  In the parent, once, at the end."""
        yield self.header()
        for part in parts:
            with part.open("rb") as file:
                while block := file.read(_JOIN_BYTES):
                    yield block


class DatasetExporter(Exporter):
    """Sees every conversation with its encoded bodies, before load starts; in the parent, streamed."""

    label: ClassVar[str] = ""
    kind: ClassVar[str] = ""

    def header(self) -> bytes:
        return b""

    def entry(self, conversation: Conversation, bodies: Sequence[bytes], *, first: bool) -> bytes:
        """The conversation's part of the file; *bodies* has one encoded body per turn."""
        raise NotImplementedError(f"{type(self).__name__} must define entry(conversation, bodies, first=…)")

    def footer(self) -> bytes:
        return b""
