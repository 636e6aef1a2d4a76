"""How inference servers name what they count (``docs/telemetry.md`` has the table with its sources)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from aiperf import Point
from msgspec import Struct


class Latency(Struct, frozen=True):
    """Histograms of a time, the newest name first; *scale* makes ms of their unit.

    client: the metric of the same time; None where the client can't see it.  total, per: counters whose quotient is the mean,
    where there is no histogram.
    """

    quantity: str
    client: str | None = None
    families: tuple[str, ...] = ()
    scale: float = 1e3
    total: str = ""
    per: str = ""


class Level(Struct, frozen=True):
    """A gauge; *scale* makes the unit of it.  mean: over its series, not their sum.

    parts: a label, and its values for a part and the whole, whose quotient it is.
    """

    quantity: str
    unit: str
    families: tuple[str, ...]
    scale: float = 1.0
    mean: bool = False
    parts: tuple[str, str, str] | None = None


class Count(Struct, frozen=True):
    """A counter, or the sum of a histogram.  besides: families that are added (failed requests)."""

    quantity: str
    unit: str
    families: tuple[str, ...]
    besides: tuple[str, ...] = ()


class CountShare(Struct, frozen=True):
    """A count in a whole: tokens found in the prefix cache of the tokens asked for.  rest: the whole is *part* and this."""

    quantity: str
    part: str
    whole: str = ""
    rest: str = ""


class Engine(Struct, frozen=True):
    """An inference server's families, all with *prefix*."""

    name: str
    prefix: str
    latencies: tuple[Latency, ...] = ()
    levels: tuple[Level, ...] = ()
    counts: tuple[Count, ...] = ()
    shares: tuple[CountShare, ...] = ()


_TTFT, _ITL, _TPOT, _WHOLE = "time_to_first_token", "inter_chunk_latency", "inter_token_latency", "request_latency"
_TTFT_S = Latency("time_to_first_token", _TTFT, ("time_to_first_token_seconds",))
_WHOLE_S = Latency("request_latency", _WHOLE, ("e2e_request_latency_seconds",))
_ITL_S = Latency("inter_token_latency", _ITL, ("inter_token_latency_seconds", "time_per_output_token_seconds"))
_PREFILL, _DECODE = (
    Latency(f"{part}_time", families=(f"request_{part}_time_seconds",)) for part in ("prefill", "decode")
)
_DRAFTS = (
    Count("draft_tokens", "tokens", ("spec_decode_num_draft_tokens",)),
    Count("accepted_tokens", "tokens", ("spec_decode_num_accepted_tokens",)),
)


def _tokens(prompt: str, generated: str) -> tuple[Count, ...]:
    return Count("prompt_tokens", "tokens", (prompt,)), Count("generated_tokens", "tokens", (generated,))


_TABLE = (
    Engine(
        "vllm", "vllm:",
        (_TTFT_S, _ITL_S, Latency("time_per_output_token", _TPOT, ("request_time_per_output_token_seconds",)), _WHOLE_S,
         Latency("queue_time", families=("request_queue_time_seconds",)), _PREFILL, _DECODE),
        (Level("running", "requests", ("num_requests_running",)), Level("waiting", "requests", ("num_requests_waiting",)),
         Level("kv_use", "%", ("kv_cache_usage_perc", "gpu_cache_usage_perc"), 100.0, mean=True)),
        (Count("requests", "requests", ("request_success",)), *_tokens("prompt_tokens", "generation_tokens"),
         Count("preemptions", "requests", ("num_preemptions",)), Count("drafts", "drafts", ("spec_decode_num_drafts",)),
         *_DRAFTS),
        (CountShare("prefix_hits", "prefix_cache_hits", "prefix_cache_queries"),
         CountShare("external_prefix_hits", "external_prefix_cache_hits", "external_prefix_cache_queries")),
    ),
    Engine(
        "sglang", "sglang:",
        (_TTFT_S, _ITL_S, _WHOLE_S, Latency("queue_time", families=("queue_time_seconds",))),
        (Level("running", "requests", ("num_running_reqs",)), Level("waiting", "requests", ("num_queue_reqs",)),
         Level("kv_use", "%", ("token_usage",), 100.0, mean=True),
         Level("acceptance_length", "tokens", ("spec_accept_length",), mean=True),
         Level("acceptance_rate", "%", ("spec_accept_rate",), 100.0, mean=True)),
        (Count("requests", "requests", ("num_requests",)), *_tokens("prompt_tokens", "generation_tokens"),
         Count("preemptions", "requests", ("num_retracted_requests", "num_retracted_reqs_total"))),
        (CountShare("prefix_hits", "cached_tokens", "prompt_tokens"),),
    ),
    Engine(
        "tensorrt_llm", "trtllm_",
        (_TTFT_S, Latency("time_per_output_token", _TPOT, ("time_per_output_token_seconds",)), _WHOLE_S,
         Latency("queue_time", families=("request_queue_time_seconds",)), _PREFILL, _DECODE),
        (Level("running", "requests", ("num_requests_running",)), Level("waiting", "requests", ("num_requests_waiting",)),
         Level("kv_use", "%", ("kv_cache_utilization",), 100.0, mean=True),
         Level("paused", "requests", ("num_paused_requests",)),
         Level("acceptance_length", "tokens", ("spec_decode_acceptance_length",), mean=True)),
        (Count("requests", "requests", ("request_success",)), *_tokens("prompt_tokens", "generation_tokens"), *_DRAFTS),
        (CountShare("prefix_hits", "kv_cache_reused_blocks", rest="kv_cache_missed_blocks"),),
    ),
    Engine(
        "dynamo", "dynamo_frontend_",
        (_TTFT_S, Latency("inter_token_latency", _ITL, ("inter_token_latency_seconds",)),
         Latency("request_latency", _WHOLE, ("request_duration_seconds",))),
        (Level("running", "requests", ("inflight_requests",)), Level("waiting", "requests", ("queued_requests",))),
        (Count("requests", "requests", ("requests",)), *_tokens("input_sequence_tokens", "output_tokens"),
         Count("preemptions", "requests", ("model_migration",))),
        (CountShare("prefix_hits", "cached_tokens", "input_sequence_tokens"),),
    ),
    Engine(
        "triton", "nv_",
        (Latency("time_to_first_token", _TTFT, ("inference_first_response_histogram_ms",), 1.0),
         Latency("request_latency", _WHOLE, scale=1e-3, total="inference_request_duration_us", per="inference_request_success"),
         Latency("queue_time", scale=1e-3, total="inference_queue_duration_us", per="inference_request_success")),
        (Level("waiting", "requests", ("inference_pending_request_count",)),
         Level("kv_use", "%", ("trt_llm_kv_cache_block_metrics",), 100.0, parts=("kv_cache_block_type", "used", "max"))),
        (Count("requests", "requests", ("inference_request_success",), besides=("inference_request_failure",)),),
    ),
)  # fmt: skip
ENGINES: Mapping[str, Engine] = MappingProxyType({engine.name: engine for engine in _TABLE})


def engine_of(family: str) -> Engine | None:
    """The engine that a family is of; None for other families."""
    return next((engine for engine in _TABLE if family.startswith(engine.prefix)), None)


def queued(points: Iterable[Point]) -> float | None:
    """Requests that run or wait on all servers, by the latest points of their gauges; None where no engine tells."""
    levels = {
        engine.prefix + family
        for engine in _TABLE for level in engine.levels if level.quantity in ("running", "waiting")
        for family in level.families
    }  # fmt: skip
    values = [point.value for point in points if point.name in levels and isinstance(point.value, int | float)]
    return sum(values) if values else None
