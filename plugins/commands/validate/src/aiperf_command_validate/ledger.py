"""The arrivals ledger: faults of each row, the row of each record, and what follows for the summary."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from aiperf_command_validate.faults import Faults
from aiperf_command_validate.numbers import close
from aiperf_command_validate.records import Lines, Records, rising

_TIMES = ("due_ns", "started_ns", "connected_ns", "sent_ns", "sent_end_ns")
_ANSWER_TIMES = ("started_ns", "first_byte_ns", "last_byte_ns", "ended_ns")
_RECORDED = ("completed", "error", "cut", "cancelled", "overflowed")
_ENDS = (
    "completed", "errors", "cut", "cancelled", "aborted_in_flight", "unfinished", "damaged", "never_sent", "unknown",
    "overflowed", "truncated", "released",
)  # fmt: skip
_UNSENT = ("truncated", "released")
"""Outcomes of turns of trees that were not sent."""
_WORDS = {"error": "errors", "aborted": "aborted_in_flight"}


class Ledger:
    """The arrivals, read once."""

    def __init__(self, name: str, faults: Faults) -> None:
        self.name, self.faults = name, faults
        self.outcomes: Counter[tuple[str, str]] = Counter()
        """Rows by name of phase and outcome."""
        self.reconnects: Counter[tuple[str, str]] = Counter()
        """Rows that went to a new connection, by name of phase and cause."""
        self.record_lines: set[int] = set()
        self.starts: dict[str, array[int]] = {}
        """Starts by name of phase, in ns since 1970."""
        self.ends: dict[str, array[int]] = {}
        """Ends of the same arrivals; -1 where one is unknown."""
        self.recorded_ends: dict[str, array[int]] = {}
        """Ends of the same arrivals as their records have them: a failed request may be over later than its last byte."""
        self.late_ns: dict[str, array[float]] = {}
        """Delays of starts behind their due times, by name of phase."""
        self._turns: set[tuple[Any, ...]] = set()
        """Turns of trees."""

    def read(self, lines: Lines, records: Records | None) -> None:
        """Take every row in, compared with the record that it names."""
        for number, row in lines:
            outcome, phase = str(row.get("outcome")), str(row.get("phase"))
            self.outcomes[phase, outcome] += 1
            if (cause := row.get("reconnected")) is not None:
                self.reconnects[phase, str(cause)] += 1
            rising(self.name, row, _TIMES, number, self.faults)
            rising(self.name, row, _ANSWER_TIMES, number, self.faults)
            due, started = row.get("due_ns"), row.get("started_ns")
            if isinstance(started, int):
                ended = row.get("ended_ns")
                self.starts.setdefault(phase, array("q")).append(started)
                ended = ended if isinstance(ended, int) else -1
                self.ends.setdefault(phase, array("q")).append(ended)
                last = row.get("last_byte_ns") if outcome in _RECORDED else None
                self.recorded_ends.setdefault(phase, array("q")).append(last if isinstance(last, int) else ended)
                if isinstance(due, int):
                    self.late_ns.setdefault(phase, array("d")).append(started - due)
            self._record(number, row, outcome, records)
            self._turn(number, row, outcome, phase)

    def _turn(self, number: int, row: dict[str, Any], outcome: str, phase: str) -> None:
        """A turn of a tree that was not sent has no number and no times, and no other line."""
        unsent = outcome in _UNSENT
        if unsent and (told := [name for name in ("n", *_TIMES, *_ANSWER_TIMES) if name in row]):
            self.faults.add(self.name, f"is {outcome} and has {', '.join(told)}", number, kind="times of unsent turns")
        if "stream" not in row and not unsent:
            return
        turn = phase, *(row.get(name) for name in ("session", "stream", "turn"))
        if unsent and turn in self._turns:
            what = "is the same turn of session {1}, stream {2}, turn {3}, as an earlier line".format(*turn)
            self.faults.add(self.name, what, number, kind="repeated turns")
        self._turns.add(turn)

    def _record(self, number: int, row: dict[str, Any], outcome: str, records: Records | None) -> None:
        line = row.get("record_line")
        if (line is not None) != (outcome in _RECORDED):
            difference = "has no record_line" if line is None else f"has record_line {line}"
            self.faults.add(self.name, f"is {outcome} and {difference}", number, kind="record_line against outcome")
        if line is None:
            return
        if line in self.record_lines:
            difference = f"record_line {line} is another arrival's, too"
            self.faults.add(self.name, difference, number, kind="repeated record_line")
        self.record_lines.add(line)
        if records is not None and isinstance(line, int) and 0 < line <= len(records.ends):
            self._compare(number, row, line, outcome, records)

    def _compare(self, number: int, row: dict[str, Any], line: int, outcome: str, records: Records) -> None:
        """The row says what its record says."""
        at = line - 1
        identity = row.get("x_request_id")
        last = row.get("last_byte_ns")
        # A failed request may be over later than its last byte, which is its record's end; its trace has when.
        ended_at = outcome == "completed" or last is None
        ends = records.cancelled_ns if outcome == "cancelled" else records.end_ns if ended_at else records.failed_ns
        told = {"due_ns": (row.get("due_ns"), records.due_ns[at]), "started_ns": (row.get("started_ns"), records.start_ns[at]),
                "last_byte_ns": (last, records.end_ns[at]), "ended_ns": (row.get("ended_ns"), ends[at])}  # fmt: skip
        wrong = [name for name, (own, other) in told.items() if own is not None and other >= 0 and own != other]
        if records.ends[at] != ("error" if outcome == "cut" else outcome):
            wrong.append("outcome")
        if identity is not None and records.line_of.get(identity) != line:
            wrong.append("x_request_id")
        if row.get("reconnected") != records.reconnected.get(line):
            wrong.append("reconnected")
        if wrong:
            what = f"has another {' and '.join(wrong)} than the record on line {line} of {records.name}"
            self.faults.add(self.name, what, number, kind="other than its record")

    def against(self, summary: dict[str, Any], name: str) -> None:
        """The rows are the planned arrivals, their ends and delays are the summary's."""
        profiling = {phase["name"] for phase in summary.get("phases", ()) if phase.get("kind") == "profiling"}
        counts: Counter[str] = Counter()
        for (phase, outcome), count in self.outcomes.items():
            if phase in profiling:
                counts[_WORDS.get(outcome, outcome)] += count
        arrivals = summary.get("measurement", {}).get("arrivals", {})
        for end in (*_ENDS, *sorted(counts.keys() - set(_ENDS))):
            if arrivals and counts[end] != arrivals.get(end, 0):
                told = f"has {counts[end]:,} arrivals {end.replace('_', ' ')}, the summary {arrivals.get(end, 0):,}"
                self.faults.add(self.name, told)
        reconnects: Counter[str] = Counter()
        for (phase, cause), count in self.reconnects.items():
            if phase in profiling:
                reconnects[cause] += count
        told = summary.get("measurement", {}).get("reconnects", {})
        for cause in sorted(reconnects.keys() | told.keys()):
            if reconnects[cause] != told.get(cause, 0):
                what = f"has {reconnects[cause]:,} arrivals that were reconnected, {cause}, the summary {told.get(cause, 0):,}"
                self.faults.add(self.name, what)
        if len(profiling) == 1:
            self._delays(summary.get("delivered_load", {}), next(iter(profiling)), name)

    def _delays(self, load: dict[str, Any], phase: str, name: str) -> None:
        delays = self.late_ns.get(phase)
        for key, q in (("late_p50_ms", 50), ("late_p99_ms", 99)):
            told = load.get(key)
            if told is None or not delays:
                continue
            value = float(np.percentile(np.frombuffer(delays, dtype=np.float64), q)) / 1e6
            if not close(told, value, 1e-5):
                self.faults.add(name, f"delivered_load.{key} is {told:g}, the arrivals' starts give {value:g}")

    def starts_of(self, summary: dict[str, Any]) -> Sequence[int]:
        """Starts of the summary's profiling requests, in ns since 1970."""
        return self.starts.get(_profiling(summary), ())

    def profiling_times(self, summary: dict[str, Any]) -> tuple[Any, Any, Any]:
        """Starts, ends, and ends as in records, of the summary's profiling requests, in ns since 1970; -1 is unknown."""
        times = (of.get(_profiling(summary), array("q")) for of in (self.starts, self.ends, self.recorded_ends))
        starts, ends, recorded = (np.frombuffer(of, dtype=np.int64) for of in times)
        return starts, ends, recorded

    def all_records(self, records: Records) -> None:
        """Every record has its row."""
        if self.record_lines != set(range(1, records.lines + 1)):
            self.faults.add(self.name, f"has rows for {len(self.record_lines):,} records, there are {records.lines:,}")


def _profiling(summary: dict[str, Any]) -> str:
    """Name of the first profiling phase."""
    return next((str(phase["name"]) for phase in summary.get("phases", ()) if phase.get("kind") == "profiling"), "")
