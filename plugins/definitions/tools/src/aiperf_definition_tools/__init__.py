"""TTFT, ITL, TPOT and throughput as four tools define them, from the same columns."""

from __future__ import annotations

import numpy as np
from aiperf import Definition, Readings, RecordBatch
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_EMPTY = 2
"""Value of a batch's ``fault``: the answer ended well without content."""


def _per(duration: Floats, tokens: Floats) -> Floats:
    quotients: Floats = np.divide(duration, tokens, out=np.full(len(duration), np.nan), where=tokens >= 1)
    return quotients


def _earliest(values: Floats) -> float:
    return float(np.nanmin(values)) if not np.isnan(values).all() else float("nan")


def _latest(values: Floats) -> float:
    return float(np.nanmax(values)) if not np.isnan(values).all() else float("nan")


def _all_tokens(batch: RecordBatch) -> Floats:
    return np.nan_to_num(batch["output_tokens"]) + np.nan_to_num(batch["reasoning_tokens"])


def _served_tokens(batch: RecordBatch, otherwise: Floats) -> Floats:
    """The server's count; *otherwise* where it is missing or 0."""
    counted = batch["usage_completion_tokens"]
    return np.where(counted > 0, counted, otherwise)


def _answered(batch: RecordBatch) -> NDArray[np.bool_]:
    """Valid requests, and those with an empty answer, which only this tool counts as failed."""
    answered: NDArray[np.bool_] = batch.valid | (batch["fault"] == _EMPTY)
    return answered


def _between(batch: RecordBatch) -> Floats:
    """Times between neighbouring events, 0 for events that arrived together; in no order.

    The columns have the times of content, and of the first and the last event: an event without content in between counts as
    arrived together with another one.
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
    differs = "Times of content alone, reasoning included; the time base spans all sent requests, failed ones included."

    def read(self, batch: RecordBatch) -> Readings:
        good = batch.select(batch.valid)
        tokens, first = _all_tokens(good), good["first_tokens"]
        decoding = good["last_token_ns"] - good["first_token_ns"]
        later = np.where((first >= 1) & (tokens - first >= 1), tokens - first, tokens - 1)
        itl = np.where(decoding > 0, _per(decoding, later), np.nan)
        return Readings(
            good["first_token_ns"] - good["started_ns"], itl, itl, len(good), float(tokens.sum()),
            _earliest(batch["started_ns"]), _latest(batch["ended_ns"]),
        )  # fmt: skip


class Vllm(Definition):
    """vllm-project/vllm: ``vllm/benchmarks/lib/endpoint_request_func.py`` at 02cfb534df56, ``vllm/benchmarks/serve.py`` at
    009e6d4a1cd6; before, ``benchmarks/backend_request_func.py`` at e7dffa683de5.

    The first event with a choice ends TTFT, even without content; each later event ends an ITL, and the last one the latency.
    A request with such an event and status 200 succeeds there; an error after that event is a failure here.  TPOT is the
    latency after TTFT over the server's tokens less one, as a mean of requests.  The duration also includes the time before
    the first request, which the columns lack.
    """

    title = "vLLM bench serve"
    source = (
        "github.com/vllm-project/vllm at 02cfb534df56, vllm/benchmarks/lib/endpoint_request_func.py; at 009e6d4a1cd6,"
        " vllm/benchmarks/serve.py"
    )
    differs = (
        "TTFT ends with the first event, even one with only a role, so TPOT and ITL begin there; they end with the last event,"
        " even one without content (TPOT of older versions with the usage after it). ITL is the time between events, for any"
        " number of tokens per event, and 0 for events that arrive together; tokens are the server's; an answer without"
        " content is a success."
    )

    def read(self, batch: RecordBatch) -> Readings:
        good = batch.select(_answered(batch) & ~np.isnan(batch["first_event_ns"]))
        tokens = _served_tokens(good, np.nan_to_num(good["output_tokens"]))
        first, last = good["first_event_ns"], good["last_event_ns"]
        return Readings(
            first - good["started_ns"], _between(good), _per(last - first, tokens - 1), len(good), float(tokens.sum()),
            _earliest(batch["started_ns"]), _latest(batch["ended_ns"]),
        )  # fmt: skip


class GuideLlm(Definition):
    """vllm-project/guidellm v0.7.3: ``src/guidellm/schemas/request_stats.py``, ``benchmark/schemas/metrics.py``.

    Latencies are those of successful requests; percentiles are weighted, observed values (``schemas/statistics.py``).  The
    printed rates (``benchmark/outputs/console.py``) are means over time: all ended requests, and their tokens, over the time
    from the first start to the last end.
    """

    title = "GuideLLM"
    source = "github.com/vllm-project/guidellm v0.7.3, src/guidellm/schemas/request_stats.py and benchmark/schemas/metrics.py"
    differs = (
        "The rates also count failed and cancelled requests, with the tokens of their answers. TPOT includes the time to the"
        " first token; ITL and TPOT are weighted by tokens, so long answers count more, and an answer in one piece has an ITL"
        " of 0; tokens are the server's, else one per piece of content. A percentile is an observed value, not one between two."
    )
    quantiles = "inverted_cdf"

    def read(self, batch: RecordBatch) -> Readings:
        good, ended = batch.select(batch.valid), batch.select(~np.isnan(batch["ended_ns"]))
        tokens, all_tokens = self._tokens(good), float(self._tokens(ended).sum())
        start, first, last = good["started_ns"], good["first_token_ns"], good["last_token_ns"]
        return Readings(
            first - start, _per(last - first, tokens - 1), _per(last - start, tokens), len(ended), all_tokens,
            _earliest(batch["started_ns"]), _latest(batch["ended_ns"]), tokens - 1, tokens,
        )  # fmt: skip

    def _tokens(self, batch: RecordBatch) -> Floats:
        pieces = batch.lists("piece_count")
        owners = np.repeat(np.arange(len(batch)), np.diff(pieces.offsets))
        return _served_tokens(batch, np.bincount(owners, pieces.values, len(batch)).astype(np.float64))


class GenaiPerf(Definition):
    """triton-inference-server/perf_analyzer at 263c5f6e0c7a (genai-perf 0.0.16dev):
    ``genai-perf/genai_perf/profile_data_parser/llm_profile_data_parser.py``.

    Responses without text are dropped before the measurement; a request with only such responses counts for the rate alone.
    Events of one read are one response, and an ITL takes two responses.
    """

    title = "genai-perf"
    source = (
        "github.com/triton-inference-server/perf_analyzer at 263c5f6e0c7a,"
        " genai-perf/genai_perf/profile_data_parser/llm_profile_data_parser.py"
    )
    differs = (
        "Reasoning is no content: TTFT ends with the first output, and tokens are the client's count of output. The rate also"
        " counts answers without output; its time ends with the last content of a successful request, so failures at the end"
        " shorten it."
    )

    def read(self, batch: RecordBatch) -> Readings:
        good = batch.select(batch.valid & ~np.isnan(batch["first_output_ns"]))
        tokens, first, last = np.nan_to_num(good["output_tokens"]), good["first_output_ns"], good["last_token_ns"]
        itl = np.where(last > first, _per(last - first, tokens - 1), np.nan)
        return Readings(
            first - good["started_ns"], itl, itl, int(_answered(batch).sum()), float(tokens.sum()),
            _earliest(good["started_ns"]), _latest(last),
        )  # fmt: skip
