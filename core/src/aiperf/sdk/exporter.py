"""The exporter contracts: readers of results.

A :class:`SummaryExporter` runs once in the parent, at the end.  A :class:`BatchExporter` turns each batch of finished
requests into bytes in the reducer; the kernel writes and joins the parts.  A :class:`DatasetExporter` sees the encoded
data set while it is made.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from glob import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from aiperf.redaction import REDACTED
from aiperf.sdk.options import OptionsT
from aiperf.sdk.statistics import percentile, percentile_name

if TYPE_CHECKING:
    from aiperf.sdk.columns import RecordBatch
    from aiperf.sdk.model import Conversation
    from aiperf.sdk.study import Study, StudyRun
    from aiperf.sdk.summary import Summary

LEVELS = ("summary", "records", "raw")
"""Values of ``--export-level``; each includes the ones before it."""

_CONTROLS = re.compile(rb"\xc2[\x80-\x9f]|\xd8\x9c|\xe2\x80[\x8e\x8f\xaa-\xae]|\xe2\x81[\xa6-\xa9]")
"""U+0080 to U+009F, U+061C, U+200E, U+200F, U+202A to U+202E and U+2066 to U+2069 in UTF-8."""
_HIDDEN_BODY = b'{"body":"%b"}' % REDACTED.encode()
"""In the place of a body with secrets that can't be told from the rest."""
_JOIN_BYTES = 1 << 20
_PLACEHOLDERS = (
    ("{prefix}", "profile_export", "%s"), ("{prefix_aiperf}", "profile_export_aiperf", "%s"), ("{prefix_}", "", "%s_"),
    ("{_export}", "_export", ""),
)  # fmt: skip
"""Placeholders with their default values, and with those that a prefix gives them."""


def file_name(pattern: str, prefix: str | None) -> str:
    """The name of a file that an exporter declares as *pattern*.

    ``--profile-export-prefix run1`` replaces the placeholders; without it (*prefix* None) they have default values:

    ================== ============================ ==========
    placeholder        without prefix               with run1
    ================== ============================ ==========
    ``{prefix}``        ``profile_export``           ``run1``
    ``{prefix_aiperf}`` ``profile_export_aiperf``    ``run1``
    ``{prefix_}``       nothing                      ``run1_``
    ``{_export}``       ``_export``                  nothing
    ================== ============================ ==========

    A pattern without a placeholder is the file's name in every run.
    """
    for placeholder, default, given in _PLACEHOLDERS:
        pattern = pattern.replace(placeholder, default if prefix is None else given.replace("%s", prefix))
    return pattern


