"""The server's own times in whole runs, judged by what the simulator said in each answer."""

from __future__ import annotations

from pathlib import Path

import pytest
from aiperf_command_simulate.testing import running
from program import Program

FIELDS = {
    "server_timing_time_to_first_token": "time_to_first_token_ms", "server_timing_generation_time": "generation_time_ms",
    "server_timing_queue_time": "queue_time_ms", "server_timing_mean_itl": "mean_itl_ms",
    "server_timing_tokens_per_second": "tokens_per_second",
}  # fmt: skip


@pytest.mark.parametrize("words", ["--endpoint-type chat --streaming", "--endpoint-type completions"])
def test_the_report_has_the_times_that_the_server_gave(words: str, tmp_path: Path) -> None:
    with running(request_metrics=True, first_token_ms=5, decode_ms=1) as simulator:
        done = Program(tmp_path)(
            "profile", "--model", "m", "--url", simulator.url, "--tokenizer", "builtin", "--isl", 20, "--osl", 14,
            "--request-count", 6, "--ui", "none", *words.split(),
        )  # fmt: skip
        truth = {row["request_id"]: row["timing"] for row in simulator.truth()["requests"]}
    assert done.code == 0, done.err
    assert len(truth) == 6
    lines = done.lines("profile_export.jsonl")
    assert {line["metadata"]["x_request_id"]: line["server_timing"] for line in lines} == truth
    report = done.json()
    for tag, field in FIELDS.items():
        said = [timing[field] for timing in truth.values()]
        assert report[tag]["avg"] == pytest.approx(sum(said) / 6)
        assert report[tag]["max"] == pytest.approx(max(said))
    assert "Server Queue Time (ms)" in (done.artifacts / "profile_export_console.txt").read_text()


def test_a_server_that_gives_no_times_has_no_such_metric(tmp_path: Path) -> None:
    with running(first_token_ms=5, decode_ms=1) as simulator:
        done = Program(tmp_path)(
            "profile", "--model", "m", "--url", simulator.url, "--tokenizer", "builtin", "--isl", 20, "--osl", 4,
            "--request-count", 2, "--ui", "none", "--streaming",
        )  # fmt: skip
    assert done.code == 0, done.err
    assert not FIELDS.keys() & done.json().keys()
    assert all("server_timing" not in line for line in done.lines("profile_export.jsonl"))
