"""One run's directory, read: summary, requests, arrivals, slices, telemetry, configuration, stored columns."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aiperf.parts import journal
from aiperf.parts.journal import set_aside
from aiperf.parts.registry import Registry
from aiperf.parts.reporting import READY_FILE, target_for
from aiperf.sdk.errors import AiperfError, BadJournal
from aiperf.sdk.exporter import Target
from aiperf.sdk.plot import PlotRun, TelemetrySeries
from msgspec.structs import replace

from aiperf_results.chosen import ChosenColumns, of_lines
from aiperf_results.chosen import of_journal as of_columns
from aiperf_results.table import Table, arrivals, remedy, requests
from aiperf_results.telemetry import of_journal, of_reference
from aiperf_results.unfinished import is_aside, lack

if TYPE_CHECKING:
    from aiperf.sdk.columns import Floats, RecordBatch
    from aiperf.sdk.model import Conversation
    from aiperf.sdk.plan import Plan

_SUMMARY, _RECORDS = "aiperf.json", "jsonl"
_GIVE = "give the artifact directory of a run"
_GIVE_SEVERAL = "give the artifact directory of a run, or one that holds several"
FEW_BYTES = 8 << 20
"""Of a per-request file, which is read sooner than the run's metrics are loaded for the journal's columns."""
_NOT_METRICS = frozenset({"observation_window"})
"""Has the shape of a metric in the summary and is none."""
_MOST_TOLD = 3
"""Directories without a summary that are named where no other has one."""
_DEPTH = 3
"""Folders below the given one in which runs are looked for: ``profile_runs/trial_0001/concurrency_1`` of a study."""
_FILES = {
    "aiperf.json": "{prefix_aiperf}.json", "aiperf.csv": "{prefix_aiperf}.csv", "jsonl": "{prefix}.jsonl",
    "raw.jsonl": "{prefix}_raw.jsonl", "timeslices.csv": "{prefix_aiperf}_timeslices.csv",
    "timeslices.json": "{prefix_aiperf}_timeslices.json", "arrivals.jsonl": "{prefix}_arrivals.jsonl",
    "inputs.json": "inputs.json",
}  # fmt: skip
"""Files that results are read from, whatever is installed here."""


class FinishedRun(PlotRun):
    """The results in *directory*; files are read when they are asked for.

    label: what tells the run from others, for people.  ours: whether this program made the results, and not the reference.
    target: names the files (``run.target.file("jsonl")``).  starting: a run that took the directory has not begun, or was
    killed before it did; results of an earlier run lie aside.  *files*: names by kind, where there is no ``run.json``; None are
    the known ones.
    """

    def __init__(self, directory: Path, label: str = "", files: dict[str, str] | None = None) -> None:
        super().__init__(label or directory.name, {})
        self.directory = directory
        self._journal = directory / "journal"
        self.has_journal = (self._journal / "run.json").exists()
        self.target = self._target(files)
        self.starting = set_aside(directory)
        self._expected: dict[str, None] = {}
        self._read: list[tuple[frozenset[str], ChosenColumns]] = []

    def _target(self, files: dict[str, str] | None) -> Target:
        try:
            plan, clock = journal.load_run(self._journal)
        except BadJournal:  # the reference's, or of another version: the names of the files tell enough
            return _target_of(self.directory, _known_files() if files is None else files)
        return replace(target_for(plan, clock), directory=self.directory, journal=self._journal)

    @property
    def ours(self) -> bool:
        try:
            return self.has_journal or "plugins" in self.summary
        except AiperfError:  # no summary, or none that can be read
            return False

    def file(self, kind: str) -> Path:
        """The path of the file of this kind, see :meth:`aiperf.Target.file`; with ``.gz`` where only that is there."""
        path = self.target.file(kind)
        packed = path.with_name(f"{path.name}.gz")
        return packed if packed.is_file() and not path.is_file() else path

    def has(self, kind: str) -> bool:
        """Whether the directory has the file of this kind, see :meth:`file`."""
        return self.file(kind).is_file()

    @cached_property
    def plan(self) -> Plan:
        """What the run was to do.

        Raises:
            BadJournal: The directory has no journal of this version.
        """
        return journal.load_run(self._journal)[0]

    @cached_property
    def summary(self) -> dict[str, Any]:
        """``profile_export_aiperf.json``, whole.

        Raises:
            AiperfError: The file is not there, or is no summary.
        """
        path = self.target.file(_SUMMARY)
        try:
            document = json.loads(path.read_bytes())
        except (OSError, ValueError) as error:
            raise AiperfError(f"{path} can't be read: {error}", remedy(path)) from error
        if not isinstance(document, dict):
            raise AiperfError(f"{path} is no summary: it holds {type(document).__name__}, not an object")
        return document

    @property
    def metrics(self) -> dict[str, dict[str, Any]]:
        """The summary's metrics by tag: ``unit`` and statistics, in display units."""
        return metrics_of(self.summary)

    @property
    def configuration(self) -> dict[str, Any]:
        """The options of the run, by section of the configuration file; empty where the summary has none."""
        section = self.summary.get("input_config", {})
        return dict(section) if isinstance(section, dict) else {}

    @property
    def level(self) -> str | None:
        """The export level: ``summary``, ``records`` or ``raw``; None where the results do not say it."""
        if self.has_journal:
            return self.plan.output.export_level
        artifacts = self.configuration.get("artifacts", {}) if self.ours else {}
        if "records" not in artifacts:
            return None
        return "raw" if artifacts.get("raw") else "records" if artifacts["records"] else "summary"

    @property
    def marker(self) -> dict[str, Any] | None:
        """What the run wrote behind everything else; None where it did not come to that."""
        return _document(self.directory / READY_FILE)

    def expect(self, names: Iterable[str]) -> None:
        """See :meth:`aiperf.PlotRun.expect`."""
        self._expected |= dict.fromkeys(names)

    def column(self, name: str) -> Floats:
        """A number for each good request of the profiling phase; NaN where it has none.

        *name*: a metric's tag, or a field of the metadata in ns (``request_start_ns``; exact to 256 ns, as epoch times are
        in a float).  Empty without a file of requests.  All columns have the requests in the same order, that of their ends.

        Raises:
            AiperfError: The file can't be read; names the line.
        """
        return self._chosen([name]).numbers(name)

    def requests(self, names: Collection[str] | None = None, *, failed: bool = False, lists: bool = False) -> Table:
        """The requests of the profiling phase, metrics and times as columns, in the order of the file.

        *names*: the columns that are read, from the journal where it has them; None are all.  *failed* adds failed and
        cancelled requests, ``error_code``, and texts: ``error_type``, ``error_message``, with *names* None the identities in
        the metadata, too.  *lists* adds metrics with a list per request (``inter_chunk_latency``).

        Raises:
            AiperfError: The file can't be read; names the line.
        """
        if names is not None and not lists:
            chosen = self._chosen(names)
            return chosen.table if failed else chosen.only_good()
        return requests(self.target.file(_RECORDS), failed=failed, lists=lists) if self.has(_RECORDS) else Table()

    def _chosen(self, names: Iterable[str]) -> ChosenColumns:
        """The columns *names*, and those that are expected: read at once, and kept."""
        for read, chosen in self._read:
            if read.issuperset(names):
                return chosen
        wanted = list(self._expected | dict.fromkeys(names))
        chosen = self._columns_of(wanted)
        self._read = [(frozenset(wanted), chosen)]
        return chosen

    def _columns_of(self, names: Sequence[str]) -> ChosenColumns:
        import numpy as np

        path = self.target.file(_RECORDS)
        lines = path.is_file()
        if self.has_journal and not (lines and path.stat().st_size < FEW_BYTES):
            plan, clock = journal.load_run(self._journal)
            if (chosen := of_columns(self._journal, plan, clock, names)) is not None:
                return chosen
        return of_lines(path, names) if lines else ChosenColumns(Table(), np.empty(0, dtype=bool))

    def arrivals(self) -> Table:
        """Every planned arrival of every phase, sent or not; empty where the directory has no ledger.

        Raises:
            AiperfError: The file can't be read; names the line.
        """
        return arrivals(self.file("arrivals.jsonl")) if self.has("arrivals.jsonl") else Table()

    def slices(self) -> list[dict[str, Any]]:
        """Time slices: ``start_ns``, ``end_ns`` and metrics by tag; empty without ``--slice-duration``.

        Raises:
            AiperfError: The file can't be read.
        """
        path = self.target.file("timeslices.json")
        try:
            found = self._bounded(json.loads(path.read_bytes())) if path.is_file() else []
            if not all(isinstance(each[end], int) for each in found for end in ("start_ns", "end_ns")):
                raise ValueError("a slice has no whole start_ns and end_ns")
            return found
        except (OSError, ValueError, LookupError, TypeError) as error:
            raise AiperfError(f"{path} can't be read: {error}") from error

    def _bounded(self, document: Any) -> list[dict[str, Any]]:
        """The slices in a file; before version 0.12 of the reference they had a number in the place of their bounds."""
        found, output = list(document["timeslices"]), document.get("input_config", {}).get("output", {})
        if not any("timeslice_index" in each for each in found) or "slice_duration" not in output:
            return found
        starts = self.requests(["request_start_ns"], failed=True).numbers("request_start_ns")
        if not len(starts):
            return []
        begin, length = round(float(starts.min())), round(output["slice_duration"] * 1e9)
        return [
            {"start_ns": begin + number * length, "end_ns": begin + (number + 1) * length, **each}
            for each in found for number in [each["timeslice_index"]]
        ]  # fmt: skip

    def telemetry(self) -> list[TelemetrySeries]:
        """Series of samples that were taken beside the load; empty where there are none.

        Raises:
            AiperfError: A file can't be read; names the line.
        """
        if self.has_journal:
            return of_journal(self._journal)
        prefix, names = self.target.prefix, ("gpu_telemetry", "server_metrics")
        files = (f"{name}_export.jsonl" if prefix is None else f"{prefix}_{name}.jsonl" for name in names)
        return of_reference(*map(self.directory.joinpath, files))

    def tables(self) -> dict[str, list[dict[str, Any]]]:
        """The tables that plugins made of the run, by name: a dictionary of cells for each row; empty where there is none.

        Raises:
            AiperfError: The summary is not there, or is none.
        """
        named = self.summary.get("tables", {})
        found = {name: self.summary.get(name) for name in named} if isinstance(named, dict) else {}
        return {name: rows for name, rows in found.items() if isinstance(rows, list)}

    def batches(self) -> Iterator[RecordBatch]:
        """Every request of every phase as the run's metrics saw it, from the journal's stored columns.

        Raises:
            BadJournal: The directory has no journal of this version, or its columns are not written yet.
        """
        from aiperf_reducer_columns.reduce.batches import batches  # numpy: not for readers of the summary alone

        plan = self.plan
        if not journal.numbered(self._journal, "columns-*.*"):
            hint = f"make its results first: aiperf report {self.directory}"
            raise BadJournal(f"{self.directory} holds no columns yet", hint)
        return batches(self._journal, plan)

    def conversations(self) -> Iterator[tuple[Conversation, list[list[bytes]]]]:
        """The data set that the run stored: each conversation with the encoded body of each turn for each of its models.

        Raises:
            BadJournal: The directory has no journal of this version, or the journal has no data set.
        """
        from aiperf.parts.journal import Store

        store, models = Store(self._journal), range(len(self.plan.target.models))
        for entry in store.readable():
            turns = range(store.turns(entry))
            yield store.conversation(entry), [[bytes(store.body(entry, turn, model)) for model in models] for turn in turns]


