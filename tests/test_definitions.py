"""``aiperf report --definitions`` on a run of the whole program."""

from __future__ import annotations

import json

import pytest
from aiperf_command_simulate.testing import running
from program import Program


@pytest.mark.timing  # merged reads make other gaps of the same events
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
    assert sorted(tools) == ["aiperf", "genai_perf", "guidellm", "vllm", "vllm_output", "vllm_until_0_32"]
    own = tools["aiperf"]
    for field, tag in (("ttft_ms", "time_to_first_token"), ("itl_ms", "inter_token_latency")):
        for mine, theirs in (("mean", "avg"), ("p50", "p50"), ("p99", "p99")):
            assert own[field][mine] == pytest.approx(before[tag][theirs])
    assert own["requests_per_s"] == pytest.approx(before["request_throughput"]["avg"])
    assert own["output_tokens_per_s"] == pytest.approx(before["output_token_throughput"]["avg"])
    # The role comes with the first token, and the last token with why it is the last: 9 gaps, and one of 0 that only earlier
    # versions of vLLM have.
    for name, gaps in (("vllm", 9), ("vllm_output", 9), ("vllm_until_0_32", 10)):
        assert tools[name]["ttft_ms"] == own["ttft_ms"]
        assert tools[name]["tpot_ms"]["mean"] == pytest.approx(own["tpot_ms"]["mean"])
        assert tools[name]["itl_ms"]["mean"] == pytest.approx(own["itl_ms"]["mean"] * 9 / gaps)
    assert [tools[name]["version"] for name in ("vllm", "vllm_until_0_32")] == ["0.33.0", "up to 0.32.0"]
    assert tools["guidellm"]["tpot_ms"]["mean"] > own["itl_ms"]["mean"]  # with the time to the first token in it
    assert done.json() == before


def test_vllm_takes_reasoning_by_the_name_of_its_field(aiperf: Program) -> None:
    """The simulator streams ``reasoning_content``, which vLLM 0.33.0 does not count: its TTFT is that of the output."""
    with running(first_token_ms=10, decode_ms=10, decode_batch_us=0, reasoning_tokens=4) as server:
        done = aiperf(
            "profile", "--model", "sim", "--url", server.url, "--tokenizer", "builtin", "--isl", "20", "--osl", "8",
            "--streaming", "--concurrency", "1", "--request-count", "6", "--ui", "none",
        )  # fmt: skip
        assert done.code == 0, done.err
    tools = json.loads(aiperf("report", done.artifacts, "--definitions", "--json").out)
    summary = done.json()
    assert tools["vllm"]["ttft_ms"]["p50"] == pytest.approx(summary["time_to_first_token"]["p50"])
    assert tools["vllm_output"]["ttft_ms"]["p50"] == pytest.approx(summary["time_to_first_output_token"]["p50"])
    assert tools["vllm_output"]["ttft_ms"]["p50"] > tools["vllm"]["ttft_ms"]["p50"]
