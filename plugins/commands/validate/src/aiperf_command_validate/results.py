"""Every check of a results directory: of each file, then between files."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from aiperf import AiperfError
from aiperf.results import FinishedRun, open_run
from msgspec import Struct

from aiperf_command_validate import agreement, parquet
from aiperf_command_validate.faults import Fault, Faults
from aiperf_command_validate.records import Ledger, Records, compare_raw
from aiperf_command_validate.schemas import Check

_ALWAYS = ("aiperf.json", "aiperf.csv")
_BY_LEVEL = {"summary": _ALWAYS, "records": (*_ALWAYS, "jsonl"), "raw": (*_ALWAYS, "jsonl", "raw.jsonl")}
_LINES = ("jsonl", "arrivals.jsonl", "raw.jsonl")


class Findings(Struct, frozen=True):
    """*files*: the files read, with the number of lines (None: no lines).  *notes*: remarks that are no faults."""

    directory: str
    made_by: str
    valid: bool
    files: dict[str, int | None]
    faults: list[Fault]
    notes: list[str]


def check(path: Path, schemas: dict[str, Check]) -> Findings:
    """Every fault of a directory.

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
    checks = _Checks(run, schemas if run.ours else {})
    checks.all()
    faults = checks.faults.all()
    made_by = "this program" if run.ours else "the reference tool, or another"
    return Findings(str(path), made_by, not faults, checks.files, faults, checks.notes)


class _Checks:
    def __init__(self, run: FinishedRun, schemas: dict[str, Check]) -> None:
        self.run, self.schemas = run, schemas
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
            agreement.summary_alone(summary, self.name("aiperf.json"), self.faults, ours=self.run.ours)
            if not summary.get("is_complete", True):
                self.notes.append(f"the run is not complete: {summary.get('incomplete_reason', 'it was cut short')}")
            if table is not None:
                agreement.table(summary, table, self.name("aiperf.csv"), self.faults)
        if records is not None:
            name = self.name("jsonl")
            if summary is not None:
                agreement.records(summary, records, name, self.faults)
            if inputs is not None:
                agreement.inputs(inputs, records, name, self.faults)
            if ledger is not None:
                agreement.ledger(summary, ledger, records, self.name("arrivals.jsonl"), self.faults)
            self.parquet(records)

    def name(self, kind: str) -> str:
        return self.run.target.file(kind).name

    def presence(self) -> None:
        run, level, marker = self.run, self.run.level, self.run.marker
        for kind in _BY_LEVEL.get(level or "", ()):
            if not run.has(kind):
                self.faults.add(self.name(kind), f"is missing; export level {level} has it")
        if marker is None:
            if run.ours:
                self.faults.add(".aiperf_results_ready.json", "is missing: the export never came to its end")
            return
        if marker.get("partial"):
            self.faults.add(".aiperf_results_ready.json", "says that an exporter failed: results are not whole")
        for name in marker.get("files", ()):
            if not (run.directory / name).exists():
                self.faults.add(name, "is missing; the run wrote it")

    def document(self, kind: str) -> dict[str, Any] | None:
        """A JSON file's object; None where there is no file, or, as a fault, no object."""
        if not self.run.has(kind):
            return None
        name = self.name(kind)
        self.files[name] = None
        try:
            content = json.loads(self.run.target.file(kind).read_bytes())
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

    def table(self) -> list[list[str]] | None:
        if not self.run.has("aiperf.csv"):
            return None
        name = self.name("aiperf.csv")
        self.files[name] = None
        with self.run.target.file("aiperf.csv").open(newline="", encoding="utf-8", errors="replace") as file:
            try:
                return list(csv.reader(file, strict=True))
            except csv.Error as error:
                self.faults.add(name, f"is no CSV: {error}")
                return None

    def lines(self, kind: str) -> Iterator[tuple[int, dict[str, Any]]]:
        """(number, object) of every line that is an object; the others are faults."""
        name, check = self.name(kind), self.schemas.get(kind)
        number = 0
        with self.run.target.file(kind).open("rb") as file:
            for number, line in enumerate(file, 1):
                if not line.endswith(b"\n"):
                    self.faults.add(name, "is cut in the middle of its last line", number)
                    break
                try:
                    content = json.loads(line, parse_constant=_no_constant)
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

    def records(self) -> Records | None:
        """The per-request file; beside it the raw one, line by line."""
        if not self.run.has("jsonl"):
            return None
        requests = Records(self.name("jsonl"), self.faults)
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

    def ledger(self) -> Ledger | None:
        if not self.run.has("arrivals.jsonl"):
            return None
        arrivals = Ledger(self.name("arrivals.jsonl"), self.faults)
        arrivals.read(self.lines("arrivals.jsonl"))
        return arrivals


def _no_constant(word: str) -> float:
    raise ValueError(f"{word} is no JSON number")