def metrics_of(summary: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The metrics in a summary, by tag."""
    entries = {tag: entry for tag, entry in summary.items() if isinstance(entry, dict) and "unit" in entry}
    return {tag: entry for tag, entry in entries.items() if tag not in _NOT_METRICS}


def open_run(directory: Path | str) -> FinishedRun:
    """The run in *directory*, this program's or the reference's.

    Raises:
        AiperfError: The directory is not there or holds no results.
    """
    path = Path(directory)
    _check_directory(path, _GIVE)
    run = FinishedRun(path)
    if not (run.has_journal or run.has(_SUMMARY) or run.has(_RECORDS)):
        names = " nor ".join(run.target.file(kind).name for kind in (_SUMMARY, _RECORDS))
        raise AiperfError(f"{path} holds no results: neither {names}", _GIVE)
    return run


def open_runs(paths: Sequence[Path]) -> list[FinishedRun]:
    """The runs with a summary in these directories, or below them, each labelled with the shortest name that tells it apart.

    Directories of runs that are not finished are left out; :func:`unfinished` names them.

    Raises:
        AiperfError: A path holds no run, or can't be looked into; or no run is finished.
    """
    directories: dict[Path, Path] = {}
    files = _known_files()
    lacking: list[AiperfError] = []
    for path in paths:
        _check_directory(path, _GIVE_SEVERAL)
        try:
            below = {directory.resolve(): directory for directory in _with_summary(path, files)}
        except OSError as error:
            raise AiperfError(f"{error.filename or path} can't be read: {error.strerror}") from error
        if below:
            directories |= below
        elif (why := lack(_target_of(path, files))) is not None:
            lacking.append(AiperfError(f"{path} holds no summary: {why[0]}", why[1]))
        else:
            summary = _target_of(path, files).file(_SUMMARY).name
            hints = unfinished([path])[:_MOST_TOLD] or [_GIVE_SEVERAL]
            raise AiperfError(f"{path} holds no results: neither it nor a directory below has a {summary}", *hints)
    if lacking and not directories:
        raise lacking[0]
    labels = _told_apart(list(directories))
    return [FinishedRun(directory, label, files) for label, directory in zip(labels, directories.values(), strict=True)]


def unfinished(paths: Sequence[Path]) -> list[str]:
    """A sentence on each directory of a run that :func:`open_runs` leaves out of *paths*, as it has no summary."""
    files = _known_files()
    found = {}
    for path in paths:
        for directory, (why, hint) in _without_summary(path, files, _DEPTH):
            found[directory.resolve()] = f"{directory} is left out: {why}; {hint}"
    return list(found.values())


def _without_summary(path: Path, files: dict[str, str], depth: int) -> Iterator[tuple[Path, tuple[str, str]]]:
    target = _target_of(path, files)
    if target.file(_SUMMARY).is_file() or is_aside(path):
        return
    if (why := lack(target)) is not None:
        yield path, why
    elif depth:
        for below in sorted((entry for entry in path.iterdir() if entry.is_dir() and not entry.is_symlink()), key=_counting):
            yield from _without_summary(below, files, depth - 1)


def _check_directory(path: Path, remedy: str) -> None:
    if not path.is_dir():
        raise AiperfError(f"{path} is {'a file' if path.exists() else 'not there'}; results are a directory", remedy)


def _with_summary(path: Path, files: dict[str, str], depth: int = _DEPTH) -> Iterator[Path]:
    """The directory itself where it has a summary, else those below it that have one."""
    if _target_of(path, files).file(_SUMMARY).is_file():
        yield path
    elif depth:
        for below in sorted((entry for entry in path.iterdir() if entry.is_dir() and not entry.is_symlink()), key=_counting):
            yield from _with_summary(below, files, depth - 1)


def _counting(path: Path) -> list[str | int]:
    """Sort key: ``c4`` before ``c16``, texts and numbers in turn."""
    return [int(part) if part.isdecimal() else part for part in re.split(r"(\d+)", path.name)]


def _told_apart(paths: Sequence[Path]) -> list[str]:
    """The last part of each path, or as many parts as it takes for all to differ."""
    for count in range(1, max((len(path.parts) for path in paths), default=1) + 1):
        labels = ["/".join(path.parts[-count:]) for path in paths]
        if len(set(labels)) == len(paths):
            return labels
    return [str(path) for path in paths]


def _known_files() -> dict[str, str]:
    """Names of files by kind, with placeholders: the reference's, and those of the installed exporters."""
    files = dict(_FILES)
    for exporter in Registry.discover().all("exporters"):
        files |= exporter.capabilities.get("files", {})
    return files


def _target_of(directory: Path, files: dict[str, str]) -> Target:
    """Names the directory's files, with the prefix that its files have.

    Without files of default names, it is ``B`` where ``B.csv`` stands beside a summary ``B.json``.
    """
    target = Target(directory, files=files)
    if target.file(_SUMMARY).exists() or target.file(_RECORDS).exists():
        return target
    summaries = (path for path in sorted(directory.glob("*.json")) if path.with_suffix(".csv").exists())
    return replace(target, prefix=next((path.stem for path in summaries if "schema_version" in (_document(path) or ())), None))


def _document(path: Path) -> dict[str, Any] | None:
    """The JSON object in a file; None where it can't be read."""
    try:
        document = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return None
    return document if isinstance(document, dict) else None
