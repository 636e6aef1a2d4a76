"""Each endpoint type against real servers: requests, usage and tokens of the report are the server's own (`make test-real`)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml
from program import Program
from servers import LLAMACPP, MODELS, TRANSFORMERS, VLLM, Server, UnavailableError, fetch, running

REQUESTS = 4
ROOT = Path(__file__).resolve().parent.parent.parent
TITLES = {
    "llamacpp": f"llama.cpp b{LLAMACPP}", "vllm": f"vLLM {VLLM.rpartition('.')[0]}",
    "transformers": f"transformers serve {TRANSFORMERS.rpartition('.')[0]}",
}  # fmt: skip


class Row(NamedTuple):
    """words: of the command line.  prompts: tokens of the input are counted here as the server does."""

    server: tuple[str, str]
    kind: str
    words: str
    prompts: bool = False


TEXT = "--isl 12 --osl 8 --extra-inputs ignore_eos:true --extra-inputs temperature:0"
CHAT = f"--apply-chat-template {TEXT.replace('12', '30')}"
RANK = "--rankings-passages-mean 3 --rankings-passages-prompt-token-mean 9 --rankings-query-prompt-token-mean 5"
BATCH = "--isl 12 --batch-size-text 3"
RUNS = [
    Row(("llamacpp", "generate"), "chat", f"--streaming {CHAT}", prompts=True),
    Row(("llamacpp", "generate"), "chat", f"--session-turns-mean 2 {CHAT}", prompts=True),
    Row(("llamacpp", "generate"), "completions", f"--streaming {TEXT}", prompts=True),
    Row(("llamacpp", "generate"), "messages", f"--streaming {CHAT}", prompts=True),
    Row(("llamacpp", "generate"), "responses", f"--streaming {CHAT}", prompts=True),
    Row(("llamacpp", "embed"), "embeddings", BATCH),
    Row(("llamacpp", "rank"), "cohere_rankings", f"--endpoint /v1/rerank {RANK}"),
    Row(("llamacpp", "rank"), "hf_tei_rankings", RANK),
    Row(("vllm", "generate"), "chat", f"--streaming {CHAT}", prompts=True),
    Row(("vllm", "generate"), "completions", f"--streaming {TEXT}", prompts=True),
    Row(("vllm", "generate"), "messages", f"--streaming {CHAT}", prompts=True),
    Row(("vllm", "generate"), "responses", f"--streaming {CHAT}", prompts=True),
    Row(("vllm", "embed"), "embeddings", BATCH),
    Row(("vllm", "rank"), "cohere_rankings", RANK),
    Row(("vllm", "rank"), "score", RANK),
    Row(("vllm", "rank"), "classify", BATCH),
    Row(("transformers", "generate"), "chat", "--streaming --apply-chat-template --isl 30 --osl 8", prompts=True),
    Row(("transformers", "generate"), "completions", "--isl 12 --osl 8", prompts=True),
    Row(("transformers", "generate"), "responses", "--streaming --apply-chat-template --isl 30 --osl 8", prompts=True),
]
COUNTERS = {
    "llamacpp": (("llamacpp:prompt_tokens_total", "llamacpp:prompt_tokens_cached_total"), "llamacpp:tokens_predicted_total"),
    "vllm": (("vllm:prompt_tokens_total",), "vllm:generation_tokens_total"),
}
"""Of each server's counters: prompt tokens, which add up, and made tokens."""


@pytest.fixture(scope="module")
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    """A running server; its tests stand together, and the next one starts when it has ended.

    *request.param*: its recipe, and which model it serves.
    """
    name, kind = request.param
    context = running(name, kind)
    try:
        started = context.__enter__()
    except UnavailableError as reason:
        pytest.skip(f"{name}, {kind}: {reason}")
    try:
        yield started
    finally:
        context.__exit__(None, None, None)