class Target(Struct, frozen=True):
    """Destination and extent of an export.

    prefix: base name from ``--profile-export-prefix``, suffixes already stripped; None for the default names.
    level: one of LEVELS.  width: columns of the console copy.  config: the run's configuration by section.
    started_wall_ns: wall clock at the run's time zero; column + started_wall_ns is an exported time stamp.
    phases, kinds: by index, the phase's name and ``warmup`` or ``profiling``.  reducers: number of reducers; shard i belongs
    to reducer i modulo that.  journal: directory of segments and columns, None where the run has none.
    files: names with placeholders, by kind, that the run's exporters declare in :attr:`Exporter.files`.
    percentiles, columns: statistics that the user chose, see :meth:`statistics`.
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
    files: dict[str, str] = {}
    percentiles: tuple[float, ...] = ()
    columns: tuple[str, ...] = ()

    def statistics(self, usual: Sequence[str]) -> tuple[str, ...]:
        """The statistics that a table shows: ``--columns``, then ``--percentiles``; without columns the *usual* ones, with the
        percentiles in place of theirs.

        Each is a name in :attr:`aiperf.Result.stats`; a metric may lack it.
        """
        asked = [percentile_name(percent) for percent in self.percentiles]
        if self.columns or not asked:
            return tuple(dict.fromkeys((*(self.columns or usual), *asked)))
        place = next((i for i, name in enumerate(usual) if percentile(name) is not None), len(usual))
        before, after = ([name for name in part if percentile(name) is None] for part in (usual[:place], usual[place:]))
        return (*before, *asked, *after)

    def file(self, kind: str) -> Path:
        """The path of the file of this kind: as an exporter of the run declares it, else ``{prefix_}KIND``."""
        return self.directory / file_name(self.files.get(kind, f"{{prefix_}}{kind}"), self.prefix)

    def shown_body(self, body: bytes) -> bytes:
        """The body of a request without the secret fields of ``--extra-inputs``; as it is where there are none.

        A body in which they aren't found by their names, because it is no JSON or has them elsewhere, is
        ``{"body": "<redacted>"}``.
        """
        extra = self.config.get("endpoint", {}).get("extra")
        if not extra or REDACTED not in str(extra):
            return body
        try:
            value = msgspec.json.decode(body)
        except msgspec.DecodeError:
            return _HIDDEN_BODY
        return msgspec.json.encode(_redacted_like(extra, value)) if _has_redacted(extra, value) else _HIDDEN_BODY


def visible(text: bytes) -> bytes:
    """JSON with the controls escaped that a terminal obeys or that turn text around: C1, and those of direction.

    JSON need not escape them (RFC 8259), and msgspec doesn't.
    """
    return text if text.isascii() else _CONTROLS.sub(_escaped, text)


def _escaped(control: re.Match[bytes]) -> bytes:
    return b"\\u%04x" % ord(control[0].decode())


def _redacted_like(shown: Any, value: Any) -> Any:
    """*value* with what *shown* has redacted."""
    if isinstance(shown, dict) and isinstance(value, dict):
        return {name: _redacted_like(shown.get(name), each) for name, each in value.items()}
    if isinstance(shown, list) and isinstance(value, list):
        return [*map(_redacted_like, shown, value), *value[len(shown) :]]
    return REDACTED if shown == REDACTED else value


def _has_redacted(shown: Any, value: Any) -> bool:
    """Whether *value* has something in each place that *shown* has redacted."""
    if isinstance(shown, dict):
        secret = {name: each for name, each in shown.items() if REDACTED in str(each)}
        return isinstance(value, dict) and all(name in value and _has_redacted(secret[name], value[name]) for name in secret)
    if isinstance(shown, list):
        return isinstance(value, list) and len(value) >= len(shown) and all(map(_has_redacted, shown, value))
    return True


class Artifact(Struct, frozen=True):
    """A file that an exporter wrote, and its label on the console."""

    label: str
    path: Path


@contextlib.contextmanager
def atomic(path: Path) -> Iterator[Path]:
    """A draft file; it replaces *path* when the block succeeds and is removed when the block raises.

    Drafts of *path* that killed processes left are removed, too.
    An OSError that names no file (a full disk) gets the name of *path*.

    Raises:
        OSError: *path* is a device or a pipe, which a file would replace.
    """
    if path.exists() and not (path.is_file() or path.is_dir()):
        raise OSError(errno.EINVAL, "it is no file, but a device or a pipe", str(path))
    draft = path.with_name(f".{path.name}.{os.getpid()}.draft")
    path.parent.mkdir(parents=True, exist_ok=True)
    for left in path.parent.glob(f".{escape(path.name)}.*.draft"):
        process = left.name.split(".")[-2]
        if process.isdigit() and not _runs(int(process)):
            left.unlink(missing_ok=True)
    try:
        yield draft
        draft.replace(path)
    except OSError as error:
        if error.errno is not None and error.filename is None:
            error.filename = str(path)
        raise
    finally:
        draft.unlink(missing_ok=True)


def _runs(process: int) -> bool:
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:  # another user's
        pass
    return True


class Exporter(Generic[OptionsT]):
    """Base of all exporters.  options: the exporter's own (None where it declares none)."""

    level: ClassVar[str] = "summary"
    """The lowest ``--export-level`` at which the exporter runs."""
    files: ClassVar[Mapping[str, str]] = {}
    """The files that it writes: a kind for :meth:`Target.file`, and a name with placeholders, see :func:`file_name`.  The
    manifest has the same under ``capabilities: {files: …}``, so the kernel knows them without an import."""
    before_load: ClassVar[bool] = False
    """Whether the files are written before load, when the run may still be refused.  The manifest's capability is the same."""

    sends: ClassVar[bool] = False
    """Of a SummaryExporter or StudyExporter, whether it sends the files elsewhere: it runs when all others are there, those of
    hooks, too.  A report leaves it out, and so does a run of a study, whose files a StudyExporter sends."""

    def __init__(self, target: Target, options: OptionsT = None) -> None:  # type: ignore[assignment]  # None where it declares none
        self.target = replace(target, files={**target.files, **self.files})
        self.options = options

    def wanted(self) -> bool:
        """Whether the run requested this exporter; False writes no file and lists none."""
        return True

    def planned(self) -> Collection[str]:
        """The kinds of :attr:`files` that the run will have, as far as that is known before it; a dry run names them."""
        return self.files


class SummaryExporter(Exporter[OptionsT]):
    """Writes files from the summary; runs once in the parent, at the end."""

    early: ClassVar[bool] = False
    """Whether it reads the summary alone: it runs before the files of batch exporters are there, which take a while."""

    def export(self, summary: Summary) -> Sequence[Artifact]:
        raise NotImplementedError(f"{type(self).__name__} must define export(summary)")


