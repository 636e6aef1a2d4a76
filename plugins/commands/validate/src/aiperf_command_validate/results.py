"""Every check of a results directory, file by file, then of the files with each other."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from msgspec import Struct

from aiperf_command_validate import agreement, parquet
from aiperf_command_validate.directory import Directory
from aiperf_command_validate.faults import Fault, Faults
from aiperf_command_validate.records import Ledger, Records, compare_raw
from aiperf_command_validate.schemas import Check

_ALWAYS = ("aiperf.json", "aiperf.csv")
_BY_LEVEL = {"summary": _ALWAYS, "records": (*_ALWAYS, "jsonl"), "raw": (*_ALWAYS, "jsonl", "raw.jsonl")}
_LINES = ("jsonl", "arrivals.jsonl", "raw.jsonl")


class Findings(Struct, frozen=True):
    """*files*: what was read, with its lines where it has lines.  *notes*: what is so and no fault."""

    directory: str
    made_by: str
    valid: bool
    files: dict[str, int | None]
    faults: list[Fault]
    notes: list[str]


def check(path: Path, schemas: dict[str, Check]) -> Findings:
    """Everything that is wrong with a directory.

    Raises:
        AiperfError: It holds no results.
        OSError: It can't be read.
    """
    directory = Directory.of(path)
    checks = _Checks(directory, schemas if directory.ours else {})
    checks.all()
    faults = checks.faults.all()
    made_by = "this program" if directory.ours else "the reference tool, or another"
    return Findings(str(path), made_by, not faults, checks.files, faults, checks.notes)


class _Checks:
    def __init__(self, directory: Directory, schemas: dict[str, Check]) -> None:
        self.directory, self.schemas = directory, schemas
        self.faults = Faults()
        self.files: dict[str, int | None] = {}
        self.notes: list[str] = []

    def all(self) -> None:
        self.presence()
        summary = self.document("aiperf.json")
        inputs = self.document("inputs.json")
        self.document("timeslices.json")
        table = self.table()
        records, ledger = self.records(), self.ledger()
        if summary is not None:
            agreement.summary_alone(summary, self.directory.name("aiperf.json"), self.faults, ours=self.directory.ours)
            if not summary.get("is_complete", True):
                self.notes.append(f"the run is not complete: {summary.get('incomplete_reason', 'it was cut short')}")
            if table is not None:
                agreement.table(summary, table, self.directory.name("aiperf.csv"), self.faults)
        if records is not None:
            name = self.directory.name("jsonl")
            if summary is not None:
                agreement.records(summary, records, name, self.faults)
            if inputs is not None:
                agreement.inputs(inputs, records, name, self.faults)
            if ledger is not None:
                agreement.ledger(summary, ledger, records, self.directory.name("arrivals.jsonl"), self.faults)
            self.parquet(records)

    def presence(self) -> None:
        directory, level = self.directory, self.directory.level
        for kind in _BY_LEVEL.get(level or "", ()):
            if not directory.has(kind):
                self.faults.add(directory.name(kind), f"is missing; export level {level} has it")
        if directory.marker is None:
            if directory.ours:
                self.faults.add(".aiperf_results_ready.json", "is missing: the export never came to its end")
            return
        if directory.marker.get("partial"):
            self.faults.add(".aiperf_results_ready.json", "says that an exporter failed: results are not whole")
        for name in directory.marker.get("files", ()):
            if not (directory.path / name).exists():
                self.faults.add(name, "is missing; the run wrote it")

    def document(self, kind: str) -> dict[str, Any] | None:
        """A file of JSON; None where it isn't there or isn't an object, which is said."""
        if not self.directory.has(kind):
            return None
        name = self.directory.name(kind)
        self.files[name] = None
        try:
            found = json.loads(self.directory.target.file(kind).read_bytes())
        except ValueError as error:
            self.faults.add(name, f"is not JSON: {error}")
            return None
        wrong = self.schemas[kind](found) if kind in self.schemas else None
        if wrong is not None:
            self.faults.add(name, wrong)
        if not isinstance(found, dict):
            self.faults.add(name, "is not a JSON object")
            return None
        return found

    def table(self) -> list[list[str]] | None:
        if not self.directory.has("aiperf.csv"):
            return None
        name = self.directory.name("aiperf.csv")
        self.files[name] = None
        with self.directory.target.file("aiperf.csv").open(newline="", encoding="utf-8", errors="replace") as file:
            try:
                return list(csv.reader(file, strict=True))
            except csv.Error as error:
                self.faults.add(name, f"is no CSV: {error}")
                return None

    def lines(self, kind: str) -> Iterator[tuple[int, dict[str, Any]]]:
        """(number, object) of every line that is one; of the others it is said what they are."""
        name, check = self.directory.name(kind), self.schemas.get(kind)
        number = 0
        with self.directory.target.file(kind).open("rb") as file:
            for number, line in enumerate(file, 1):
                if not line.endswith(b"\n"):
                    self.faults.add(name, "is cut in the middle of its last line", number)
                    break
                try:
                    found = json.loads(line, parse_constant=_no_constant)
                except ValueError as error:
                    self.faults.add(name, f"is not JSON: {error}", number, kind="not JSON")
                    continue
                if not isinstance(found, dict):
                    self.faults.add(name, "is not a JSON object", number, kind="no object")
                    continue
                wrong = check(found) if check is not None else None
                if wrong is not None:
                    self.faults.add(name, wrong, number, kind="against the schema")
                yield number, found
        self.files[name] = number

    def records(self) -> Records | None:
        """The per-request file; beside it the raw one, line by line."""
        if not self.directory.has("jsonl"):
            return None
        found = Records(self.directory.name("jsonl"), self.faults)
        if self.directory.has("raw.jsonl"):
            raw = self.lines("raw.jsonl")
            compare_raw(found.read(self.lines("jsonl")), raw, self.directory.name("raw.jsonl"), self.faults)
        else:
            for _ in found.read(self.lines("jsonl")):
                pass
        return found

    def parquet(self, records: Records) -> None:
        if not self.directory.has("parquet"):
            return
        name = self.directory.name("parquet")
        try:
            parquet.compare(self.directory.target.file("parquet"), records, name, self.faults)
            self.files[name] = None
        except ImportError:
            self.notes.append(f"{name} was not looked at: pip install pyarrow")

    def ledger(self) -> Ledger | None:
        if not self.directory.has("arrivals.jsonl"):
            return None
        found = Ledger(self.directory.name("arrivals.jsonl"), self.faults)
        found.read(self.lines("arrivals.jsonl"))
        return found


def _no_constant(word: str) -> float:
    raise ValueError(f"{word} is no JSON number")


