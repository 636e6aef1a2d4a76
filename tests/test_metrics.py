"""Metrics that need a whole program: goodput, the parts of an HTTP exchange, curves over time, reasoning, token counts."""

from __future__ import annotations

from typing import Any

import pytest
from aiperf_command_simulate.testing import running
from program import Done, Program

SLACK_MS = 15.0
DIFFERENCE = "usage_prompt_tokens_diff_pct"
PARTS = ("blocked", "dns_lookup", "connecting", "sending", "waiting", "receiving")


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Done:
    """Forty answers, some of them cut short; for tests that read it alone."""
    with running(first_token_ms=20, decode_ms=4, faults=["cut=3@0.2"]) as server:
        done = Program(tmp_path_factory.mktemp("forty"))(
            "profile", "--model", "sim", "--url", server.url, "--tokenizer", "builtin", "--isl", "20", "--osl", "10",
            "--streaming", "--request-rate", "60", "--request-count", "40", "--random-seed", "5", "--ui", "none",
            "--goodput", "time_to_first_token:100000 request_latency:58", "-g", "time_to_first_token:p50<100000",
            "-g", "request_latency:p99<100000",
        )  # fmt: skip
        assert done.code == 0, done.err
    return done


def values(done: Done, tag: str) -> list[float]:
    return [line["metrics"][tag]["value"] for line in done.lines("profile_export.jsonl") if tag in line["metrics"]]


def average(done: Done, tag: str) -> Any:
    return done.json()[tag]["avg"]


def test_goodput_and_throughput_share_their_denominator(done: Done) -> None:
    good = values(done, "good_request_count")
    assert sum(good) == average(done, "good_request_count") == sum(latency <= 58 for latency in values(done, "request_latency"))
    share = average(done, "goodput") / average(done, "request_throughput")
    assert share == pytest.approx(average(done, "good_request_count") / average(done, "request_count"))
    assert average(done, "good_request_fraction") == pytest.approx(sum(good) / 40)
    # No first token is later than 100 s, so all that is not good failed the other objective alone.
    assert average(done, "slo_time_to_first_token_failed_alone") == 0
    assert average(done, "slo_request_latency_failed_alone") == len(good) - sum(good)


def test_a_percentile_counts_failures_and_says_what_room_is_left(done: Done) -> None:
    assert average(done, "slo_time_to_first_token_p50_attained") == 1
    reached = done.json()["adj_time_to_first_token"]["p50"]
    assert average(done, "slo_time_to_first_token_p50_margin") == pytest.approx(100000 - reached, rel=1e-9)
    assert average(done, "slo_request_latency_p99_attained") == 0  # more than one of a hundred failed
    assert "slo_request_latency_p99_margin" not in done.json()


def test_a_report_scores_with_other_objectives(aiperf: Program, done: Done) -> None:
    throughput = average(done, "request_throughput")
    done = done.copy(aiperf.folder / "again")
    again = aiperf("report", done.artifacts, "--goodput", "request_latency:100000")
    assert again.code == 0, again.err
    assert average(done, "goodput") == average(done, "request_throughput") == throughput
    assert "slo_time_to_first_token_failed_alone" not in done.json()
    wrong = aiperf("report", done.artifacts, "--goodput", "request_latenci:1")
    assert wrong.code == 2
    assert "did you mean request_latency?" in wrong.err


@pytest.mark.parametrize(
    ("slo", "code", "sentence"),
    [
        ("ttfb:20", 2, "there is no metric 'ttfb'"),
        ("request_throughput:5", 2, "request_throughput is a number of the whole run"),
        ("time_to_first_token:20", 1, "time_to_first_token doesn't apply to this run: it needs --streaming"),
    ],
)
def test_an_impossible_objective_refuses_the_run(
    aiperf: Program, simulator: Any, slo: str, code: int, sentence: str
) -> None:
    done = aiperf(
        "profile", "--model", "sim", "--url", simulator.url, "--tokenizer", "builtin", "--request-count", "5", "--goodput", slo
    )
    assert done.code == code
    assert sentence in done.err
    assert simulator.summary()["requests"] == 0


def test_the_parts_of_every_exchange_add_up(done: Done) -> None:
    for line in done.lines("profile_export.jsonl"):
        metrics = {tag: found["value"] for tag, found in line["metrics"].items()}
        if "error" in line:
            continue
        total = metrics["http_req_total"]
        assert sum(metrics[f"http_req_{part}"] for part in PARTS) == pytest.approx(total, abs=1e-9)
        span_ns = line["metadata"]["request_end_ns"] - line["metadata"]["request_start_ns"]
        assert total == pytest.approx(span_ns / 1e6, abs=1e-9)
        assert all(metrics[f"http_req_{part}"] >= 0 for part in PARTS)