class StudyExporter(Exporter[OptionsT]):
    """Writes files from all runs of a study (:mod:`aiperf.sdk.study`), in the parent.  A single run has none.

    *target* is that of the study: its directory, and the configuration that its runs share.  The manifest says
    ``capabilities: {studies: true}``: a run by itself doesn't make such an exporter.
    """

    def run_ended(self, study: Study) -> None:
        """The last of *study*'s runs has just ended, and its own files are or will be written; between loads, and briefly.

        ``aiperf report`` calls it for each run again, unless the exporter ``sends``.
        """

    def export_study(self, study: Study) -> Sequence[Artifact]:
        """Write what the runs have in common, behind the last run, and again in ``aiperf report`` (not where it ``sends``).

        Deterministic: equal runs give equal bytes.
        """
        raise NotImplementedError(f"{type(self).__name__} must define export_study(study)")

    def line(self, study: Study, run: StudyRun) -> Sequence[str]:
        """What the console's line on a *run* that has succeeded says of its numbers, such as ``27.52 requests/s``; () is
        nothing.  Called once behind each run, before :meth:`run_ended`."""
        return ()

    def table(self, study: Study, width: int) -> str:
        """The table of the runs for the console, its lines at most *width* columns long; "" is none.

        Called behind :meth:`export_study`; not with ``--no-sweep-table``.
        """
        return ""


class _RowExporter(Exporter[OptionsT]):
    """Makes one file from many pieces."""

    label: ClassVar[str] = ""
    kind: ClassVar[str] = ""
    """The artifact's kind, see :meth:`Target.file`."""

    def header(self) -> bytes:
        return b""

    def planned(self) -> Collection[str]:
        return (self.kind,)


class BatchExporter(_RowExporter[OptionsT]):
    """Turns batches into a file, batch by batch in the reducer.  It sees all requests, whatever their outcome.

    The kernel writes ``header()`` once, then the rows of each batch, and joins the parts of several reducers.
    """

    level = "records"
    answers: ClassVar[bool] = False
    """Whether its batches have the texts of the answers (:data:`aiperf.sdk.columns.ANSWER_TEXTS`).  Each answer is read on its
    own then, and stored with the columns."""

    def rows(self, batch: RecordBatch) -> bytes:
        """The batch's lines.  Deterministic."""
        raise NotImplementedError(f"{type(self).__name__} must define rows(batch)")

    def left_out(self) -> Sequence[str]:
        """A sentence for each thing that the rows so far lack; asked behind each batch, and reported once."""
        return ()

    def form(self, parts: Sequence[Path]) -> str:
        """The kind of the file that :meth:`join` makes of these parts: :attr:`kind`, or another one of :attr:`files`.

        The kernel removes the file of each other kind.
        """
        return self.kind

    def prepare_join(self) -> None:
        """Import what :meth:`join` takes.  Called in the parent beside the last work of the reducers, perhaps more than once;
        not in a report."""

    def join(self, parts: Sequence[Path]) -> Iterator[bytes]:
        """The whole file from the parts of the reducers in their order; called once in the parent, at the end."""
        yield self.header()
        for part in parts:
            with part.open("rb") as file:
                while block := file.read(_JOIN_BYTES):
                    yield block


class DatasetExporter(_RowExporter[OptionsT]):
    """Writes a file from the data set, as it is made: it sees each conversation with its encoded bodies.

    That is before the load.  Where the load begins with the first entries, it goes on beside it, until no more are needed.
    """

    before_load = True
    of_data_alone: ClassVar[bool] = False
    """Whether the file depends on nothing but the data set, the exporter's options and the secret fields of bodies.  A run with
    the data set of the run before it then has the same file."""

    def entry(self, conversation: Conversation, bodies: Sequence[bytes], *, first: bool) -> bytes:
        """The conversation's part of the file; *bodies* has one encoded body per turn."""
        raise NotImplementedError(f"{type(self).__name__} must define entry(conversation, bodies, first=…)")

    def entries(self, entries: Sequence[tuple[Conversation, Sequence[bytes]]], *, first: bool) -> bytes:
        """The parts of several conversations, at least one; *first*: they begin the file.  One by one, unless defined."""
        parts = (self.entry(*entry, first=first and not number) for number, entry in enumerate(entries))
        return b"".join(parts)

    def footer(self) -> bytes:
        return b""


__all__ = [
    "LEVELS", "Artifact", "BatchExporter", "DatasetExporter", "Exporter", "StudyExporter", "SummaryExporter", "Target",
    "atomic", "visible",
]  # fmt: skip
