"""TTFT, ITL, TPOT and throughput as four tools define them, from the same columns."""

from __future__ import annotations

import numpy as np
from aiperf import Definition, Readings, RecordBatch
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def _per(duration: Floats, tokens: Floats) -> Floats:
    quotients: Floats = np.divide(duration, tokens, out=np.full(len(duration), np.nan), where=tokens >= 1)
    return quotients


def _least(values: Floats) -> float:
    return float(np.nanmin(values)) if not np.isnan(values).all() else float("nan")


def _most(values: Floats) -> float:
    return float(np.nanmax(values)) if not np.isnan(values).all() else float("nan")


def _all_tokens(batch: RecordBatch) -> Floats:
    return np.nan_to_num(batch["output_tokens"]) + np.nan_to_num(batch["reasoning_tokens"])


def _served_tokens(batch: RecordBatch, otherwise: Floats) -> Floats:
    """The server's count, *otherwise* where it gave none."""
    counted = batch["usage_completion_tokens"]
    return np.where(np.isnan(counted), otherwise, counted)


class This(Definition):
    """docs/metrics.md: ``time_to_first_token``, ``inter_token_latency`` and the throughputs."""

    title = "aiperf"
    source = "docs/metrics.md"
    differs = "Times of content alone, reasoning included; the time base spans everything sent, failed requests too."

    def read(self, batch: RecordBatch) -> Readings:
        good = batch.select(batch.valid)
        tokens, first = _all_tokens(good), good["first_tokens"]
        decoding = good["last_token_ns"] - good["first_token_ns"]
        later = tokens - np.where(np.isnan(first), 1, first)
        itl = np.where(decoding > 0, _per(decoding, later), np.nan)
        return Readings(
            good["first_token_ns"] - good["started_ns"], itl, itl, len(good), float(tokens.sum()),
            _least(batch["started_ns"]), _most(batch["ended_ns"]),
        )  # fmt: skip


class Vllm(Definition):
    """vllm-project/vllm, benchmarks/benchmark_serving.py and benchmarks/backend_request_func.py, as of 2025."""

    title = "vLLM bench serve"
    source = "github.com/vllm-project/vllm, benchmarks/benchmark_serving.py and backend_request_func.py"
    differs = (
        "TTFT ends with the first event, one with a role alone included; TPOT takes the time to the last event, usage included,"
        " over the server's tokens; ITL is between events, however many tokens each has. Closing events are no gaps here."
    )

    def read(self, batch: RecordBatch) -> Readings:
        good = batch.select(batch.valid)
        tokens = _served_tokens(good, _all_tokens(good))
        first, last = good["first_byte_ns"], good["last_byte_ns"]
        role = good["first_token_ns"] - first  # an event without content came before
        together = np.zeros(int((good.lists("piece_count").values - 1).sum()))  # events of one read, some µs apart there
        gaps = np.concatenate((role[role > 0], good.lists("gap_ns").values, together))
        return Readings(
            first - good["started_ns"], gaps, _per(last - first, tokens - 1), len(good), float(tokens.sum()),
            _least(batch["started_ns"]), _most(batch["ended_ns"]),
        )  # fmt: skip


class GuideLlm(Definition):
    """vllm-project/guidellm, src/guidellm/schemas/request_stats.py and benchmark/schemas/generative/metrics.py."""

    title = "GuideLLM"
    source = "github.com/vllm-project/guidellm, src/guidellm/schemas/request_stats.py"
    differs = (
        "TPOT includes the time to the first token; ITL and TPOT are weighted by tokens, so long answers count more; tokens are"
        " the server's, else one a piece of content. Its rate distributions over time appear as their mean."
    )

    def read(self, batch: RecordBatch) -> Readings:
        good = batch.select(batch.valid)
        pieces = good.lists("piece_count")
        owners = np.repeat(np.arange(len(good)), np.diff(pieces.offsets))
        tokens = _served_tokens(good, np.bincount(owners, pieces.values, len(good)).astype(np.float64))
        start, first, last = good["started_ns"], good["first_token_ns"], good["last_token_ns"]
        return Readings(
            first - start, _per(last - first, tokens - 1), _per(last - start, tokens), len(good), float(tokens.sum()),
            _least(batch["started_ns"]), _most(batch["ended_ns"]), tokens - 1, tokens,
        )  # fmt: skip


class GenaiPerf(Definition):
    """triton-inference-server/perf_analyzer, genai-perf/genai_perf/profile_data_parser/llm_profile_data_parser.py."""

    title = "genai-perf"
    source = "github.com/triton-inference-server/perf_analyzer, llm_profile_data_parser.py"
    differs = (
        "Reasoning is no content: TTFT ends with the first output, and tokens are output alone, as the client counts them; the"
        " time base ends with the last content of a good request, so a failure at the end shortens it."
    )

    def read(self, batch: RecordBatch) -> Readings:
        good = batch.select(batch.valid & ~np.isnan(batch["first_output_ns"]))
        tokens, first, last = np.nan_to_num(good["output_tokens"]), good["first_output_ns"], good["last_token_ns"]
        itl = _per(last - first, tokens - 1)
        return Readings(
            first - good["started_ns"], itl, itl, len(good), float(tokens.sum()), _least(good["started_ns"]), _most(last)
        )
