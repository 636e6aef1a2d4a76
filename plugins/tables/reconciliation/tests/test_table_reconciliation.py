"""The server's own figures beside the client's."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest
from aiperf.sdk.summary import Quantiles, Result, SeriesSummary, TargetSummary
from aiperf.sdk.table import SummaryTable
from aiperf.sdk.verdict import Evidence
from aiperf_table_reconciliation import Reconciliation
from aiperf_table_reconciliation.contract import (
    TARGET,
    ReconciliationContract,
    counter,
    evidence,
    gauge,
    histogram,
    vllm,
)
from aiperf_table_reconciliation.options import ReconciliationOptions
from msgspec.structs import replace


class TestItKeepsTheContract(ReconciliationContract):
    pass


def tables(known: Evidence, **options: Any) -> dict[str, SummaryTable]:
    return {table.name: table for table in Reconciliation(ReconciliationOptions(**options)).tables(known)}


def compared(series: Iterable[SeriesSummary], known: Evidence | None = None, **options: Any) -> dict[str, dict[str, Any]]:
    """The rows of the reconciliation by quantity."""
    whole = evidence(series) if known is None else known
    table = tables(whole, **options)["reconciliation"]
    names = [column.name for column in table.columns]
    return {str(row[0]): dict(zip(names, row, strict=True)) for row in table.rows}


def seen(known: Evidence, **milliseconds: dict[str, float]) -> Evidence:
    """The evidence with these latencies of the client; its own error is 0.1 ms."""
    results = {tag: Result(tag, tag, "ms", stats) for tag, stats in milliseconds.items()}
    measured = replace(known.summary.measurement, client_error_ms=Quantiles(0.05, 0.1, 0.2))
    return replace(known, summary=replace(known.summary, results=results, measurement=measured))


@pytest.mark.parametrize(
    ("client_ms", "verdict"),
    [(15.0, "agrees"), (10.0, "agrees"), (20.05, "agrees"), (20.3, "differs"), (9.0, "wider than the bucket")],
)
def test_a_latency_differs_outside_the_bucket_widened_by_the_clients_error(client_ms: float, verdict: str) -> None:
    row = compared((), seen(evidence(vllm()), time_to_first_token={"p50": client_ms}))["time_to_first_token_p50"]
    assert (row["server_low"], row["server_high"], row["verdict"]) == (10.0, 20.0, verdict)
    assert row["difference"] == pytest.approx(client_ms - row["server_estimate"])
    assert 10 < row["server_estimate"] < 20


def test_a_client_that_is_faster_than_the_server_is_said_first() -> None:
    known = seen(evidence(vllm(requests=30)), time_to_first_token={"p50": 4.0})
    first, second = tables(known)["reconciliation"].notes
    assert first.startswith(f"the client's time to first token p50 is 4 ms and that of vllm at {TARGET} at least 10 ms: ")
    assert "it served others, too" in second


def test_counts_of_a_run_whose_answers_are_whole_are_compared_exactly() -> None:
    rows = compared(vllm())
    assert (rows["requests"]["client"], rows["requests"]["server_estimate"], rows["requests"]["verdict"]) == (24, 24, "agrees")
    assert (rows["prompt_tokens_usage"]["client"], rows["prompt_tokens_usage"]["verdict"]) == (2400, "agrees")
    assert rows["prompt_tokens"]["difference"] == 92 * 24 - 2400 and rows["prompt_tokens"]["verdict"] is None
    assert rows["generated_tokens"]["verdict"] == rows["generated_tokens_usage"]["verdict"] == "agrees"
    assert compared(vllm(generated=239))["generated_tokens_usage"]["verdict"] == "differs"
    assert compared(vllm(requests=23))["requests"]["verdict"] == "differs"


def test_a_server_with_more_requests_is_shared_and_its_tokens_are_not_judged() -> None:
    table = tables(evidence(vllm(requests=25, prompt=9999)))["reconciliation"]
    assert table.title.endswith("(shared server)")
    assert table.notes == (
        f"vllm at {TARGET} answered 25 requests in this time, and this run sent 24: it served others, too",
    )
    rows = compared(vllm(requests=25, prompt=9999))
    assert rows["requests"]["verdict"] == "differs" and rows["prompt_tokens_usage"]["verdict"] is None


def test_requests_that_failed_may_be_counted_by_the_server_or_not() -> None:
    outcome = np.array([0.0] * 20 + [1.0] * 4)
    for known, verdict in ((19, "differs"), (20, "agrees"), (24, "agrees"), (25, "differs")):
        rows = compared((), evidence(vllm(requests=known), outcome=outcome))
        assert rows["requests"]["verdict"] == verdict
        assert rows["prompt_tokens_usage"]["verdict"] is None, "what a failed request cost, nobody knows"


def test_the_short_table_has_the_load_and_at_most_eight_rows() -> None:
    table = tables(evidence(vllm()))["server_load"]
    running, kv, hits = table.rows
    assert running[:7] == ("running", "requests", 3.0, 1.5, 6.0, 3.0, 4.5)
    assert kv[:5] == ("kv_use", "%", 25.0, 12.5, 50.0)
    assert hits[:5] == ("prefix_hits", "%", 25.0, None, None)
    many = [one for n in range(9) for one in (gauge("vllm:num_requests_running", 1.0, target=f"http://h{n}:1/metrics"),)]
    assert len(tables(evidence(many))["server_load"].rows) == 8


def test_series_of_one_family_are_added_and_targets_are_not() -> None:
    page = [counter("vllm:request_success_total", n, engine=str(n)) for n in (10, 14)]
    page += [histogram("vllm:e2e_request_latency_seconds", {"1": n, "2": 12, "+Inf": 12}, 15.0, engine=str(n)) for n in (2, 4)]
    page += [gauge("vllm:num_requests_running", 2.0, engine=str(n)) for n in (0, 1)]
    page.append(counter("vllm:request_success_total", 3, target="http://other:8000/metrics"))
    table = tables(evidence(page))["reconciliation"]
    counts = [(row[-1], row[3]) for row in table.rows if row[0] == "requests"]
    assert counts == [(TARGET, 24), ("http://other:8000/metrics", 3)]
    rows = {row[0]: row for row in table.rows if row[-1] == TARGET}
    assert rows["request_latency_p50"][6:8] == (1000.0, 2000.0), "6 of 24 are at most 1 s"
    assert rows["running"][3] == 4.0 and tables(evidence(page))["server_load"].rows[0][5] is None, "no p50 of two series"


def test_each_url_is_compared_with_its_own_requests() -> None:
    both = [counter("vllm:request_success_total", n, target=f"http://{host}:8000/metrics") for host, n in (("a", 16), ("b", 8))]
    known = evidence(both, url=np.array([0.0] * 16 + [1.0] * 8))
    plan = known.plan.replacing(urls=("http://a:8000", "http://b:8000/v1"))
    rows = tables(replace(known, plan=plan))["reconciliation"].rows
    assert [(row[2], row[4]) for row in rows if row[0] == "requests"] == [(16, "agrees"), (8, "agrees")]


DRAFTS = [
    counter("vllm:spec_decode_num_drafts_total", 100), counter("vllm:spec_decode_num_draft_tokens_total", 300),
    counter("vllm:spec_decode_num_accepted_tokens_total", 150),
]  # fmt: skip


@pytest.mark.parametrize(("expected", "verdict"), [(None, None), (2.5, "agrees"), (2.46, "agrees"), (3.0, "differs")])
def test_an_acceptance_that_is_off_is_said(expected: float | None, verdict: str | None) -> None:
    known = evidence(DRAFTS)
    row = compared((), known, expected_acceptance_length=expected)["acceptance_length"]
    assert (row["server_estimate"], row["client"], row["verdict"]) == (2.5, expected, verdict)
    notes = tables(known, expected_acceptance_length=expected)["reconciliation"].notes
    assert bool(notes) == (verdict == "differs")
    if notes:
        assert "accepted 2.5 tokens a step, and --expected-acceptance-length is 3" in notes[0]


def test_triton_says_means_in_microseconds_and_a_share_of_blocks() -> None:
    rows = compared([
        counter("nv_inference_request_success", 20, model="m"), counter("nv_inference_request_failure", 4, model="m"),
        counter("nv_inference_request_duration_us", 2_400_000, model="m"),
        gauge("nv_trt_llm_kv_cache_block_metrics", 10.0, kv_cache_block_type="used"),
        gauge("nv_trt_llm_kv_cache_block_metrics", 40.0, kv_cache_block_type="max"),
    ])  # fmt: skip
    latency = rows["request_latency_avg"]
    assert latency["server_estimate"] == pytest.approx(120.0) and latency["unit"] == "ms"
    assert rows["requests"]["server_estimate"] == 24 and rows["kv_use"]["server_estimate"] == 25.0


def test_the_last_bucket_has_no_high_edge() -> None:
    known = seen(evidence([histogram("sglang:e2e_request_latency_seconds", {"0.1": 0, "+Inf": 24}, 12.0)]),
                 request_latency={"p50": 500.0, "p99": 900.0})  # fmt: skip
    row = compared((), known)["request_latency_p99"]
    assert (row["server_low"], row["server_high"], row["verdict"]) == (100.0, None, "wider than the bucket")
    assert row["engine"] == "sglang"


def test_older_names_serve_where_the_newer_are_absent() -> None:
    rows = compared([histogram("vllm:time_per_output_token_seconds", {"0.01": 24, "+Inf": 24}, 0.2),
                     gauge("vllm:gpu_cache_usage_perc", 0.5)])  # fmt: skip
    assert "inter_token_latency_p50" in rows and rows["kv_use"]["server_estimate"] == 50.0


def test_pages_of_no_known_engine_are_listed_by_family() -> None:
    rows = tables(evidence([gauge("b", 1.0), counter("a_total", 5), counter("a_total", 7)]))["server_families"].rows
    assert rows == (("a_total", "counter", 2), ("b", "gauge", 1))


def test_two_names_of_one_server_are_one() -> None:
    known = evidence([counter("vllm:request_success_total", 24)], url=np.array([0.0] * 12 + [1.0] * 12))
    plan = known.plan.replacing(urls=("http://localhost:8000", "http://127.0.0.1:8000"))
    (row,) = [row for row in tables(replace(known, plan=plan))["reconciliation"].rows if row[0] == "requests"]
    assert (row[2], row[4]) == (24, "agrees")


@pytest.mark.parametrize(
    ("lacking", "sentence"),
    [
        ({"late": {0: 0.25}}, "its first figures came 0.2 s behind the begin"),
        ({"partial": (0,)}, "it has no figures of the end"),
        ({"unsettled": (0,)}, "its counters still grew when the last figures were taken"),
    ],
)
def test_counts_that_are_not_of_the_whole_phase_are_not_judged(lacking: dict[str, Any], sentence: str) -> None:
    known = evidence(vllm(requests=20))
    (source,) = known.summary.telemetry
    target = TargetSummary(TARGET, 0.333, 10, 0, 0, 10, None, None, None, None, None, None, None, **lacking)
    summary = replace(known.summary, telemetry=(replace(source, targets=(target,)),))
    known = replace(known, summary=summary)
    rows = compared((), known)
    assert rows["requests"]["verdict"] is None and rows["prompt_tokens_usage"]["verdict"] is None
    assert f"the counts of vllm at {TARGET} are not judged: {sentence}" in tables(known)["reconciliation"].notes


def test_counters_that_began_again_are_not_judged() -> None:
    series = [replace(one, stats=one.stats | {"resets": 1.0}) if one.kind == "counter" else one for one in vllm(requests=40)]
    table = tables(evidence(series))["reconciliation"]
    assert table.notes == (f"the counts of vllm at {TARGET} are not judged: its counters began again",)
    assert not table.title.endswith("(shared server)") and "differs" not in {row[4] for row in table.rows}


def test_several_inputs_of_an_embedding_are_no_requests_of_others() -> None:
    series = [counter("vllm:request_success_total", 96), counter("vllm:prompt_tokens_total", 2400)]
    known = evidence(series, output_tokens=np.zeros(24))
    table = tables(known)["reconciliation"]
    verdicts = {row[0]: row[4] for row in table.rows}
    assert table.notes == () and not table.title.endswith("(shared server)")
    assert verdicts["requests"] is None and verdicts["prompt_tokens_usage"] == "agrees"
    asked = known.plan.replacing(several_answers=True)
    assert tables(replace(evidence(series), plan=asked))["reconciliation"].notes == ()


def behind_a_warmup(counted: int, requests: int) -> Evidence:
    """A warmup of ten requests, of which the server had *counted* so many at its end, and the phase with *requests*."""
    before, main = counter("vllm:request_success_total", counted), vllm(requests=requests)
    known = evidence([before, *(replace(one, phase=1) for one in main)])
    (phase,) = known.summary.phases
    warmup = replace(phase, name="warmup", kind="warmup", index=0, valid=10)
    summary = replace(known.summary, phases=(warmup, replace(phase, index=1)))
    return replace(known, summary=summary, phase=replace(known.phase, index=1))


@pytest.mark.parametrize(
    ("counted", "requests", "shared", "note"),
    [
        (9, 25, False, "it counted 1 of the requests of the phase before in this one"),
        (10, 25, True, "and this run sent 24: it served others, too"),
        (9, 26, True, "and this run sent 24: it served others, too"),
    ],
)
def test_requests_of_the_phase_before_are_no_others(counted: int, requests: int, shared: bool, note: str) -> None:
    known = behind_a_warmup(counted, requests)
    table = tables(known)["reconciliation"]
    assert table.title.endswith("(shared server)") is shared and table.notes[0].endswith(note)
    verdicts = {row[0]: row[4] for row in table.rows}
    assert verdicts["requests"] == ("differs" if shared else None) and verdicts["prompt_tokens_usage"] is None


def test_counts_are_not_judged_where_the_phase_before_had_not_settled() -> None:
    known = behind_a_warmup(10, 24)
    (source,) = known.summary.telemetry
    target = TargetSummary(TARGET, 0.333, 10, 0, 0, 10, None, None, None, None, None, None, None, unsettled=(0,))
    known = replace(known, summary=replace(known.summary, telemetry=(replace(source, targets=(target,)),)))
    (note,) = tables(known)["reconciliation"].notes
    assert note.endswith("are not judged: its counters still grew when the phase before had ended")