@pytest.mark.timing
def test_the_mean_concurrency_is_request_time_over_run_time(done: Done) -> None:
    summary = done.json()
    spans = [
        line["metadata"]["request_end_ns"] - line["metadata"]["request_start_ns"] for line in done.lines("profile_export.jsonl")
    ]
    window_ns = summary["observation_window"]["avg"] * 1e9
    # One that was cut is over when the connection is, behind its last bytes.
    assert summary["effective_concurrency"]["avg"] * window_ns == pytest.approx(sum(spans), rel=0.02)
    # Of good answers all tokens but the first, and their prompts.
    tokens = summary["total_osl"]["avg"] - summary["request_count"]["avg"]
    assert summary["effective_decode_throughput"]["avg"] * window_ns / 1e9 == pytest.approx(tokens, rel=1e-6)
    prompts = summary["effective_prefill_throughput"]["avg"] * window_ns / 1e9
    assert prompts == pytest.approx(summary["total_isl"]["avg"], rel=1e-6)


def test_the_servers_counts_are_its_own_and_stand_beside_ours(done: Done) -> None:
    summary = done.json()
    assert summary["usage_completion_tokens"]["avg"] == summary["output_sequence_length"]["avg"] == 10
    assert summary["total_usage_completion_tokens"]["avg"] == summary["total_osl"]["avg"]
    assert summary["usage_completion_tokens_diff_pct"]["max"] == 0


def few(aiperf: Program, url: str, *words: str) -> Done:
    done = aiperf(
        "profile", "--model", "sim", "--url", url, "--tokenizer", "builtin", "--isl", "20", "--streaming",
        "--request-count", "6", "--concurrency", "2", "--ui", "none", *words,
    )  # fmt: skip
    assert done.code == 0, done.err
    return done


@pytest.mark.parametrize("whose", [(), ("--use-server-token-count",)], ids=["ours", "the-servers"])
def test_reasoning_is_told_from_the_answer(aiperf: Program, whose: tuple[str, ...]) -> None:
    with running(first_token_ms=10, decode_ms=4, reasoning_tokens=4) as server:
        done = few(aiperf, server.url, "--osl", "10", *whose)
    summary = done.json()
    assert summary["reasoning_token_count"]["avg"] == summary["total_reasoning_tokens"]["avg"] / 6 == 4
    assert summary["output_token_count"]["avg"] == 6
    assert summary["output_sequence_length"]["avg"] == 10
    for line in done.lines("profile_export.jsonl"):
        metrics = {tag: found["value"] for tag, found in line["metrics"].items()}
        parts = [metrics[tag] for tag in ("time_to_first_token", "time_to_first_output_token", "request_latency")]
        assert parts == sorted(parts)
        merged = any("intervals" in found for found in line["metrics"].values())
        assert merged or len(set(parts)) == 3, "only what was read together came at one time"
        assert metrics["inter_token_latency"] == pytest.approx(metrics["decode_duration"] / 9)
    assert "thinking_efficiency" not in summary
    assert ("usage_reasoning_tokens_diff_pct" in summary) is not bool(whose)


def test_experimental_metrics_are_there_on_request(aiperf: Program) -> None:
    aiperf.environment["AIPERF_DEV_SHOW_EXPERIMENTAL_METRICS"] = "true"
    with running(first_token_ms=10, decode_ms=1, reasoning_tokens=4) as server:
        done = few(aiperf, server.url, "--osl", "12")
    summary = done.json()
    assert summary["thinking_efficiency"]["avg"] == summary["overall_thinking_efficiency"]["avg"] == 0.5
    parts = summary["stream_setup_latency"]["avg"] + summary["stream_prefill_latency"]["avg"]
    assert parts == pytest.approx(summary["time_to_first_token"]["avg"])


