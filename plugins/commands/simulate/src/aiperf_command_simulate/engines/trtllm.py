"""TensorRT-LLM's page at ``/prometheus/metrics``; its ``/metrics`` has statistics of iterations, in JSON."""

from __future__ import annotations

from collections.abc import Iterator

from aiperf_command_simulate.engines import EnginePage, EngineState, ModelState, Writer, acceptance_length, ends
from aiperf_command_simulate.families import Family


def families(state: EngineState) -> Iterator[Family]:
    page = Writer("trtllm_", state, lambda model: {"engine_type": "trtllm", "model_name": model.name})
    yield page.gauge("num_requests_running", "Number of active requests.", lambda m: m.running)
    yield page.gauge("num_requests_waiting", "Number of queued requests.", lambda m: m.waiting)
    yield page.gauge("num_paused_requests", "Number of paused requests.", lambda m: 0)
    yield page.gauge("kv_cache_utilization", "KV cache utilization", lambda m: state.cache_usage)
    yield page.gauge("kv_cache_hit_rate", "KV cache hit rate", _hit_rate)
    yield page.count("kv_cache_reused_blocks", "Blocks that were reused.", "reused_blocks")
    yield page.count("kv_cache_missed_blocks", "Blocks that were computed.", "missed_blocks")
    yield page.count("prompt_tokens", "Number of prompt tokens.", "prompt_tokens")
    yield page.count("generation_tokens", "Number of generated tokens.", "generated")
    yield page.split(
        "request_success", "counter", "Count of successfully processed requests.", "finished_reason", ends
    )
    for name, help, meter in (
        ("time_to_first_token_seconds", "Histogram of time to first token in seconds.", "first_token"),
        ("time_per_output_token_seconds", "Histogram of time per output token in seconds.", "per_token"),
        ("e2e_request_latency_seconds", "Histogram of end to end request latency in seconds.", "latency"),
        ("request_queue_time_seconds", "Histogram of time spent in WAITING phase for request.", "queued"),
        ("request_prefill_time_seconds", "Histogram of time spent in the prefill phase.", "prefill"),
        ("request_decode_time_seconds", "Histogram of time spent in the decode phase.", "decode"),
    ):
        yield page.histogram(name, help, meter)
    if state.drafts:
        yield page.count("spec_decode_num_draft_tokens", "Tokens of drafts.", "num_draft_tokens")
        yield page.count("spec_decode_num_accepted_tokens", "Accepted ones.", "num_accepted_draft_tokens")
        yield page.gauge("spec_decode_acceptance_length", "Mean accepted length.", acceptance_length)


def iterations(state: EngineState) -> list[dict[str, float]]:
    """``/metrics``: here of the present moment alone."""
    used = state.cache_usage
    return [
        {"iter": 0, "numActiveRequests": model.running, "numQueuedRequests": model.waiting, "kvCacheUtilization": used}
        for model in state.models
    ]


def _hit_rate(model: ModelState) -> float:
    reused, missed = model.meters.counts["reused_blocks"], model.meters.counts["missed_blocks"]
    return reused / (reused + missed) if reused + missed else 0.0


PAGE = EnginePage(families, "/prometheus/metrics", iterations)
