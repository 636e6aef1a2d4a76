"""SGLang's page, as with ``--enable-metrics``."""

from __future__ import annotations

from collections.abc import Iterator

from aiperf_command_simulate.engines import EnginePage, EngineState, ModelState, Writer, acceptance_length
from aiperf_command_simulate.families import Family


def families(state: EngineState) -> Iterator[Family]:
    page = Writer("sglang:", state, lambda model: {"engine_type": "unified", "model_name": model.name, "tp_rank": "0"})
    yield page.gauge("num_running_reqs", "The number of running requests.", lambda m: m.running)
    yield page.gauge("num_queue_reqs", "The number of requests in the waiting queue.", lambda m: m.waiting)
    yield page.gauge("token_usage", "The token usage.", lambda m: state.cache_usage)
    yield page.gauge("cache_hit_rate", "The prefix cache hit rate.", lambda m: m.meters.hit_rate if m.running else 0.0)
    yield page.gauge("num_retracted_reqs", "Requests retracted in the last step.", lambda m: 0)
    yield page.counter("num_retracted_requests", "Requests that were retracted.", lambda m: 0)
    yield page.count("num_requests", "Number of requests processed.", "completed")
    yield page.count("prompt_tokens", "Number of prefill tokens processed.", "prompt_tokens")
    yield page.count("generation_tokens", "Number of generation tokens processed.", "generated")
    yield page.count("cached_tokens", "Number of cached prompt tokens.", "cached_tokens", cache_source="device")
    for name, help, meter in (
        ("time_to_first_token_seconds", "Histogram of time to first token in seconds.", "first_token"),
        ("inter_token_latency_seconds", "Histogram of inter-token latency in seconds.", "between_tokens"),
        ("e2e_request_latency_seconds", "Histogram of End-to-end request latency in seconds", "latency"),
        ("queue_time_seconds", "Histogram of queueing time in seconds.", "queued"),
    ):
        yield page.histogram(name, help, meter)
    if state.drafts:
        yield page.gauge("spec_accept_length", "The average acceptance length of speculative decoding.", acceptance_length)
        yield page.gauge("spec_accept_rate", "The average acceptance rate of speculative decoding.", _rate)


def _rate(model: ModelState) -> float:
    counts = model.meters.counts
    offered = counts["num_draft_tokens"]
    return counts["num_accepted_draft_tokens"] / offered if offered else 0.0


PAGE = EnginePage(families)
