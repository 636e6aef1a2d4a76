"""What numbers and texts mean, and a word to whoever reads them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from aiperf import (
    Axis,
    BadTokenizer,
    Command,
    ConfigError,
    Definition,
    Evidence,
    Figure,
    Finding,
    FindingLevel,
    Plot,
    PlotRun,
    PlotSeries,
    Readings,
    RecordBatch,
    Tokenizer,
    UsageError,
    Verdict,
)  # fmt: skip
from aiperf.sdk.configuration import Configuration, Option, OptionValue
from aiperf.sdk.series import Sample
from aiperf.sdk.study import Setting
from aiperf.sdk.table import SummaryFacts, SummaryTable, TableColumn, Tables
from aiperf.sdk.verdict import UnfinishedRun


class Letters:
    name, size = "letters", 0x110000

    def __init__(self, options: object = None) -> None:
        pass

    def recognises(self, name: str) -> bool:
        return name == self.name

    def open(self, name: str) -> Tokenizer:
        if not self.recognises(name):
            raise BadTokenizer(f"letters are called letters, not {name!r}")
        return self

    def encode(self, text: str) -> list[int]:
        return list(map(ord, text))

    def decode(self, ids: Sequence[int]) -> str:
        return "".join(map(chr, ids))

    def count(self, text: str) -> int:
        return len(text)


class Patient(Definition):
    title, source, differs = "patient", "acme-sundries 0.9.1", "Nothing counts before the first answer."

    def read(self, batch: RecordBatch) -> Readings:
        good = batch.select(batch.valid)
        gaps = good["second_token_ns"] - good["first_token_ns"]
        first, last = good["first_token_ns"], good["ended_ns"]
        span = (float(np.nanmin(first)), float(np.nanmax(last))) if np.isfinite(first).any() else (np.nan, np.nan)
        return Readings(first - good["ack_ns"], gaps, gaps, len(good), float(np.nansum(good["output_tokens"])), *span)


class Odometer(Plot):
    title = "Requests so far"
    columns = ("request_end_ns",)

    def draw(self, runs: Sequence[PlotRun]) -> Figure | None:
        ends = {run.label: np.sort(run.column("request_end_ns")) / 1e9 for run in runs}
        series = [
            PlotSeries(name, at - at[0], np.arange(1.0, len(at) + 1), "steps", points="request")
            for name, at in ends.items() if len(at)
        ]  # fmt: skip
        slices = {run.label: len(run.slices()) for run in runs}
        notes = tuple(f"{name} has {count} slices" for name, count in slices.items() if count)
        return Figure(self.title, Axis("time (s)"), Axis("requests"), tuple(series), notes=notes) if series else None


class Greet(Command):
    arguments = "NAME"

    def run(self, options: Any, words: Sequence[str]) -> int:
        print(f"Hello, {' '.join(words)}!")
        return 0


class GreetTwice(Command):
    arguments = "NAME"

    def run(self, options: Any, words: Sequence[str]) -> int:
        print(f"Hello again, {' '.join(words)}!")
        return 0


class Notes(Configuration):
    """A note a line: ``--osl 6``.  A flag of any package is known."""

    def __init__(self, path: Path) -> None:
        self.name = path.name
        try:
            self.notes = [line.split() for line in path.read_text().splitlines()]
        except (OSError, ValueError) as error:
            raise ConfigError(f"{path} can't be read: {error}") from error

    def values(
        self, options: Sequence[Option], parameters: Mapping[str, Setting] | None = None
    ) -> Iterator[OptionValue | UsageError]:
        known = {flag: option for option in options for flag in option.spec.flags}
        for line, note in enumerate(self.notes, 1):
            flag, *words = note or [""]
            if flag in known:
                flagged = known[flag].spec.arity == "none"
                yield OptionValue(known[flag], f"{flag} ({self.name}:{line})", words, True if flagged else None)
            elif flag:
                yield UsageError(f"{flag} ({self.name}:{line}): no flag is called so")


class Harbour(Verdict[None]):
    """Reads the samples of the tides."""

    unfinished = True

    def judge_unfinished(self, run: UnfinishedRun) -> Finding | None:
        if not any(True for _ in run.samples("tides")):
            return None
        return Finding("tide", FindingLevel.NOTE, f"the tide is watched since {run.snapshot.elapsed_s:.0f} s")

    def judge(self, evidence: Evidence) -> Iterator[Finding]:
        for source in evidence.summary.telemetry:
            for series in source.series:
                if series.name == "water" and series.stats["max"] > 2:
                    metres = series.stats["max"]
                    sentence = f"the water stood at {metres:g} m: wear boots"
                    yield Finding("high_water", FindingLevel.ADVICE, sentence, 0.9, {"water_m": metres})


class Logbook(Tables[None]):
    """A line for each phase, and under which the ship set sail."""

    def tables(self, evidence: Evidence) -> Iterator[SummaryTable | SummaryFacts]:
        if not evidence.summary.valid:
            return
        tides = [line for line in evidence.samples("tides") if isinstance(line, Sample)]
        requests = sum(len(sent) for (sent,) in evidence.columns("sent_ns"))
        home_s = max((float(ended[-1]) / 1e9 for _, ended in evidence.ordered("ended_ns") if len(ended)), default=None)
        rows = []
        for window in evidence.windows:
            seen = sum(window.begin_ns <= line.moment.at_ns <= window.end_ns for line in tides)
            mine = window.phase == evidence.phase.index
            rows.append((window.phase, (window.end_ns - window.begin_ns) / 1e9, seen, requests if mine else None))
        columns = (TableColumn("phase"), TableColumn("length", "s"), TableColumn("soundings"), TableColumn("requests"))
        yield SummaryTable("logbook", "Logbook", columns, tuple(rows), notes=("written in ink",))
        yield SummaryFacts("sailing", {"soundings": len(tides), "ship": {"name": "Perseverance"}, "home_s": home_s})
