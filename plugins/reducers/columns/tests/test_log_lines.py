"""Lines of a log at debug and trace level: of requests that ended, and of requests that don't."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from aiperf.parts.journal import COMPLETED, ERROR
from aiperf.processes import control
from aiperf.sdk.columns import RecordBatch
from aiperf.sdk.transport import Exchange, Shape
from aiperf.worker.stalls import Stalls
from aiperf_reducer_columns.reduce.request_lines import DEBUG, TRACE, RequestLines
from aiperf_testing.batches import absent, sample_batch

S = 1_000_000_000


def batch(count: int = 3, errors: dict[int, str] | None = None, **columns: Any) -> RecordBatch:
    made = sample_batch().take(np.arange(count))
    outcome = np.full(count, COMPLETED, dtype=float)
    texts: list[str | None] = [None] * count
    for row, message in (errors or {}).items():
        outcome[row], texts[row] = ERROR, f'{{"message":"{message}"}}'
    given = {name: np.array(values, dtype=float) for name, values in columns.items()}
    return RecordBatch(
        {**made.columns, "outcome": outcome, **dict.fromkeys(("reconnected", "resent", "reused"), np.zeros(count)), **given},
        outcome == COMPLETED, {**made.texts, "error": texts},
    )  # fmt: skip


def said(level: int, told: RecordBatch) -> list[str]:
    lines: list[str] = []
    RequestLines(level, lambda at, more: lines.extend([f"{at} {line}" for line in more])).tell(told)
    return lines


def test_at_trace_every_request_has_a_line() -> None:
    lines = said(TRACE, batch(reused=[1, 0, 0], reconnected=[0, 1, 0], connect_ns=[0, 0, 3e6], dns_ns=[0] * 3, tls_ns=[0] * 3))
    assert len(lines) == 3 and all(line.startswith(f"{TRACE} request ") for line in lines)
    assert ", on an open connection, " in lines[0] and ", because the server had closed the open one" in lines[1]
    assert ", on a new connection (connect 3.00 ms), " in lines[2] and "ok" in lines[2] and "first content at " in lines[2]


def test_at_debug_failures_and_second_attempts_have_one() -> None:
    lines = said(DEBUG, batch(errors={2: "HTTP 503: busy"}, reconnected=[0, 1, 0], resent=[1, 0, 0]))
    assert len(lines) == 2 and ", sent again, because " in lines[0]
    assert lines[1].endswith(": HTTP 503: busy") and ", error" in lines[1]
    assert said(DEBUG, batch()) == []


def test_at_debug_a_batch_of_failures_is_cut() -> None:
    count = len(sample_batch())
    whole = RecordBatch(sample_batch().columns, np.zeros(count, dtype=bool), sample_batch().texts)
    many = whole.take(np.resize(np.arange(count), 50))
    lines = said(DEBUG, many)
    assert len(lines) == 21 and lines[-1].endswith("… and 30 more requests that failed or were sent again")


def test_a_request_of_which_nothing_is_known_has_a_line() -> None:
    unknown = absent(sample_batch())
    assert len(said(TRACE, unknown)) == len(unknown)


def test_lines_come_over_the_control_channel() -> None:
    lines = control.LogLines(5, ["one", "two"])
    assert control.decode(control.encode(lines)) == lines


@dataclass
class Flying:
    open: dict[int, Exchange] = field(default_factory=dict)
    completed: int = 0
    errors: int = 0
    connecting: Any = field(default_factory=lambda: SimpleNamespace(refused=None))


TRANSPORT: Any = SimpleNamespace(statistics={"opened": 4})


def exchange(number: int, started_ns: int, **times: int) -> Exchange:
    shape = Shape("http://user:pass@here:1/v1/chat?key=secret", {}, ())
    made = Exchange(number, shape, b"", f"id-{number}", "s", started_ns)
    for name, value in times.items():
        setattr(made, name, value)
    return made


def test_requests_that_do_not_end_are_told_with_their_stages() -> None:
    in_flight: Any = Flying({
        1: exchange(1, 2 * S), 2: exchange(2, 1 * S, connected_ns=1, sent_ns=1, sent_end_ns=1),
        3: exchange(3, 2 * S, connected_ns=1, sent_ns=1, sent_end_ns=1, ack_ns=1), 4: exchange(4, 2 * S),
    })  # fmt: skip
    stalls = Stalls(7)
    assert stalls.line(in_flight, TRANSPORT, 2 * S) is None and stalls.line(in_flight, TRANSPORT, 6 * S) is None
    assert stalls.line(in_flight, TRANSPORT, 8 * S) == (
        "worker 7: no request has ended for 6 s; 4 in flight: 2 connecting, 1 without an answer, 1 receiving;"
        " the oldest, id-2 to http://<redacted>@here:1/v1/chat?<redacted>, is without an answer after 7.0 s, 0 bytes received;"
        " 4 connections opened"
    )
    assert stalls.line(in_flight, TRANSPORT, 9 * S) is None
    in_flight.connecting.refused = "here:1: Connection refused"
    line = stalls.line(in_flight, TRANSPORT, 13 * S) or ""
    assert line.endswith("; the last attempt to connect failed: here:1: Connection refused")


@pytest.mark.parametrize("change", [{"completed": 1}, {"errors": 1}, {"open": {}}])
def test_a_worker_whose_requests_end_has_no_line(change: dict[str, Any]) -> None:
    in_flight, stalls = Flying({1: exchange(1, 0)}), Stalls(0)
    assert stalls.line(in_flight, TRANSPORT, 0) is None
    for name, value in change.items():
        setattr(in_flight, name, value)
    assert stalls.line(in_flight, TRANSPORT, 6 * S) is None
