"""What the server counts, and under which names."""

from __future__ import annotations

import msgspec
import pytest
from aiperf_command_simulate.engines import EngineState, ModelState, engine_page
from aiperf_command_simulate.families import exposition
from aiperf_command_simulate.meters import Meters
from aiperf_command_simulate.truth import COMPLETED, REFUSED, Gaps, Truth, percentile, statistics_ms


def finished(truth, received_ns, *, first=None, last=None, tokens=0, outcome=COMPLETED, status=200):
    record = truth.begin(1, "/v1/completions", received_ns, 0, "r", "s")
    record.stream = True
    record.status = status
    record.first_mono_ns, record.last_mono_ns, record.completion_tokens = first, last, tokens
    truth.end(record, outcome, last or received_ns)
    return record


def test_times_are_what_lies_between_the_stamps():
    truth = Truth(10)
    record = finished(truth, 1_000_000, first=6_000_000, last=16_000_000, tokens=6)
    assert (record.ttft_ns, record.itl_ns, record.latency_ns) == (5_000_000, 2_000_000, 15_000_000)
    summary = truth.summary()
    assert summary["ttft_ms"]["p50"] == 5
    assert summary["itl_ms"]["max"] == 2
    assert summary["latency_ms"]["avg"] == 15


def test_rows_are_bounded_and_what_was_dropped_is_said():
    truth = Truth(3)
    for n in range(5):
        finished(truth, n * 1000)
    summary = truth.summary()
    assert (summary["requests"], summary["rows_kept"], summary["rows_dropped"]) == (5, 3, 2)
    assert [row.number for row in truth.rows()] == [3, 4, 5]
    assert [row.number for row in truth.rows(last=2)] == [4, 5]
    assert [row.number for row in truth.rows(last=0)] == []
    assert "times are of the last 3 requests" in truth.paragraph()


def test_in_flight_counts_requests_between_beginning_and_end():
    truth = Truth(10)
    one = truth.begin(1, "/", 0, 0, None, None)
    two = truth.begin(2, "/", 0, 0, None, None)
    truth.end(one, COMPLETED, 1)
    three = truth.begin(1, "/", 2, 0, None, None)
    assert (truth.summary()["in_flight"], truth.summary()["in_flight_max"]) == (2, 2)
    assert [row.number for row in truth.rows()] == [1, 2, 3]
    truth.end(two, REFUSED, 3)
    truth.end(three, COMPLETED, 3)
    assert truth.summary()["outcomes"] == {COMPLETED: 2, REFUSED: 1}


def test_a_reset_forgets_also_what_ends_later():
    truth = Truth(10)
    pending = truth.begin(1, "/", 0, 0, None, None)
    truth.reset()
    assert truth.summary()["in_flight"] == 1
    truth.end(pending, COMPLETED, 5)
    finished(truth, 100)
    summary = truth.summary()
    assert (summary["requests"], summary["outcomes"], summary["in_flight"]) == (1, {COMPLETED: 1}, 0)


def test_the_rate_of_starts_is_counted_between_the_first_and_the_last():
    truth = Truth(10)
    for n in range(5):
        finished(truth, 10**9 + n * 250_000_000)
    starts = truth.summary()["starts"]
    assert starts["rate_per_s"] == pytest.approx(4.0)
    assert starts["gap_ms"]["p50"] == pytest.approx(250, rel=0.001)
    assert starts["gap_ms"]["max"] == 250


def test_nothing_counted_says_nothing():
    summary = Truth(1).summary()
    assert summary["ttft_ms"] is None
    assert summary["starts"]["rate_per_s"] is None
    written = msgspec.json.decode(Truth(1).written({"steps": 0}, summary_only=False))
    assert written == {"summary": summary | {"engine": {"steps": 0}}, "requests": []}


@pytest.mark.parametrize(("percent", "value"), [(0, 1.0), (50, 2.5), (100, 4.0), (90, 3.7)])
def test_percentiles_interpolate(percent, value):
    assert percentile([1.0, 2.0, 3.0, 4.0], percent) == pytest.approx(value)


def test_absent_values_are_left_out():
    assert statistics_ms([None, 2e6, 4e6])["avg"] == 3
    assert statistics_ms([None]) is None


def test_gaps_keep_a_tenth_of_a_percent():
    gaps = Gaps()
    for ns in [0, *range(1_000_000, 100_000_000, 1_000_000)]:
        gaps.add(ns)
    assert gaps.percentile_ns(50) == pytest.approx(49_500_000, rel=0.02)
    assert gaps.percentile_ns(100) == pytest.approx(99_000_000, rel=0.001)
    assert gaps.percentile_ns(1) == 0.0


def test_the_exposition_counts_by_model_and_bucket():
    meters = {"m": Meters(), 'odd"name': Meters()}
    meters["m"].admitted(12, 0, 16)
    meters["m"].finished("length")
    meters["m"].finished("length")
    for ns in (500_000, 1_000_000, 30_000_000, 10**15):
        meters["m"].observe("first_token", ns)
    models = [ModelState(name, each, running=3 * (name == "m"), waiting=0) for name, each in meters.items()]
    state = EngineState(models, used_blocks=4, blocks=8, block_size=16, drafts=False)
    lines = exposition(engine_page("vllm").families(state), openmetrics=False).splitlines()
    about = 'engine="0",model_name="m"'
    assert f"vllm:num_requests_running{{{about}}} 3" in lines
    assert f"vllm:num_requests_waiting{{{about}}} 0" in lines
    assert f"vllm:kv_cache_usage_perc{{{about}}} 0.5" in lines
    assert f"vllm:prompt_tokens_total{{{about}}} 12" in lines
    assert f'vllm:request_success_total{{{about},finished_reason="length"}} 2' in lines
    assert f'vllm:time_to_first_token_seconds_bucket{{{about},le="0.001"}} 2' in lines
    assert f'vllm:time_to_first_token_seconds_bucket{{{about},le="0.05"}} 3' in lines
    assert f'vllm:time_to_first_token_seconds_bucket{{{about},le="+Inf"}} 4' in lines
    assert f"vllm:time_to_first_token_seconds_count{{{about}}} 4" in lines
    assert 'vllm:num_requests_running{engine="0",model_name="odd\\"name"} 0' in lines
    assert all(line.startswith(("#", "vllm:")) for line in lines)
    assert sum(line.startswith("# TYPE vllm:request_success_total ") for line in lines) == 1
