"""Each endpoint type in a whole run against the simulator: the report and the server's own account agree.

A package adds its row; types are in alphabetical order.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import pytest
from aiperf_command_simulate.testing import Simulator
from program import Program

REQUESTS = 4


class Row(NamedTuple):
    """words: of the command line, behind those of all rows.  paths: those that the server was asked for.

    tokens: of each answer, None for a type without output tokens.  present, absent: metrics of the report.
    """

    words: str
    paths: tuple[str, ...]
    tokens: int | None = None
    present: tuple[str, ...] = ()
    absent: tuple[str, ...] = ()


TYPES = {
    "chat": Row("--streaming --osl 6", ("/v1/chat/completions",), 6, present=("time_to_first_token",)),
    "completions": Row("--osl 6", ("/v1/completions",), 6, absent=("time_to_first_token",)),
    "generate": Row("--streaming --osl 6", ("/v2/models/m/generate_stream",), 6, present=("time_to_first_token",)),
    "huggingface_generate": Row(
        "--streaming --osl 6", ("/generate_stream",), 6, present=("time_to_first_token", "usage_prompt_tokens"),
    ),
    "messages": Row("--streaming --osl 6", ("/v1/messages",), 6, present=("time_to_first_token",)),
    "ollama": Row(
        "--streaming --osl 6 --extra-inputs num_ctx:10", ("/api/chat",), 6,
        present=("time_to_first_token", "server_timing_load_duration", "truncated_prompt_count"),
    ),
    "responses": Row("--streaming --osl 6", ("/v1/responses",), 6, present=("time_to_first_token",)),
    "sglang_generate": Row("--streaming --osl 6", ("/generate",), 6, present=("time_to_first_token", "usage_prompt_tokens")),
    "solido_rag": Row("--streaming", ("/rag/api/prompt",), 64, present=("time_to_first_token", "source_count")),
}  # fmt: skip


@pytest.mark.parametrize("name", TYPES)
def test_a_run_of_this_type_agrees_with_the_server(name: str, tmp_path: Path, simulator: Simulator) -> None:
    row = TYPES[name]
    done = Program(tmp_path)(
        "profile", "--model", "m", "--url", simulator.url, "--endpoint-type", name, "--tokenizer", "builtin", "--isl", 20,
        "--request-count", REQUESTS, "--concurrency", 2, "--ui", "none", *row.words.split(),
    )  # fmt: skip
    assert done.code == 0, done.err
    report: dict[str, Any] = done.json()
    truth = simulator.truth()["requests"]
    assert report["request_count"]["avg"] == len(truth) == REQUESTS
    assert {request["path"] for request in truth} == set(row.paths)
    assert {(request["status"], request["outcome"]) for request in truth} == {(200, "completed")}
    made = sum(request["completion_tokens"] for request in truth)
    if row.tokens is None:
        assert made == 0
        row = row._replace(absent=(*row.absent, "output_sequence_length", "time_to_first_token", "inter_token_latency"))
    else:
        assert (made, report["total_osl"]["avg"]) == (row.tokens * REQUESTS, row.tokens * REQUESTS)
    assert [metric for metric in row.present if metric not in report] == []
    assert [metric for metric in row.absent if metric in report] == []
