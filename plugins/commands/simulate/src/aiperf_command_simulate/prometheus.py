"""``/metrics``: counters, gauges and histograms under the names that vLLM gives them."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable

_SECONDS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0)

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class Histogram:
    """Durations by upper bound."""

    def __init__(self) -> None:
        self._counts = [0] * (len(_SECONDS) + 1)
        self._sum_ns = 0

    def add(self, ns: int) -> None:
        self._counts[bisect_left(_SECONDS, ns / 1e9)] += 1
        self._sum_ns += ns

    def lines(self, name: str, labels: str) -> list[str]:
        lines = []
        total = 0
        for bound, count in zip((*map(str, _SECONDS), "+Inf"), self._counts, strict=True):
            total += count
            lines.append(f'{name}_bucket{{{labels},le="{bound}"}} {total}')
        return [*lines, f"{name}_sum{{{labels}}} {self._sum_ns / 1e9}", f"{name}_count{{{labels}}} {total}"]


class Meters:
    """The counts of one served model."""

    def __init__(self) -> None:
        self.prompt_tokens = 0
        self.cached_tokens = 0
        self.generation_tokens = 0
        self.success: Counter[str] = Counter({"stop": 0, "length": 0, "abort": 0})
        self.first_token = Histogram()
        self.between_tokens = Histogram()
        self.latency = Histogram()
        self.queued = Histogram()


def _label(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def exposition(meters: dict[str, Meters], running: Counter[str], waiting: Counter[str], cache_usage: float) -> str:
    """The text format, one set of series a model.  *cache_usage*: share of the prefix cache's blocks in use."""
    lines: list[str] = []

    def family(name: str, kind: str, text: str) -> str:
        lines.extend((f"# HELP vllm:{name} {text}", f"# TYPE vllm:{name} {kind}"))
        return f"vllm:{name}"

    labels = {model: f'engine="0",model_name="{_label(model)}"' for model in meters}

    def series(name: str, kind: str, text: str, values: dict[str, float]) -> None:
        full = family(name, kind, text)
        lines.extend(f"{full}{{{labels[model]}}} {value}" for model, value in values.items())

    series("num_requests_running", "gauge", "Sequences being computed.", {m: running[m] for m in meters})
    series("num_requests_waiting", "gauge", "Sequences in the queue.", {m: waiting[m] for m in meters})
    series("kv_cache_usage_perc", "gauge", "Share of the cache's blocks in use.", dict.fromkeys(meters, cache_usage))
    counters: dict[str, tuple[str, Callable[[Meters], int]]] = {
        "prompt_tokens_total": ("Prompt tokens of requests that were admitted.", lambda m: m.prompt_tokens),
        "generation_tokens_total": ("Tokens made.", lambda m: m.generation_tokens),
        "prefix_cache_queries_total": ("Prompt tokens looked up in the prefix cache.", lambda m: m.prompt_tokens),
        "prefix_cache_hits_total": ("Prompt tokens found there.", lambda m: m.cached_tokens),
    }
    for name, (text, read) in counters.items():
        series(name, "counter", text, {model: read(meter) for model, meter in meters.items()})
    full = family("request_success_total", "counter", "Requests that ended, by reason.")
    for model, meter in meters.items():
        lines.extend(f'{full}{{{labels[model]},finished_reason="{reason}"}} {n}' for reason, n in meter.success.items())
    histograms: dict[str, tuple[str, Callable[[Meters], Histogram]]] = {
        "time_to_first_token_seconds": ("From receiving to the first token.", lambda m: m.first_token),
        "inter_token_latency_seconds": ("Between neighbouring chunks.", lambda m: m.between_tokens),
        "e2e_request_latency_seconds": ("From receiving to the last token.", lambda m: m.latency),
        "request_queue_time_seconds": ("From receiving to leaving the queue.", lambda m: m.queued),
    }
    for name, (text, pick) in histograms.items():
        full = family(name, "histogram", text)
        for model, meter in meters.items():
            lines.extend(pick(meter).lines(full, labels[model]))
    return "\n".join(lines) + "\n"
