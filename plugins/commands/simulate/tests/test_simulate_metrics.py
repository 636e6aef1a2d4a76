"""The pages of metrics say what the truth says."""

from __future__ import annotations

import http.client
import json
from urllib.parse import urlsplit

import pytest
from aiperf_command_simulate.meters import Meters
from aiperf_command_simulate.testing import running
from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics_families
from prometheus_client.parser import text_string_to_metric_families

FAST = {"decode_ms": 1, "decode_batch_us": 0, "prefill_us_per_token": 1, "spec_decode": "3:0.7", "first_token_ms": 5}

PREFIXES = {"vllm": "vllm:", "sglang": "sglang:", "trtllm": "trtllm_", "dynamo": "dynamo_frontend_", "triton": "nv_"}
LATENCIES = {
    "vllm": ("time_to_first_token_seconds", "inter_token_latency_seconds", "request_time_per_output_token_seconds",
             "e2e_request_latency_seconds", "request_queue_time_seconds", "request_prefill_time_seconds",
             "request_decode_time_seconds"),
    "sglang": ("time_to_first_token_seconds", "inter_token_latency_seconds", "e2e_request_latency_seconds",
               "queue_time_seconds"),
    "trtllm": ("time_to_first_token_seconds", "time_per_output_token_seconds", "e2e_request_latency_seconds",
               "request_queue_time_seconds", "request_prefill_time_seconds", "request_decode_time_seconds"),
    "dynamo": ("time_to_first_token_seconds", "inter_token_latency_seconds", "request_duration_seconds"),
    "triton": ("inference_first_response_histogram_ms",),
}  # fmt: skip
LEVELS = {
    "vllm": ("num_requests_running", "num_requests_waiting", "kv_cache_usage_perc"),
    "sglang": ("num_running_reqs", "num_queue_reqs", "token_usage", "cache_hit_rate",
               "spec_accept_length", "spec_accept_rate"),
    "trtllm": ("num_requests_running", "num_requests_waiting", "kv_cache_utilization",
               "kv_cache_hit_rate", "num_paused_requests", "spec_decode_acceptance_length"),
    "dynamo": ("inflight_requests", "queued_requests"),
    "triton": ("inference_pending_request_count", "trt_llm_kv_cache_block_metrics"),
}  # fmt: skip
COUNTS = {
    "vllm": {"prompt_tokens": "prompt_tokens", "generation_tokens": "completion_tokens",
             "request_success": "completed", "prefix_cache_queries": "prompt_tokens",
             "prefix_cache_hits": "cached_tokens", "num_preemptions": "none",
             "spec_decode_num_drafts": "steps", "spec_decode_num_draft_tokens": "drafted",
             "spec_decode_num_accepted_tokens": "accepted", "spec_decode_num_accepted_tokens_per_pos": "accepted"},
    "sglang": {"prompt_tokens": "prompt_tokens", "generation_tokens": "completion_tokens",
               "cached_tokens": "cached_tokens", "num_requests": "completed",
               "num_retracted_requests": "none"},
    "trtllm": {"prompt_tokens": "prompt_tokens", "generation_tokens": "completion_tokens",
               "request_success": "completed", "kv_cache_reused_blocks": "reused",
               "kv_cache_missed_blocks": "missed", "spec_decode_num_draft_tokens": "drafted",
               "spec_decode_num_accepted_tokens": "accepted"},
    "dynamo": {"output_tokens": "completion_tokens", "requests": "requests",
               "model_migration": "none"},
    "triton": {"inference_request_success": "completed", "inference_request_failure": "failed"},
}  # fmt: skip
SUMS = {"dynamo": {"input_sequence_tokens": "prompt_tokens", "cached_tokens": "cached_tokens"}}


def ask(simulator, path, body=None, **headers):
    url = urlsplit(simulator.url)
    connection = http.client.HTTPConnection(url.hostname, url.port, timeout=60)
    try:
        connection.request("GET" if body is None else "POST", path, None if body is None else json.dumps(body), headers)
        answer = connection.getresponse()
        return answer.status, answer.headers["Content-Type"], answer.read().decode()
    finally:
        connection.close()


