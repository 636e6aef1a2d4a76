"""``aiperf report --definitions`` on a run of the whole program."""

from __future__ import annotations

import json

import pytest
from aiperf_command_simulate.testing import running
from program import Program


def test_every_definition_reads_a_run_and_keeps_its_files(aiperf: Program) -> None:
    with running(first_token_ms=20, decode_ms=4) as server:
        done = aiperf(
            "profile", "--model", "sim", "--url", server.url, "--tokenizer", "builtin", "--isl", "20", "--osl", "10",
            "--streaming", "--concurrency", "2", "--request-count", "10", "--random-seed", "5", "--ui", "none",
        )  # fmt: skip
        assert done.code == 0, done.err
    before = done.json()
    shown = aiperf("report", done.artifacts, "--definitions")
    assert shown.code == 0, shown.err
    assert all(title in shown.out for title in ("vLLM bench serve", "GuideLLM", "genai-perf", "aiperf"))
    tools = json.loads(aiperf("report", done.artifacts, "--definitions", "--json").out)
    assert sorted(tools) == ["aiperf", "genai_perf", "guidellm", "vllm"]
    own = tools["aiperf"]
    for field, tag in (("ttft_ms", "time_to_first_token"), ("itl_ms", "inter_token_latency")):
        for mine, theirs in (("mean", "avg"), ("p50", "p50"), ("p99", "p99")):
            assert own[field][mine] == pytest.approx(before[tag][theirs])
    assert own["requests_per_s"] == pytest.approx(before["request_throughput"]["avg"])
    assert own["output_tokens_per_s"] == pytest.approx(before["output_token_throughput"]["avg"])
    # The role comes with the first token, and the last token with why it is the last: 9 gaps, and one of 0 that only vLLM has.
    assert tools["vllm"]["ttft_ms"] == own["ttft_ms"]
    assert tools["vllm"]["tpot_ms"]["mean"] == pytest.approx(own["tpot_ms"]["mean"])
    assert tools["vllm"]["itl_ms"]["mean"] == pytest.approx(own["itl_ms"]["mean"] * 9 / 10)
    assert tools["guidellm"]["tpot_ms"]["mean"] > own["itl_ms"]["mean"]  # with the time to the first token in it
    assert done.json() == before
