"""Every check of a results directory: of each file, then between files."""

from __future__ import annotations

import contextlib
import csv
import gzip
import json
import tempfile
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO

from aiperf import AiperfError
from aiperf.parts.loading import load
from aiperf.sdk.errors import BadJournal
from aiperf.sdk.registry import InstalledPlugins
from aiperf_results import FinishedRun, metrics_of, open_run
from aiperf_rows.row_files import opened
from msgspec import Struct

from aiperf_command_validate import agreement, grades, inventory, journal, parquet, recomputed
from aiperf_command_validate import slices as time_slices
from aiperf_command_validate.choice import Choice
from aiperf_command_validate.faults import Fault, Faults
from aiperf_command_validate.inventory import RepeatedKeyError, unique
from aiperf_command_validate.ledger import Ledger
from aiperf_command_validate.records import Records, compare_raw
from aiperf_command_validate.schemas import Check
from aiperf_command_validate.slices import slices_of

_ALWAYS = ("aiperf.json", "aiperf.csv")
_BY_LEVEL = {"summary": _ALWAYS, "records": (*_ALWAYS, "jsonl"), "raw": (*_ALWAYS, "jsonl", "raw.jsonl")}
_LINES = ("jsonl", "arrivals.jsonl", "raw.jsonl", grades.KIND)


class Findings(Struct, frozen=True):
    """*files*: the files read, with the number of lines (None: no lines).  *notes*: remarks that are no faults."""

    directory: str
    made_by: str
    valid: bool
    files: dict[str, int | None]
    faults: list[Fault]
    notes: list[str]


def check(path: Path, schemas: dict[str, Check], registry: InstalledPlugins) -> Findings:
    """Every fault of a directory.  *registry*: the installed plugins, which report the run's journal again.

    Raises:
        AiperfError: It holds no results.
        OSError: It can't be read.
    """
    run = open_run(path)
    if run.starting:
        raise AiperfError(
            f"{path} is in the hands of a run that has not begun, or was killed before it did: results of an earlier run"
            " lie aside",
            f"wait for that run; or aiperf report {path} puts them back",
        )
    checks = _Checks(run, schemas if run.ours else {}, registry)
    checks.all()
    faults = checks.faults.all()
    made_by = "this program" if run.ours else "the reference tool, or another"
    return Findings(str(path), made_by, not faults, checks.files, faults, checks.notes)


_COMPARED = ("aiperf.json", "inputs.json", "timeslices.json")


