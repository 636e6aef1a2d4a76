"""The page of Dynamo's frontend."""

from __future__ import annotations

from collections.abc import Iterator

from aiperf_command_simulate.engines import EnginePage, EngineState, Writer
from aiperf_command_simulate.families import Family


def families(state: EngineState) -> Iterator[Family]:
    page = Writer("dynamo_frontend_", state, lambda model: {"model": model.name})
    yield page.gauge("inflight_requests", "Number of inflight requests", lambda m: m.running + m.waiting)
    yield page.gauge("queued_requests", "Number of requests waiting for their first token", lambda m: m.waiting)
    yield page.split(
        "requests", "counter", "Total number of LLM requests processed", "status",
        lambda m: {"success": m.meters.counts["completed"], "error": m.meters.counts["failed"]},
    )  # fmt: skip
    yield page.count("output_tokens", "Total number of output tokens generated", "generated")
    yield page.counter("model_migration", "Requests that went to another worker", lambda m: 0)
    for name, help, meter in (
        ("time_to_first_token_seconds", "Time to first token in seconds", "first_token"),
        ("inter_token_latency_seconds", "Inter-token latency in seconds", "between_tokens"),
        ("request_duration_seconds", "Duration of LLM requests", "latency"),
        ("input_sequence_tokens", "Input sequence length in tokens", "input_tokens"),
        ("output_sequence_tokens", "Output sequence length in tokens", "output_tokens"),
        ("cached_tokens", "Cached prompt tokens of a request", "cached_tokens"),
    ):
        yield page.histogram(name, help, meter)


PAGE = EnginePage(families)
