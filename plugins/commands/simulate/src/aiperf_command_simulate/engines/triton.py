"""Triton's page, with TensorRT-LLM behind it and histograms switched on; its counters have no ``_total``."""

from __future__ import annotations

from collections.abc import Iterator

from aiperf_command_simulate.engines import EnginePage, EngineState, Writer
from aiperf_command_simulate.families import Family


def families(state: EngineState) -> Iterator[Family]:
    page = Writer("nv_", state, lambda model: {"model": model.name, "version": "1"}, suffixed=False)
    yield page.count("inference_request_success", "Number of successful inference requests, all batch sizes", "completed")
    yield page.count(
        "inference_request_failure", "Number of failed inference requests, all batch sizes", "failed",
        reason="OTHER",
    )  # fmt: skip
    yield page.counter(
        "inference_request_duration_us", "Cumulative inference request duration in microseconds",
        lambda m: m.meters.histograms["latency"].total // 1000,
    )  # fmt: skip
    yield page.counter(
        "inference_queue_duration_us", "Cumulative inference queuing duration in microseconds",
        lambda m: m.meters.histograms["queued"].total // 1000,
    )  # fmt: skip
    yield page.gauge(
        "inference_pending_request_count", "Instantaneous number of pending requests per model.", lambda m: m.waiting
    )
    yield page.histogram(
        "inference_first_response_histogram_ms", "Duration to the first response in milliseconds", "first_token", 1000.0
    )
    yield page.split(
        "trt_llm_kv_cache_block_metrics", "gauge", "TRT LLM KV cache block metrics", "kv_cache_block_type",
        lambda m: {"max": state.blocks, "used": state.used_blocks, "free": state.blocks - state.used_blocks,
                   "tokens_per": state.block_size},
    )  # fmt: skip


PAGE = EnginePage(families)
