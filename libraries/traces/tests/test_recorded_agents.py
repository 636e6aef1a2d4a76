import math

import pytest
from aiperf_traces.options import AgentTraceOptions
from aiperf_traces.plans import pauses, plan_of
from aiperf_traces.sessions import RecordedRequest, RecordedSession, Subagent
from aiperf_traces.settings import TraceSettings


def _request(at_s: float, answer_s: float | None = None, think_s: float | None = None) -> RecordedRequest:
    return RecordedRequest(at_s, 10, 5, answer_s=answer_s, think_s=think_s)


@pytest.mark.parametrize(
    ("answer_s", "think_s", "options", "pause"),
    [
        (1.0, None, {}, 3000.0),
        (None, None, {}, 4000.0),
        (-1.0, None, {}, 4000.0),
        (math.nan, None, {}, 4000.0),
        (9.0, None, {}, None),
        (1.0, 2.5, {}, 3000.0),
        (1.0, 2.5, {"think_only": True}, 2500.0),
        (1.0, None, {"think_only": True}, 3000.0),
        (1.0, 0.0, {"think_only": True}, None),
        (1.0, None, {"cap_s": 0.5}, 500.0),
        (1.0, None, {"cap_s": 0.0}, None),
    ],
)
def test_a_request_waits_the_time_behind_the_answer_before(
    answer_s: float | None, think_s: float | None, options: dict[str, float], pause: float | None
) -> None:
    plan = plan_of(RecordedSession("s", 64, [_request(1, answer_s), _request(5, think_s=think_s)]), TraceSettings())
    found = pauses(plan.agents[0].turns, **{"think_only": False, "cap_s": None, **options})
    assert list(found) == [None, pause]


def test_both_ways_to_wait_exclude_each_other() -> None:
    (problem,) = AgentTraceOptions(think_time_only=True, ignore_delays=True).problems({})
    assert "--use-think-time-only and --ignore-trace-delays exclude each other" in problem


def test_the_longest_context_counts_subagents_and_cuts_only_the_root() -> None:
    child = Subagent("a", 1, [RecordedRequest(1, 90, 0)])
    session = RecordedSession("s", 64, [RecordedRequest(0, 60, 40), child])
    assert session.longest_context() == 100
    assert session.longest_context(most_output=8) == 91
    assert [request.at_s for request in session.every()] == [0, 1]


@pytest.mark.parametrize(("duration_ms", "end_s"), [(4000, 6.0), (-1, 2.0), (math.inf, 2.0), (None, 4.5)])
def test_a_subagent_ends_by_its_duration_or_its_last_answer(duration_ms: float | None, end_s: float) -> None:
    assert Subagent("a", 2, [_request(3, 1.5)], duration_ms).end_s == end_s