def test_chunks_of_several_tokens_count_as_what_they_carry(aiperf: Program) -> None:
    with running(first_token_ms=10, decode_ms=4, tokens_per_chunk=3) as server:
        done = few(aiperf, server.url, "--osl", "9", "--use-server-token-count", "--per-chunk-usage")
    for line in done.lines("profile_export.jsonl"):
        metrics = {tag: found["value"] for tag, found in line["metrics"].items()}
        assert metrics["output_sequence_length"] == 9
        if metrics["decode_duration"] > 0:  # on a busy machine all may be read at once
            assert metrics["inter_token_latency"] == pytest.approx(metrics["decode_duration"] / 6)  # all but the first three
        assert metrics["http_req_chunks_received"] >= len(metrics["inter_chunk_latency"]) == 2
        if "intervals" not in line["metrics"]["inter_chunk_latency"]:  # else reads were merged, and these are estimates
            assert sum(metrics["inter_chunk_latency"]) == pytest.approx(metrics["decode_duration"])


def test_one_token_has_no_time_between_tokens_and_none_is_zero(aiperf: Program) -> None:
    with running(first_token_ms=5, decode_ms=1) as server:
        done = few(aiperf, server.url, "--osl", "1")
    summary = done.json()
    assert summary["output_sequence_length"]["max"] == 1
    assert {"inter_token_latency", "output_token_throughput_per_user", "inter_chunk_latency"} & set(summary) == set()
    assert summary["decode_duration"]["max"] == 0


def test_a_context_that_is_full_is_told_from_other_failures(aiperf: Program) -> None:
    with running(first_token_ms=5, decode_ms=1, tokens=8, max_context=25, faults=["fail=500@0.3"], seed=3) as server:
        done = aiperf(
            "profile", "--model", "sim", "--url", server.url, "--tokenizer", "builtin", "--isl", "20", "--osl", "30",
            "--streaming", "--request-count", "20", "--concurrency", "4", "--ui", "none",
        )  # fmt: skip
    assert done.code == 1  # nothing succeeded
    summary = done.json()
    told = sum(row["count"] for row in summary["error_summary"] if row["error_details"]["code"] == 500)
    assert 0 < told < 20
    assert summary["context_overflow_count"]["avg"] == 20 - told


@pytest.mark.timing
@pytest.mark.parametrize("whose", [(), ("--use-server-token-count",)], ids=["ours", "the-servers"])
def test_first_token_and_first_output_are_when_the_server_sent_them(aiperf: Program, whose: tuple[str, ...]) -> None:
    with running(first_token_ms=20, decode_ms=20, reasoning_tokens=4) as server:
        done = few(aiperf, server.url, "--osl", "8", *whose)
        truth = {row["request_id"]: row for row in server.truth()["requests"]}
    for line in done.lines("profile_export.jsonl"):
        metrics = {tag: found["value"] for tag, found in line["metrics"].items()}
        row = truth[line["metadata"]["x_request_id"]]
        first_ms = (row["first_mono_ns"] - row["received_mono_ns"]) / 1e6
        thinking_ms = (row["last_mono_ns"] - row["first_mono_ns"]) / 1e6 * 4 / 7
        assert metrics["time_to_first_token"] == pytest.approx(first_ms, abs=SLACK_MS)
        assert metrics["time_to_first_output_token"] == pytest.approx(first_ms + thinking_ms, abs=SLACK_MS)


def test_a_different_server_count_is_reported_and_used_on_request(aiperf: Program) -> None:
    """It counts words its own way: of some prompts so short as these more than a tenth differs."""
    asked = ("--osl", "3", "--random-seed", "5")
    with running(first_token_ms=5, decode_ms=1) as server:
        ours = few(aiperf, server.url, *asked)
        elsewhere = str(aiperf.folder / "theirs")
        theirs = few(aiperf, server.url, *asked, "--use-server-token-count", "--artifact-dir", elsewhere)
    assert ours.json()["input_sequence_length"]["max"] == 20
    assert ours.json()["usage_discrepancy_count"]["avg"] == sum(each > 10 for each in values(ours, DIFFERENCE)) > 0
    assert "the server's token counts are far from those counted here" in ours.out
    assert values(theirs, "input_sequence_length") == values(theirs, "usage_prompt_tokens")
    assert sum(values(theirs, "input_sequence_length")) == sum(values(ours, "usage_prompt_tokens"))
    assert not {DIFFERENCE, "usage_discrepancy_count"} & set(theirs.json())


def test_missing_server_counts_stay_absent(aiperf: Program) -> None:
    with running(first_token_ms=5, decode_ms=1, faults=["no_usage"]) as server:
        done = few(aiperf, server.url, "--osl", "3", "--use-server-token-count")
    lacking = {"input_sequence_length", "output_sequence_length", "output_token_throughput", "inter_token_latency"}
    assert not lacking & set(done.json())
    assert done.json()["time_to_first_token"]["count"] == 6
    assert "the server sent no token counts with 6 of 6 answers" in done.out