@pytest.mark.parametrize(
    ("server", "row"), [pytest.param(row.server, row, id=f"{'-'.join(row.server)}-{row.kind}") for row in RUNS],
    indirect=["server"],
)  # fmt: skip
def test_the_report_has_the_servers_own_counts(server: Server, row: Row, tmp_path: Path) -> None:
    name, kind = row.server
    model = str(MODELS / "tiny-llama") if name == "transformers" else "minilm" if kind == "embed" else \
        "minilm-rank" if kind == "rank" else "tiny-llama"  # fmt: skip
    tokenizer = MODELS / ("tiny-llama" if kind == "generate" else "minilm-rank")
    before, said = server.counters() if name in COUNTERS else {}, len(server.log)
    done = Program(tmp_path)(
        "profile", "--model", model, "--url", server.url, "--endpoint-type", row.kind, "--tokenizer", tokenizer,
        "--num-conversations", REQUESTS, "--concurrency", 2, "--random-seed", 5, "--request-timeout-seconds", 120,
        "--export-level", "raw", "--ui", "none", *row.words.split(),
    )  # fmt: skip
    assert done.code == 0, done.err
    report = done.json()
    requests = REQUESTS * (2 if "turns" in row.words else 1)
    assert (report["request_count"]["avg"], "error_request_count" in report) == (requests, False), report.get("error_summary")
    if name in COUNTERS:
        judged_by_counters(report, row, before, server.counters())
    else:
        judged_by_the_log(server.log[said:], requests)
        judged_by_asking_again(server, done.lines("profile_export_raw.jsonl"), done.lines("profile_export.jsonl"))
    if name == "vllm" and row.kind in ("chat", "completions"):
        waits = [line["server_timing"]["time_to_first_token_ms"] for line in done.lines("profile_export.jsonl")]
        assert 0 < min(waits) <= max(waits) < report["time_to_first_token"]["max"]
    if row.prompts:
        assert report["total_isl"]["avg"] == report["total_usage_prompt_tokens"]["avg"]
    assert TITLES[name] in " ".join(tried_on(row.kind)), f"docs.servers of {row.kind} lacks {TITLES[name]}"


def judged_by_counters(report: Mapping[str, Any], row: Row, before: Mapping[str, float], after: Mapping[str, float]) -> None:
    """The usage of the report is what the server's counters say of it."""
    name, kind = row.server
    prompts, made = COUNTERS[name]
    said = sum(after.get(each, 0.0) - before.get(each, 0.0) for each in prompts)
    if "total_usage_prompt_tokens" in report:
        assert report["total_usage_prompt_tokens"]["avg"] == said
    if kind == "generate":
        assert report["total_usage_completion_tokens"]["avg"] == after[made] - before.get(made, 0.0)
        assert report["usage_completion_tokens"]["max"] == 8


def judged_by_the_log(said: str, requests: int) -> None:
    """The server's log has each request."""
    assert len(re.findall(r'"POST /v1/\S+ HTTP/1.1" 200', said)) == requests


def judged_by_asking_again(server: Server, raw: list[dict[str, Any]], records: list[dict[str, Any]]) -> None:
    """The same request, sent by hand, has the prompt tokens of the record."""
    body = {**raw[0]["payload"], "stream": False}
    body.pop("stream_options", None)
    place = "responses" if "input" in body else "chat/completions" if "messages" in body else "completions"
    usage = json.loads(fetch(f"{server.url}/v1/{place}", json.dumps(body).encode()))["usage"]
    said = usage.get("prompt_tokens", usage.get("input_tokens"))
    assert records[0]["metrics"]["usage_prompt_tokens"]["value"] == said


def tried_on(kind: str) -> list[str]:
    """The servers that the README of its package names for a type."""
    manifest = ROOT / "plugins" / "endpoints" / kind / "src" / f"aiperf_endpoint_{kind}" / "aiperf.yaml"
    servers: list[str] = yaml.safe_load(manifest.read_text())["plugins"][0]["docs"].get("servers", [])
    return servers