class _Checks:
    def __init__(self, run: FinishedRun, schemas: dict[str, Check], registry: InstalledPlugins) -> None:
        self.run, self.schemas, self.registry = run, schemas, registry
        self.faults = Faults()
        self.files: dict[str, int | None] = {}
        self.notes: list[str] = []

    def all(self) -> None:
        self.presence()
        summary, inputs, slices = (self.document(kind) for kind in _COMPARED)
        ends = [one["end_ns"] for one in slices_of(slices)]
        table = self.table("aiperf.csv")
        records = self.records(ends, Choice.of(summary).computed)
        ledger = self.ledger(records)
        if summary is not None:
            with self.comparing("aiperf.json"):
                self.summary(summary, table, records, ledger)
        if slices is not None and self.run.ours:
            with self.comparing("timeslices.json"):
                self.slices(slices_of(slices), summary, records, ledger)
        if records is not None:
            if inputs is not None:
                agreement.inputs(inputs, records, self.name("inputs.json"), self.faults)
            if ledger is not None:
                ledger.all_records(records)
            self.parquet(records)
        with self.comparing(grades.KIND):
            self.grades(summary)
        for kind in self.schemas:  # documents that are compared with their schema alone
            if kind.endswith(".json") and kind not in _COMPARED and self.run.has(kind):
                self.document(kind)
            elif kind.endswith(".jsonl") and kind not in _LINES and self.run.has(kind):
                for _ in self.lines(kind):
                    pass
        if self.run.ours:
            self.journal(summary, inputs)

    @contextlib.contextmanager
    def comparing(self, kind: str) -> Iterator[None]:
        """A file whose values are of other types than they should be can't be compared further: a fault."""
        try:
            yield
        except (TypeError, AttributeError, LookupError, ArithmeticError) as error:
            self.faults.add(self.name(kind), f"has values of the wrong type, and was not compared further: {error}")

    def summary(
        self, summary: dict[str, Any], table: list[list[str]] | None, records: Records | None, ledger: Ledger | None
    ) -> None:
        """The summary alone, and against the other files."""
        name, faults = self.name("aiperf.json"), self.faults
        agreement.summary_alone(summary, name, faults, ours=self.run.ours)
        if not summary.get("is_complete", True):
            self.notes.append(f"the run is not complete: {summary.get('incomplete_reason', 'it was cut short')}")
        if table is not None:
            agreement.table(summary, table, self.name("aiperf.csv"), faults)
            agreement.ends(summary, table, self.name("aiperf.csv"), faults)
            agreement.intervals(summary, table, self.name("aiperf.csv"), faults)
        if records is not None:
            agreement.records(summary, records, self.name("jsonl"), faults)
            if self.run.ours and _phases(summary, "profiling") == 1:
                recomputed.entries(metrics_of(summary), records.metrics, sum(records.errors.values()), name, faults)
                recomputed.from_requests(summary, records, ledger, name, faults)
            if self.run.ours and _phases(summary, "warmup") == 1:
                warmup = summary.get("warmup_metrics", {})
                recomputed.entries(warmup, records.warmup, records.warmup_failed, name, faults, "warmup_metrics.")
        if ledger is not None:
            ledger.against(summary, name)

    def slices(
        self, slices: list[dict[str, Any]], summary: dict[str, Any] | None, records: Records | None, ledger: Ledger | None
    ) -> None:
        """The time slices alone, and against the other files."""
        name, faults = self.name("timeslices.json"), self.faults
        time_slices.alone(slices, name, faults)
        table = self.table("timeslices.csv")
        if table is not None:
            time_slices.table(slices, table, Choice.of(summary).shown, self.name("timeslices.csv"), faults)
        if not slices or summary is None or _phases(summary, "profiling") != 1:
            return
        time_slices.against_summary(summary, slices, name, faults)
        if records is not None:
            time_slices.against_requests(slices, records, ledger.starts_of(summary) if ledger else (), name, faults)

    def journal(self, summary: dict[str, Any] | None, inputs: dict[str, Any] | None) -> None:
        """The files against a report of the journal."""
        if not self.run.has_journal:
            self.notes.append("there is no journal: the files were compared with each other alone")
            return
        try:
            with journal.reported(self.run, summary, self.registry) as expected:
                journal.compare(self.run.directory, expected, self.faults)
            if inputs is not None:
                journal.inputs(self.run, inputs, self.name("inputs.json"), self.faults)
        except BadJournal as error:
            self.faults.add("journal", f"gives no report: {error}")
        except AiperfError as error:
            self.notes.append(f"the files were not compared with the journal: {error}")
        except OSError as error:
            what = f"{error.filename or tempfile.gettempdir()}: {error.strerror or error}"
            self.notes.append(f"the files were not compared with the journal: {what}")

    def name(self, kind: str) -> str:
        return self.run.file(kind).name

    def presence(self) -> None:
        run = self.run
        inventory.level_files(run, _BY_LEVEL.get(run.level or "", ()) if self._has_rows() else (), self.faults)
        inventory.marker(run, self.faults)
        if run.ours and run.has_journal:
            inventory.journal_files(run, self.faults)

    def _has_rows(self) -> bool:
        """Whether the run's reducer makes rows of per-request files."""
        try:
            reducer = self.run.plan.plugins.reducer if self.run.has_journal else None
            return reducer is None or bool(load(reducer).rows)
        except AiperfError:  # it is not installed here
            return True

    def document(self, kind: str) -> dict[str, Any] | None:
        """A JSON file's object; None where there is no file, or, as a fault, no object."""
        if not self.run.has(kind):
            return None
        name = self.name(kind)
        self.files[name] = None
        try:
            content = json.loads(self.run.target.file(kind).read_bytes(), object_pairs_hook=unique)
        except RepeatedKeyError as error:
            self.faults.add(name, str(error))
            return None
        except ValueError as error:
            self.faults.add(name, f"is not JSON: {error}")
            return None
        wrong = self.schemas[kind](content) if kind in self.schemas else None
        if wrong is not None:
            self.faults.add(name, wrong)
        if not isinstance(content, dict):
            self.faults.add(name, "is not a JSON object")
            return None
        return content

    def table(self, kind: str) -> list[list[str]] | None:
        """The rows of a CSV; None where there is no file, or, as a fault, no CSV."""
        if not self.run.has(kind):
            return None
        name = self.name(kind)
        self.files[name] = None
        with self.run.target.file(kind).open(newline="", encoding="utf-8", errors="replace") as file:
            try:
                return list(csv.reader(file, strict=True))
            except csv.Error as error:
                self.faults.add(name, f"is no CSV: {error}")
                return None

    def lines(self, kind: str) -> Iterator[tuple[int, dict[str, Any]]]:
        """(number, object) of every line that is an object; the others are faults."""
        name, check = self.name(kind), self.schemas.get(kind)
        number = 0
        with opened(self.run.file(kind)) as file:
            for number, line in enumerate(self.unpacked(file, name), 1):
                if not line.endswith(b"\n"):
                    self.faults.add(name, "is cut in the middle of its last line", number)
                    break
                try:
                    content = json.loads(line, parse_constant=_no_constant, object_pairs_hook=unique)
                except RepeatedKeyError as error:
                    self.faults.add(name, str(error), number, kind="repeated keys")
                    continue
                except ValueError as error:
                    self.faults.add(name, f"is not JSON: {error}", number, kind="not JSON")
                    continue
                if not isinstance(content, dict):
                    self.faults.add(name, "is not a JSON object", number, kind="no object")
                    continue
                wrong = check(content) if check is not None else None
                if wrong is not None:
                    self.faults.add(name, wrong, number, kind="against the schema")
                yield number, content
        self.files[name] = number

    def unpacked(self, file: BinaryIO, name: str) -> Iterator[bytes]:
        """The lines of a file; what can't be unpacked is a fault."""
        try:
            yield from file
        except (gzip.BadGzipFile, EOFError, zlib.error) as error:
            self.faults.add(name, f"can't be unpacked to its end: {error}")

    def records(self, slice_ends: Sequence[int], percentiles: Sequence[float]) -> Records | None:
        """The per-request file; beside it the raw one, line by line."""
        if not self.run.has("jsonl"):
            return None
        requests = Records(self.name("jsonl"), self.faults, ours=self.run.ours, slice_ends=slice_ends, percentiles=percentiles)
        if self.run.has("raw.jsonl"):
            raw = self.lines("raw.jsonl")
            compare_raw(requests.read(self.lines("jsonl")), raw, self.name("raw.jsonl"), self.faults)
        else:
            for _ in requests.read(self.lines("jsonl")):
                pass
        return requests

    def parquet(self, records: Records) -> None:
        if not self.run.has("parquet"):
            return
        name = self.name("parquet")
        try:
            parquet.compare(self.run.target.file("parquet"), records, name, self.faults)
            self.files[name] = None
        except ImportError:
            self.notes.append(f"{name} was not looked at: pip install pyarrow")

    def grades(self, summary: dict[str, Any] | None) -> None:
        """The lines of graded answers, counted again."""
        if not self.run.has(grades.KIND):
            return
        counted = grades.Grades()
        counted.read(self.lines(grades.KIND), self.name(grades.KIND), self.faults)
        table = self.table(grades.TABLE)
        if table is not None:
            counted.against_table(table, self.name(grades.TABLE), self.faults)
        if summary is not None:
            counted.against_summary(metrics_of(summary), self.name("aiperf.json"), self.faults)

    def ledger(self, records: Records | None) -> Ledger | None:
        if not self.run.has("arrivals.jsonl"):
            return None
        arrivals = Ledger(self.name("arrivals.jsonl"), self.faults)
        arrivals.read(self.lines("arrivals.jsonl"), records)
        return arrivals


def _phases(summary: dict[str, Any], kind: str) -> int:
    return sum(phase.get("kind") == kind for phase in summary.get("phases", ()) if isinstance(phase, dict))


def _no_constant(word: str) -> float:
    raise ValueError(f"{word} is no JSON number")
