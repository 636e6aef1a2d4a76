"""Files with a line per request: faults of each line, and totals."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import pairwise, zip_longest
from typing import Any

from aiperf_command_validate.faults import Faults

Lines = Iterator[tuple[int, dict[str, Any]]]

_RECORD_TIMES = ("credit_issued_ns", "request_start_ns", "request_ack_ns", "request_end_ns")
_LEDGER_TIMES = ("due_ns", "started_ns", "connected_ns", "sent_ns", "sent_end_ns")
_ANSWER_TIMES = ("started_ns", "first_byte_ns", "last_byte_ns")
_HTTP_PARTS = tuple(
    f"http_req_{part}" for part in ("blocked", "dns_lookup", "connecting", "sending", "waiting", "receiving")
)
_RECORDED = ("completed", "error", "cancelled")


class Values:
    """One metric over the profiling requests."""

    def __init__(self) -> None:
        self.count = 0
        self.low, self.high = math.inf, -math.inf
        self.total = 0.0
        self.magnitude = 0.0

    def add(self, values: Iterable[float]) -> None:
        for value in values:
            self.count += 1
            self.low, self.high = min(self.low, value), max(self.high, value)
            self.total += value
            self.magnitude += abs(value)

    def like(self, other: Values) -> bool:
        """Whether they are the same values, as far as counts, sums and extremes tell."""
        close = math.isclose(self.total, other.total, rel_tol=0, abs_tol=1e-9 * max(self.magnitude, 1e-9))
        return close and (self.count, self.low, self.high) == (other.count, other.low, other.high)


class Records:
    """The per-request file, read once."""

    def __init__(self, name: str, faults: Faults) -> None:
        self.name, self.faults = name, faults
        self.lines = 0
        self.good: Counter[tuple[str, str]] = Counter()
        """Lines without an error, by kind and name of phase."""
        self.failed: Counter[tuple[str, str]] = Counter()
        self.metrics: dict[str, Values] = {}
        self.conversations: dict[str, int] = {}
        """Each conversation's highest turn."""
        self._seen: set[str] = set()

    def read(self, lines: Lines) -> Iterator[tuple[int, dict[str, Any]]]:
        """Take every line in, and pass it on."""
        for number, line in lines:
            self.lines = number
            self._take(number, line)
            yield number, line

    def _take(self, number: int, line: dict[str, Any]) -> None:
        data, metrics = line.get("metadata"), line.get("metrics")
        if not isinstance(data, dict) or not isinstance(metrics, dict):
            self.faults.add(self.name, "has no metadata or no metrics", number, kind="no record")
            return
        kind = str(data.get("benchmark_phase"))
        counts = self.failed if "error" in line else self.good
        counts[kind, str(data.get("phase_name", kind))] += 1
        _rising(self.name, data, _RECORD_TIMES, number, self.faults)
        identity = data.get("x_request_id")
        if identity is not None:
            if identity in self._seen:
                self.faults.add(self.name, f"x_request_id {identity} has another line", number, kind="repeated x_request_id")
            self._seen.add(identity)
        conversation = data.get("conversation_id")
        if conversation is not None:
            turn = data.get("turn_index", 0)
            self.conversations[conversation] = max(turn, self.conversations.get(conversation, 0))
        if kind == "profiling":
            self._measure(number, metrics)

    def _measure(self, number: int, metrics: dict[str, Any]) -> None:
        for tag, metric in metrics.items():
            value = metric.get("value") if isinstance(metric, dict) else None
            values: list[Any] = value if isinstance(value, list) else [value]
            if not all(isinstance(item, int | float) and not isinstance(item, bool) for item in values):
                self.faults.add(self.name, f"{tag} has no number", number, kind="metrics without a number")
                continue
            self.metrics.setdefault(tag, Values()).add(values)
        self._add_up(number, metrics)

    def _add_up(self, number: int, metrics: dict[str, Any]) -> None:
        """The parts of an HTTP exchange are the whole."""
        values = [metrics.get(tag, {}).get("value") for tag in (*_HTTP_PARTS, "http_req_total")]
        if all(isinstance(value, int | float) for value in values):
            *parts, total = values
            if not math.isclose(sum(parts), total, rel_tol=1e-9, abs_tol=1e-6):
                difference = f"the parts of its HTTP exchange take {sum(parts):g} ms, http_req_total is {total:g}"
                self.faults.add(self.name, difference, number, kind="HTTP parts that don't add up")


class Ledger:
    """The arrivals, read once."""

    def __init__(self, name: str, faults: Faults) -> None:
        self.name, self.faults = name, faults
        self.outcomes: Counter[tuple[str, str]] = Counter()
        """Rows by name of phase and outcome."""
        self.record_lines: set[int] = set()

    def read(self, lines: Lines) -> None:
        for number, row in lines:
            outcome = str(row.get("outcome"))
            self.outcomes[str(row.get("phase")), outcome] += 1
            _rising(self.name, row, _LEDGER_TIMES, number, self.faults)
            _rising(self.name, row, _ANSWER_TIMES, number, self.faults)
            line = row.get("record_line")
            if (line is not None) != (outcome in _RECORDED):
                difference = "has no record_line" if line is None else f"has record_line {line}"
                self.faults.add(self.name, f"is {outcome} and {difference}", number, kind="record_line against outcome")
            if line is not None:
                if line in self.record_lines:
                    difference = f"record_line {line} is another arrival's, too"
                    self.faults.add(self.name, difference, number, kind="repeated record_line")
                self.record_lines.add(line)


def compare_raw(records: Lines, raw: Lines, name: str, faults: Faults) -> None:
    """The raw file has the per-request file's requests in its order; responses come in the order of time."""
    for first, second in zip_longest(records, raw):
        if first is None or second is None:
            which = "more" if first is None else "fewer"
            faults.add(name, f"has {which} lines than the per-request file", kind="number of lines")
            continue
        (line, record), (number, raw_line) = first, second
        if record.get("metadata") != raw_line.get("metadata"):
            faults.add(name, f"is not of the request of line {line} of the per-request file", number, kind="another request")
        instants = [raw_line.get("start_perf_ns"), *(response.get("perf_ns") for response in raw_line.get("responses", ()))]
        known = [instant for instant in instants if instant is not None]
        if known != sorted(known):
            faults.add(name, "has responses whose times go back", number, kind="times that go back")


def _rising(name: str, of: dict[str, Any], fields: Iterable[str], line: int, faults: Faults) -> None:
    known = [(field, of[field]) for field in fields if isinstance(of.get(field), int)]
    for (before, earlier), (after, later) in pairwise(known):
        if later < earlier:
            faults.add(name, f"{after} is {earlier - later:,} ns before {before}", line, kind="times that go back")
            return
