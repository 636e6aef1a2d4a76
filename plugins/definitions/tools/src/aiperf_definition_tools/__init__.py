"""TTFT, ITL, TPOT and throughput as several tools define them, from the same columns."""

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


def _between_pieces(batch: RecordBatch, first_ns: Floats) -> Floats:
    """Times between neighbouring pieces of content from *first_ns* on, 0 for those that arrived together; in no order."""
    arrivals, pieces = batch.lists("chunk_ns"), batch.lists("piece_count")
    owners = np.repeat(np.arange(len(batch)), np.diff(arrivals.offsets))
    counted = arrivals.values >= first_ns[owners]
    at, owners, amounts = arrivals.values[counted], owners[counted], pieces.values[counted]
    within: Floats = np.diff(at)[owners[1:] == owners[:-1]]
    return np.concatenate((within, np.zeros(int((amounts - 1).sum()))))


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
    """vLLM v0.33.0: ``vllm/benchmarks/lib/endpoint_request_func.py``, ``vllm/benchmarks/serve.py``.

    An event counts whose delta has text in ``content`` or ``reasoning``, or a call in ``tool_calls`` or ``function_call``.  The
    first ends TTFT, each later one an ITL, the last the latency.  An event with a role alone, or with a finish reason alone,
    does not count, and a request without any that does is a failure.  TPOT is the latency after TTFT over the server's tokens
    less one, as a mean of requests.  The duration also includes the time before the first request, which the columns lack.
    """

    title = "vLLM bench serve"
    version = "0.33.0"
    source = "github.com/vllm-project/vllm v0.33.0, vllm/benchmarks/lib/endpoint_request_func.py and vllm/benchmarks/serve.py"
    differs = (
        "Reasoning counts where the server streams it as reasoning; streamed as reasoning_content it does not count there, and"
        " the column beside this one has the numbers: the stored columns don't say which field it was. ITL is the time between"
        " events with content, for any number of tokens per event, and 0 for events that arrive together; tokens are the"
        " server's. An empty content without a role, such as a special token, counts there and not here; an error after the"
        " first content is a failure here alone."
    )

    def read(self, batch: RecordBatch) -> Readings:
        good = batch.select(batch.valid & ~np.isnan(self._first(batch)))
        first, last = self._first(good), good["last_token_ns"]
        tokens = _served_tokens(good, np.nan_to_num(good["output_tokens"]))
        return Readings(
            first - good["started_ns"], _between_pieces(good, first), _per(last - first, tokens - 1), len(good),
            float(tokens.sum()), _earliest(batch["started_ns"]), _latest(batch["ended_ns"]),
        )  # fmt: skip

    def _first(self, batch: RecordBatch) -> Floats:
        """The first content that counts."""
        return batch["first_token_ns"]


class VllmOutput(Vllm):
    """The same, of a server that streams reasoning as ``reasoning_content``: that field does not count there.

    Content that arrives from the first output on counts: reasoning comes before it.
    """

    title = "vLLM, output only"
    differs = (
        "As vLLM bench serve 0.33.0 measures a server that streams reasoning as reasoning_content (older vLLM, SGLang,"
        " DeepSeek): TTFT ends with the first output, and an answer of reasoning alone is a failure. Without reasoning the"
        " numbers are those of the column beside this one. Tokens are the server's, reasoning included, so TPOT divides the"
        " time of the output by the tokens of both."
    )

    def _first(self, batch: RecordBatch) -> Floats:
        return batch["first_output_ns"]


class VllmUntil032(Definition):
    """vllm-project/vllm: ``vllm/benchmarks/lib/endpoint_request_func.py`` at 02cfb534df56, ``vllm/benchmarks/serve.py`` at
    009e6d4a1cd6; before, ``benchmarks/backend_request_func.py`` at e7dffa683de5.

    The first event with a choice ends TTFT, even without content; each later event ends an ITL, and the last one the latency.
    A request with such an event and status 200 succeeds there; an error after that event is a failure here.  TPOT is the
    latency after TTFT over the server's tokens less one, as a mean of requests.  The duration also includes the time before
    the first request, which the columns lack.
    """

    title = "vLLM bench serve"
    version = "up to 0.32.0"
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
    version = "0.7.3"
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
    Events of one read are one response, and an ITL takes two responses.  The tokenizer encodes the joined text of the outputs.
    """

    title = "genai-perf"
    version = "0.0.16dev"
    source = (
        "github.com/triton-inference-server/perf_analyzer at 263c5f6e0c7a,"
        " genai-perf/genai_perf/profile_data_parser/llm_profile_data_parser.py"
    )
    differs = (
        "Reasoning is no content: TTFT ends with the first output. Tokens are those of its own tokenizer in the text of the"
        " outputs, never the server's; here they are the run's count of output, by --tokenizer, and with"
        " --use-server-token-count the server's, which it would not read. The rate also counts answers without output; its time"
        " ends with the last content of a successful request, so failures at the end shorten it."
    )

    def read(self, batch: RecordBatch) -> Readings:
        good = batch.select(batch.valid & ~np.isnan(batch["first_output_ns"]))
        tokens, first, last = np.nan_to_num(good["output_tokens"]), good["first_output_ns"], good["last_token_ns"]
        itl = np.where(last > first, _per(last - first, tokens - 1), np.nan)
        return Readings(
            first - good["started_ns"], itl, itl, int(_answered(batch).sum()), float(tokens.sum()),
            _earliest(good["started_ns"]), _latest(last),
        )  # fmt: skip
