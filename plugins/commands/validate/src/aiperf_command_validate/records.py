"""The per-request file and the raw file: faults of each line, and totals."""

from __future__ import annotations

import math
from array import array
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise, zip_longest
from typing import Any

import numpy as np

from aiperf_command_validate.choice import USUAL
from aiperf_command_validate.faults import Faults
from aiperf_command_validate.numbers import is_number
from aiperf_command_validate.values import Values

Lines = Iterator[tuple[int, dict[str, Any]]]

_RECORD_TIMES = ("credit_issued_ns", "request_start_ns", "request_ack_ns", "request_end_ns")
_HTTP_PARTS = tuple(f"http_req_{part}" for part in ("blocked", "dns_lookup", "connecting", "sending", "waiting", "receiving"))
_ABSENT = -1
"""The value of a column where the record has none, or none that fits."""
_OVERFLOWED = "overflowed"
"""The end of a request that the server refused because its context is too long: in no count of errors."""
_CLOSE_MS = 2e-6
"""Times are whole ns: two sums of them in ms differ by less, unless one was changed."""
_ESTIMATE = 1e-9
"""Estimates, of answers whose reads were merged, have nine decimals: a rate of one differs by so much over its least part."""

_Sum = tuple[str, Callable[..., float], tuple[str, ...]]
_SUMS: tuple[_Sum, ...] = (
    ("request_latency", lambda first, rest: first + rest, ("time_to_first_token", "decode_duration")),
    ("schedule_slip", lambda due, start: (start - due) / 1e6, ("due_ns", "request_start_ns")),
    ("response_latency", lambda due, end: (end - due) / 1e6, ("due_ns", "request_end_ns")),
)  # fmt: skip
_RATES: tuple[_Sum, ...] = (
    ("e2e_output_token_throughput", lambda tokens, ms: tokens / ms * 1e3, ("output_sequence_length", "request_latency")),
    ("output_token_throughput_per_user", lambda ms: 1e3 / ms, ("inter_token_latency",)),
    ("prefill_throughput_per_user", lambda tokens, ms: tokens / ms * 1e3, ("input_sequence_length", "time_to_first_token")),
)
"""Metrics of one request that follow from others, or from its times."""