def chat(words, **fields):
    return {"model": "m", "messages": [{"role": "user", "content": words}], "max_tokens": 6, **fields}


def path_of(engine):
    return "/prometheus/metrics" if engine == "trtllm" else "/metrics"


def families(text, parse=text_string_to_metric_families):
    return {family.name: family for family in parse(text)}


def counted(family):
    return sum(s.value for s in family.samples if s.name in (family.name, f"{family.name}_total", f"{family.name}_count"))


def truth_of(simulator):
    rows = simulator.truth()["requests"]
    done = [row for row in rows if row["outcome"] == "completed"]
    truth = {name: sum(row[name] for row in done) for name in ("prompt_tokens", "cached_tokens", "completion_tokens")}
    drafts = [row["drafts"] for row in done]
    reused = sum(row["cached_tokens"] // 16 for row in done)
    return truth | {
        "requests": len(rows), "completed": len(done), "failed": len(rows) - len(done), "none": 0,
        "reused": reused, "missed": sum(-(-row["prompt_tokens"] // 16) for row in done) - reused,
        "steps": sum(d["num_spec_steps"] for d in drafts), "drafted": sum(d["num_draft_tokens"] for d in drafts),
        "accepted": sum(d["num_accepted_draft_tokens"] for d in drafts),
    }  # fmt: skip


@pytest.mark.parametrize("engine", COUNTS)
def test_a_page_agrees_with_the_truth(engine):
    with running(**FAST, metrics=engine) as simulator:
        for words in ("one two three " * 20, "one two three " * 20, "four"):
            ask(simulator, "/v1/chat/completions", chat(words, stream=True))
        ask(simulator, "/v1/chat/completions", chat("five"))
        assert ask(simulator, "/v1/chat/completions", chat("six"), **{"X-Simulate": "fail=500"})[0] == 500
        truth = truth_of(simulator)
        _, kind, text = ask(simulator, path_of(engine))
        wanted = "application/openmetrics-text; version=1.0.0, */*;q=0.1"
        _, open_kind, open_text = ask(simulator, path_of(engine), Accept=wanted)
    assert truth["completed"] == 4
    assert truth["cached_tokens"] > 0
    assert kind.startswith("text/plain")
    assert open_kind.startswith("application/openmetrics-text")
    for whole in (families(text), families(open_text, openmetrics_families)):
        page = {name.removeprefix(PREFIXES[engine]): family for name, family in whole.items()}
        for name, of in COUNTS[engine].items():
            assert (name, page[name].type, counted(page[name])) == (name, "counter", truth[of])
        assert all(page[name].type == "histogram" and counted(page[name]) >= 4 for name in LATENCIES[engine])
        assert all(page[name].type == "gauge" for name in LEVELS[engine])
        for name, of in SUMS.get(engine, {}).items():
            assert sum(s.value for s in page[name].samples if s.name.endswith("_sum")) == truth[of]


def test_tensorrt_llm_has_json_where_others_have_their_page():
    with running(**FAST, metrics="trtllm") as simulator:
        status, kind, text = ask(simulator, "/metrics")
    assert (status, kind) == (200, "application/json")
    assert json.loads(text)[0]["numActiveRequests"] == 0


def test_counts_appear_late():
    now = [0]
    meters = Meters(1.5, lambda: now[0])
    meters.count("completed")
    meters.observe("latency", 5)
    seen = []
    for now[0] in (0, 1_499_999_999, 1_500_000_000):
        meters.settle()
        seen.append((meters.counts["completed"], meters.histograms["latency"].total))
    assert seen == [(0, 0), (0, 0), (1, 5)]


def test_a_lagging_page_still_has_the_old_counts():
    with running(**FAST, metrics_lag_s=3600) as simulator:
        ask(simulator, "/v1/chat/completions", chat("one", stream=True))
        page = families(ask(simulator, "/metrics")[2])
        assert simulator.summary()["outcomes"] == {"completed": 1}
    assert counted(page["vllm:request_success"]) == counted(page["vllm:time_to_first_token_seconds"]) == 0
