"""Somebody else inside the engine, and an engine that is slow for a while: what the pages and the truth say of them."""

from __future__ import annotations

import json
import time
import urllib.request

import pytest
from aiperf.sdk.errors import ConfigErrors
from aiperf_command_simulate.options import SimulateOptions
from aiperf_command_simulate.scenario import scenario
from aiperf_command_simulate.testing import running
from prometheus_client.parser import text_string_to_metric_families


def page_of(simulator, path):
    """The samples of a page, by name without labels; of several the last."""
    text = urllib.request.urlopen(simulator.url + path, timeout=60).read().decode()
    return {sample.name: sample.value for family in text_string_to_metric_families(text) for sample in family.samples}


def wait(condition):
    limit = time.monotonic() + 60
    while not (found := condition()):
        assert time.monotonic() < limit
        time.sleep(0.02)
    return found


def tenant_of(simulator):
    return simulator.summary()["engine"]["tenant"]


def test_a_tenant_is_on_the_page_and_no_request_of_the_truth():
    with running(tenant_rate=200, decode_ms=0.1, decode_batch_us=0, prefill_us_per_token=0.1, tokens=4) as simulator:
        wait(lambda: tenant_of(simulator)["completed"] >= 20)
        body = json.dumps({"model": "m", "messages": [{"role": "user", "content": "hello"}], "max_tokens": 3}).encode()
        asked = urllib.request.Request(simulator.url + "/v1/chat/completions", body, {"Content-Type": "application/json"})
        urllib.request.urlopen(asked, timeout=60).read()
        before, page, after = tenant_of(simulator), page_of(simulator, "/metrics"), tenant_of(simulator)
        truth = simulator.truth()
    assert len(truth["requests"]) == truth["summary"]["requests"] == 1
    for tenants, ours, family in (
        ("completed", 1, "vllm:e2e_request_latency_seconds_count"),
        ("completion_tokens", 3, "vllm:generation_tokens_total"),
        ("prompt_tokens", truth["requests"][0]["prompt_tokens"], "vllm:prompt_tokens_total"),
    ):
        assert before[tenants] <= page[family] - ours <= after[tenants], family
    assert page["vllm:kv_cache_usage_perc"] > 0


def test_a_tenant_makes_requests_wait():
    with running(tenant_rate=2000, max_running=1, max_queue=5, decode_ms=1, tokens=8) as simulator:
        told = wait(lambda: (tenant := tenant_of(simulator))["refused"] and tenant["completed"] and tenant)
        assert simulator.summary()["engine"]["waiting_max"] == 5
    assert told["requests"] == told["completed"] + told["refused"] + told["in_flight"]


def test_clocks_are_lower_while_the_engine_is_slow():
    with running(gpus=1, slow_for_s=3600, slow_by=1.25) as simulator:
        page, slow = page_of(simulator, "/dcgm/metrics"), simulator.summary()["engine"]["slow"]
        later = wait(lambda: (p := page_of(simulator, "/dcgm/metrics")) != page and p)
    assert page["DCGM_FI_DEV_SM_CLOCK"] == 1980 / 1.25
    assert int(page["DCGM_FI_DEV_CLOCKS_EVENT_REASONS"]) & 4
    assert later["DCGM_FI_DEV_POWER_VIOLATION_total"] > page["DCGM_FI_DEV_POWER_VIOLATION_total"] > 0
    assert (slow["by"], slow["until_mono_ns"] - slow["from_mono_ns"]) == (1.25, 3600 * 10**9)
    with running(gpus=1, slow_from_s=3600, slow_for_s=1, slow_by=1.25) as simulator:
        page = page_of(simulator, "/dcgm/metrics")
    assert page["DCGM_FI_DEV_SM_CLOCK"] == 1980
    assert page["DCGM_FI_DEV_POWER_VIOLATION_total"] == 0


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"slow_from_s": 3}, "--slow-from needs --slow-for and --slow-by"),
        ({"slow_by": 2}, "--slow-by needs --slow-for"),
        ({"slow_from_s": 3, "slow_for_s": 2}, "--slow-from and --slow-for need --slow-by"),
    ],
)
def test_a_slow_engine_needs_duration_and_factor(given, said):
    with pytest.raises(ConfigErrors) as caught:
        scenario(SimulateOptions(**given))
    assert said in str(caught.value)
