"""``aiperf report --definitions`` on a run of the whole program."""

from __future__ import annotations

import json

import pytest
from aiperf_command_simulate.testing import running
from program import Program


def test_a_run_is_read_as_each_tool_would_and_its_files_stay(aiperf: Program) -> None:
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
    assert own["ttft_ms"]["mean"] == pytest.approx(before["time_to_first_token"]["avg"])
    assert own["itl_ms"]["mean"] == pytest.approx(before["inter_token_latency"]["avg"])
    assert own["requests_per_s"] == pytest.approx(before["request_throughput"]["avg"])
    assert own["output_tokens_per_s"] == pytest.approx(before["output_token_throughput"]["avg"])
    assert tools["guidellm"]["tpot_ms"]["mean"] > own["itl_ms"]["mean"]  # with the time to the first token in it
    assert done.json() == before
