"""vLLM's page."""

from __future__ import annotations

from collections.abc import Iterator

from aiperf_command_simulate.engines import EnginePage, EngineState, Writer, ends
from aiperf_command_simulate.families import Family, Labelled


def families(state: EngineState) -> Iterator[Family]:
    page = Writer("vllm:", state, lambda model: {"engine": "0", "model_name": model.name})
    config = {"block_size": str(state.block_size), "num_gpu_blocks": str(state.blocks)}
    yield Family("vllm:cache_config_info", "gauge", "Settings of the cache.", (Labelled(config, 1.0),))
    yield page.gauge("num_requests_running", "Sequences being computed.", lambda m: m.running)
    yield page.gauge("num_requests_waiting", "Sequences in the queue.", lambda m: m.waiting)
    yield page.gauge("kv_cache_usage_perc", "Share of blocks in use. 1 means 100 percent.", lambda m: state.cache_usage)
    yield page.counter("num_preemptions", "Sequences that were preempted.", lambda m: 0)
    yield page.count("prompt_tokens", "Prompt tokens of requests that were admitted.", "prompt_tokens")
    yield page.count("generation_tokens", "Tokens made.", "generated")
    yield page.count("prefix_cache_queries", "Prompt tokens looked up in the prefix cache.", "prompt_tokens")
    yield page.count("prefix_cache_hits", "Prompt tokens found there.", "cached_tokens")
    yield page.counter("external_prefix_cache_queries", "Prompt tokens looked up in other servers' caches.", lambda m: 0)
    yield page.counter("external_prefix_cache_hits", "Prompt tokens found there.", lambda m: 0)
    yield page.split("request_success", "counter", "Requests that ended, by reason.", "finished_reason", ends)
    for name, help, meter in (
        ("time_to_first_token_seconds", "From receiving to the first token.", "first_token"),
        ("inter_token_latency_seconds", "Between neighbouring chunks.", "between_tokens"),
        ("request_time_per_output_token_seconds", "Mean time of a request's tokens after the first.", "per_token"),
        ("e2e_request_latency_seconds", "From receiving to the last token.", "latency"),
        ("request_queue_time_seconds", "From receiving to leaving the queue.", "queued"),
        ("request_prefill_time_seconds", "From leaving the queue to the first token.", "prefill"),
        ("request_decode_time_seconds", "From the first token to the last.", "decode"),
    ):
        yield page.histogram(name, help, meter)
    if state.drafts:
        yield page.count("spec_decode_num_drafts", "Drafts that were verified.", "num_spec_steps")
        yield page.count("spec_decode_num_draft_tokens", "Tokens of drafts.", "num_draft_tokens")
        yield page.count("spec_decode_num_accepted_tokens", "Accepted ones.", "num_accepted_draft_tokens")
        yield page.split(
            "spec_decode_num_accepted_tokens_per_pos", "counter", "Accepted ones by position in the draft.", "position",
            lambda m: {str(position): count for position, count in sorted(m.meters.positions.items())},
        )  # fmt: skip


PAGE = EnginePage(families)
