from aiperf.sdk.trace import TraceRow
from aiperf_traces.rows import trace_rows
from aiperf_traces.sessions import RecordedRequest, RecordedSession, Subagent
from aiperf_traces.settings import WorkerRules


def _request(at_s: float, blocks: tuple[int, ...], answer_s: float | None = 1.0) -> RecordedRequest:
    return RecordedRequest(at_s, 64 * len(blocks), 5, blocks, answer_s=answer_s)


def _session(name: str) -> RecordedSession:
    child = Subagent("a", 2, [_request(2.5, (9,), None)], 900)
    return RecordedSession(name, 64, [_request(0, (1, 2)), child, _request(6, (1, 2, 3))])


def test_rows_are_in_the_order_of_their_times_and_know_their_stream() -> None:
    rows = list(trace_rows([(_session("one"), 5000.0), (_session("two"), None)], WorkerRules()))
    assert rows[:3] == [
        TraceRow(128, 5, (1, 2), 5000.0, None, 1000.0, "one", 0, 0, 0, 1),
        TraceRow(64, 5, (9,), 7500.0, None, None, "one::sa:a", 0, 1, 1, 1),
        TraceRow(192, 5, (1, 2, 3), 11000.0, None, 1000.0, "one", 0, 0, 0, 1),
    ]
    assert [(row.tree, row.stream, row.scope, row.timestamp_ms) for row in rows[3:]] == [
        (1, 0, 2, None), (1, 1, 2, None), (1, 0, 2, None),
    ]  # fmt: skip