class Records:
    """The per-request file, read once.

    *ours*: False for a file of the reference, whose metrics are not recomputed.  *slice_ends*: end of each time slice, in ns
    since 1970; a request counts in the slice in which it ended.  *percentiles*: of the metrics' statistics.
    """

    # More than 20 attributes: each kind of fact in a file is a table of its own, which the checks read.

    def __init__(
        self, name: str, faults: Faults, *, ours: bool = True, slice_ends: Sequence[int] = (),
        percentiles: Sequence[float] = USUAL,
    ) -> None:  # fmt: skip
        self._percentiles = percentiles
        self.name, self.faults, self.ours, self.slice_ends = name, faults, ours, slice_ends
        self.lines = 0
        self.good: Counter[tuple[str, str]] = Counter()
        """Lines without an error, by kind and name of phase.  Context overflows are neither good nor failed."""
        self.failed: Counter[tuple[str, str]] = Counter()
        self.metrics: dict[str, Values] = {}
        """Metrics of the profiling requests."""
        self.warmup: dict[str, Values] = {}
        self.warmup_failed = 0
        self.errors: Counter[tuple[Any, ...]] = Counter()
        """Errors of the profiling requests, by :meth:`error_key`."""
        self.reasons: Counter[str] = Counter()
        """Why answers of profiling requests ended, by ``finish_reason``."""
        self.good_in_slice: Counter[int] = Counter()
        self.conversations: dict[str, int] = {}
        """Each conversation's highest turn."""
        self.line_of: dict[str, int] = {}
        """The line of each x_request_id."""
        self.due_ns, self.start_ns, self.end_ns, self.cancelled_ns = array("q"), array("q"), array("q"), array("q")
        """Times by line, from 1; -1 where a line has none."""
        self.failed_ns = array("q")
        """When each failed request was over, by line; -1 where the run kept no traces."""
        self.ends: list[str] = []
        """``completed``, ``cancelled``, ``overflowed`` or ``error`` by line."""
        self.reconnected: dict[int, str] = {}
        """Why a request went to a new connection, by line."""
        self._profiling = bytearray()

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
        end = _end(line, data)
        if end != _OVERFLOWED:
            counts = self.failed if "error" in line else self.good
            counts[kind, str(data.get("phase_name", kind))] += 1
        rising(self.name, data, _RECORD_TIMES, number, self.faults)
        self._identify(number, line, data)
        # When a failed request was over is in no file: it may have been later than its last byte.
        group = self._slice(data) if kind == "profiling" and "error" not in line else _ABSENT
        self.warmup_failed += kind == "warmup" and "error" in line and end != _OVERFLOWED
        if kind == "profiling":
            if "finish_reason" in data:
                self.reasons[str(data["finish_reason"])] += 1
            error = line.get("error")
            if isinstance(error, dict) and end != _OVERFLOWED:
                self.errors[self.error_key(error)] += 1
            elif error is None:
                self.good_in_slice[group] += 1
        if kind in ("profiling", "warmup"):
            self._measure(number, metrics, self.metrics if kind == "profiling" else self.warmup, group)
            self._add_up(number, metrics)
        if self.ours:
            self._follow(number, metrics, data)

    def _identify(self, number: int, line: dict[str, Any], data: dict[str, Any]) -> None:
        identity = data.get("x_request_id")
        if identity is not None:
            if identity in self.line_of:
                self.faults.add(self.name, f"x_request_id {identity} has another line", number, kind="repeated x_request_id")
            self.line_of[identity] = number
        if (cause := data.get("reconnected")) is not None:
            self.reconnected[number] = str(cause)
        conversation = data.get("conversation_id")
        if conversation is not None:
            turn = data.get("turn_index", 0)
            self.conversations[conversation] = max(turn, self.conversations.get(conversation, 0))
        trace = line.get("trace_data")
        times = (
            (self.due_ns, data, "due_ns"), (self.start_ns, data, "request_start_ns"), (self.end_ns, data, "request_end_ns"),
            (self.cancelled_ns, data, "cancellation_time_ns"),
            (self.failed_ns, trace if isinstance(trace, dict) else {}, "error_timestamp_ns"),
        )  # fmt: skip
        for column, part, field in times:
            column.extend([_ABSENT] * (number - 1 - len(column)))  # lines that are no records
            value = part.get(field)
            column.append(value if isinstance(value, int) and 0 <= value < 1 << 63 else _ABSENT)
        self.ends.extend([""] * (number - 1 - len(self.ends)))
        self._profiling.extend(bytes(number - 1 - len(self._profiling)))
        self._profiling.append(data.get("benchmark_phase") == "profiling")
        self.ends.append(_end(line, data))

    def _slice(self, data: dict[str, Any]) -> int:
        """Where the request ended; an instant at the very end of the phase is in the last slice."""
        end = data.get("request_end_ns")
        if not self.slice_ends or not isinstance(end, int):
            return _ABSENT
        return min(bisect_right(self.slice_ends, end), len(self.slice_ends) - 1)

    def _measure(self, number: int, metrics: dict[str, Any], of: dict[str, Values], group: int) -> None:
        for tag, metric in metrics.items():
            value = metric.get("value") if isinstance(metric, dict) else None
            values: list[Any] = value if isinstance(value, list) else [value]
            if not all(map(is_number, values)):
                self.faults.add(self.name, f"{tag} has no number", number, kind="metrics without a number")
                continue
            known = of.get(tag) or of.setdefault(tag, Values(percentiles=self._percentiles))
            known.listed |= isinstance(value, list)
            if "unit" in metric:
                known.units.add(str(metric["unit"]))
            if len(known.units) > 1:
                others = " and ".join(sorted(known.units))
                self.faults.add(self.name, f"{tag} has the units {others}", number, kind="other units than lines before")
                known.units = {str(metric["unit"])}
            if "intervals" in metric and not known.estimate(metric["intervals"], len(values)):
                self.faults.add(self.name, f"{tag} has intervals that don't fit its values", number, kind="unfit intervals")
            known.add(values, group)

    def _add_up(self, number: int, metrics: dict[str, Any]) -> None:
        """The parts of an HTTP exchange are the whole."""
        values = [metrics.get(tag, {}).get("value") for tag in (*_HTTP_PARTS, "http_req_total")]
        if all(map(is_number, values)):
            *parts, total = values
            if not math.isclose(sum(parts), total, rel_tol=1e-9, abs_tol=1e-6):
                difference = f"the parts of its HTTP exchange take {sum(parts):g} ms, http_req_total is {total:g}"
                self.faults.add(self.name, difference, number, kind="HTTP parts that don't add up")

    def _follow(self, number: int, metrics: dict[str, Any], data: dict[str, Any]) -> None:
        """Metrics that follow from others of the same request."""
        numbers = {tag: metric.get("value") for tag, metric in metrics.items() if isinstance(metric, dict)}
        for table, close in ((_SUMS, 0.0), (_RATES, 1e-9)):
            for tag, calculate, names in table:
                relative = close
                values: list[Any] = [numbers.get(name, data.get(name)) for name in (tag, *names)]
                if not all(map(is_number, values)):
                    continue
                told, *parts = values
                try:
                    value = calculate(*parts)
                except ZeroDivisionError:
                    continue
                if relative and any(name in numbers and "intervals" in metrics[name] for name in names):
                    relative = max(relative, _ESTIMATE / min(abs(part) for part in parts if part))
                if not math.isclose(told, value, rel_tol=relative, abs_tol=_CLOSE_MS):
                    follows = f"{tag} is {told:.10g}, which is {value:.10g} by {' and '.join(names)}"
                    self.faults.add(self.name, follows, number, kind="metrics that contradict others")

    def error_key(self, error: dict[str, Any]) -> tuple[Any, ...]:
        """What errors that are counted together have in common; the reference counts those of all causes together."""
        return tuple(error.get(name) for name in ("message", "type", "code", *(("cause",) if self.ours else ())))

    def profiling_times(self) -> tuple[Any, Any, Any]:
        """Starts and ends of the profiling requests, and the ends again, in ns since 1970; -1 where one is unknown."""
        of = np.frombuffer(self._profiling, dtype=np.bool_)
        starts, ends = (np.frombuffer(column, dtype=np.int64)[of] for column in (self.start_ns, self.end_ns))
        return starts, ends, ends


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
        for response in raw_line.get("responses", ()):
            rising(name, response, ("after_perf_ns", "perf_ns"), number, faults)


def _end(line: dict[str, Any], data: dict[str, Any]) -> str:
    if data.get("context_overflow_skip"):
        return _OVERFLOWED
    return "cancelled" if data.get("was_cancelled") else "error" if "error" in line else "completed"


def rising(name: str, of: dict[str, Any], fields: Iterable[str], line: int, faults: Faults) -> None:
    """A fault where a time is before one that comes first."""
    known = [(field, of[field]) for field in fields if isinstance(of.get(field), int)]
    for (before, earlier), (after, later) in pairwise(known):
        if later < earlier:
            faults.add(name, f"{after} is {earlier - later:,} ns before {before}", line, kind="times that go back")
            return
