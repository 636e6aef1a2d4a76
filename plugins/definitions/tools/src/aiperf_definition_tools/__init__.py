"""TTFT, ITL, TPOT and throughput as four tools define them, from the same columns."""

from __future__ import annotations

import numpy as np
from aiperf import Definition, Readings, RecordBatch
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_EMPTY = 2
"""As a batch's ``fault``: the answer ended well and said nothing."""


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
    """The server's count, *otherwise* where it gave none, or 0."""
    counted = batch["usage_completion_tokens"]
    return np.where(counted > 0, counted, otherwise)


def _answered(batch: RecordBatch) -> NDArray[np.bool_]:
    """Good requests, and those whose answer said nothing, which only we call failed."""
    answered: NDArray[np.bool_] = batch.valid | (batch["fault"] == _EMPTY)
    return answered


def _between(batch: RecordBatch) -> Floats:
    """Times between neighbouring events, those that came together 0 apart; in no order.

    The columns know when content came, and when the first and the last event did: an event without content in between is taken
    to have come together with another.
    """
    arrivals = batch.lists("chunk_ns")
    owners = np.repeat(np.arange(len(batch)), np.diff(arrivals.offsets))
    within = np.diff(arrivals.values)[owners[1:] == owners[:-1]]
    before, after = batch["first_token_ns"] - batch["first_event_ns"], batch["last_event_ns"] - batch["last_token_ns"]
    silent = np.where(np.isnan(before), batch["last_event_ns"] - batch["first_event_ns"], np.nan)  # no content at all
    known = np.concatenate((within, before[before > 0], after[after > 0], silent[silent > 0]))
    together = np.maximum(batch["events"] - 1, 0).sum() - len(known)
    return np.concatenate((known, np.zeros(max(0, int(together)))))


class This(Definition):
    """docs/metrics.md: ``time_to_first_token``, ``inter_token_latency`` and the throughputs."""

    title = "aiperf"
    source = "docs/metrics.md"
    differs = "Times of content alone, reasoning included; the time base spans everything sent, failed requests too."

    def read(self, batch: RecordBatch) -> Readings:
        good = batch.select(batch.valid)
        tokens, first = _all_tokens(good), good["first_tokens"]
        decoding = good["last_token_ns"] - good["first_token_ns"]
        later = np.where((first >= 1) & (tokens - first >= 1), tokens - first, tokens - 1)
        itl = np.where(decoding > 0, _per(decoding, later), np.nan)
        return Readings(
            good["first_token_ns"] - good["started_ns"], itl, itl, len(good), float(tokens.sum()),
            _least(batch["started_ns"]), _most(batch["ended_ns"]),
        )  # fmt: skip


class Vllm(Definition):
    """vllm-project/vllm: ``vllm/benchmarks/lib/endpoint_request_func.py`` at 02cfb534df56, ``vllm/benchmarks/serve.py`` at
    009e6d4a1cd6; before, ``benchmarks/backend_request_func.py`` at e7dffa683de5.

    The first event with a choice ends TTFT, whatever it holds; an event each ends an ITL and, the last of them, the latency.
    Success is such an event in an answer of status 200; an error told after it, which is passed over there, is a failure here.
    TPOT is the mean of requests, from their TTFT on, over the server's tokens less one.  The duration spans all requests, and
    what passes before the first, which isn't known here.
    """

    title = "vLLM bench serve"
    source = (
        "github.com/vllm-project/vllm at 02cfb534df56, vllm/benchmarks/lib/endpoint_request_func.py; at 009e6d4a1cd6,"
        " vllm/benchmarks/serve.py"
    )
    differs = (
        "TTFT ends with the first event, one with a role alone included, so TPOT and ITL begin there; they end with the last"
        " event, a closing one without content included (with older versions TPOT also with the usage after it). ITL is the"
        " time between events, however many tokens each has, 0 for events that come together; tokens are the server's; an"
        " answer without content is a success."
    )

    def read(self, batch: RecordBatch) -> Readings:
        good = batch.select(_answered(batch) & ~np.isnan(batch["first_event_ns"]))
        tokens = _served_tokens(good, np.nan_to_num(good["output_tokens"]))
        first, last = good["first_event_ns"], good["last_event_ns"]
        return Readings(
            first - good["started_ns"], _between(good), _per(last - first, tokens - 1), len(good), float(tokens.sum()),
            _least(batch["started_ns"]), _most(batch["ended_ns"]),
        )  # fmt: skip


class GuideLlm(Definition):
    """vllm-project/guidellm v0.7.3: ``src/guidellm/schemas/request_stats.py``, ``benchmark/schemas/metrics.py``.

    Latencies are those of successful requests, percentiles values that occurred, by weight (``schemas/statistics.py``).  The
    rates that it prints (``benchmark/outputs/console.py``) are means, over time, of all requests: those that ended, and their
    tokens, over the time from the first start to the last end.
    """

    title = "GuideLLM"
    source = "github.com/vllm-project/guidellm v0.7.3, src/guidellm/schemas/request_stats.py and benchmark/schemas/metrics.py"
    differs = (
        "The rates count failed and cancelled requests, too, with what they said. TPOT includes the time to the first token;"
        " ITL and TPOT are weighted by tokens, so that long answers count more, and an answer that comes at once has an ITL of"
        " 0; tokens are the server's, else one a piece of content. A percentile is a value that occurred, not one between two."
    )
    quantiles = "inverted_cdf"

    def read(self, batch: RecordBatch) -> Readings:
        good, over = batch.select(batch.valid), batch.select(~np.isnan(batch["ended_ns"]))
        tokens, all_tokens = self._tokens(good), float(self._tokens(over).sum())
        start, first, last = good["started_ns"], good["first_token_ns"], good["last_token_ns"]
        return Readings(
            first - start, _per(last - first, tokens - 1), _per(last - start, tokens), len(over), all_tokens,
            _least(batch["started_ns"]), _most(batch["ended_ns"]), tokens - 1, tokens,
        )  # fmt: skip

    def _tokens(self, batch: RecordBatch) -> Floats:
        pieces = batch.lists("piece_count")
        owners = np.repeat(np.arange(len(batch)), np.diff(pieces.offsets))
        return _served_tokens(batch, np.bincount(owners, pieces.values, len(batch)).astype(np.float64))


class GenaiPerf(Definition):
    """triton-inference-server/perf_analyzer at 263c5f6e0c7a (genai-perf 0.0.16dev):
    ``genai-perf/genai_perf/profile_data_parser/llm_profile_data_parser.py``.

    Responses without text are dropped before anything is measured, a request that has no other only counts for the rate.
    Events of one read are one response, and ITL takes two.
    """

    title = "genai-perf"
    source = (
        "github.com/triton-inference-server/perf_analyzer at 263c5f6e0c7a,"
        " genai-perf/genai_perf/profile_data_parser/llm_profile_data_parser.py"
    )
    differs = (
        "Reasoning is no content: TTFT ends with the first output, and tokens are output alone, as the client counts them. The"
        " rate counts answers without output, too; its time ends with the last content of a good request, so that a failure at"
        " the end shortens it."
    )

    def read(self, batch: RecordBatch) -> Readings:
        said = batch.select(batch.valid & ~np.isnan(batch["first_output_ns"]))
        tokens, first, last = np.nan_to_num(said["output_tokens"]), said["first_output_ns"], said["last_token_ns"]
        itl = np.where(last > first, _per(last - first, tokens - 1), np.nan)
        return Readings(
            first - said["started_ns"], itl, itl, int(_answered(batch).sum()), float(tokens.sum()),
            _least(said["started_ns"]), _most(last),
        )  # fmt: skip
