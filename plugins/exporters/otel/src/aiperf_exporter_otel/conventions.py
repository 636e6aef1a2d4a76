"""Names, buckets and attributes of OpenTelemetry's conventions for generative AI, and of aiperf's own metrics."""

from __future__ import annotations

import json
from collections.abc import Iterable
from urllib.parse import urlsplit

from msgspec import Struct

DEFAULT_BOUNDS: tuple[float, ...] = (
    0.0, 5.0, 10.0, 25.0, 50.0, 75.0, 100.0, 250.0, 500.0, 750.0, 1000.0, 2500.0, 5000.0, 7500.0, 10000.0,
)  # fmt: skip
"""Of metrics that the conventions don't know: those of OpenTelemetry's SDK."""
DURATION_BOUNDS = tuple(round(0.01 * 2**n, 2) for n in range(14))
CHUNK_BOUNDS = (
    0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.12, 0.14, 0.16, 0.18, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.75, 1.0,
    2.0, 5.0,
)  # fmt: skip
TOKEN_BOUNDS = tuple(float(4**n) for n in range(13))
OTHER = "_OTHER"


class KnownMetric(Struct, frozen=True):
    """A metric of the conventions.  bounds: upper ones of its buckets.  attributes: beside those of each request."""

    name: str
    unit: str
    bounds: tuple[float, ...]
    attributes: dict[str, str] = {}


KNOWN = {
    "request_latency": KnownMetric("gen_ai.client.operation.duration", "s", DURATION_BOUNDS),
    "time_to_first_token": KnownMetric("gen_ai.client.operation.time_to_first_chunk", "s", CHUNK_BOUNDS),
    "inter_token_latency": KnownMetric("gen_ai.client.operation.time_per_output_chunk", "s", CHUNK_BOUNDS),
    "output_token_count": KnownMetric("gen_ai.client.token.usage", "{token}", TOKEN_BOUNDS, {"gen_ai.token.type": "output"}),
    "input_sequence_length": KnownMetric("gen_ai.client.token.usage", "{token}", TOKEN_BOUNDS, {"gen_ai.token.type": "input"}),
}
"""By the tag of the metric that has their values."""
_OPERATIONS = {"completions": "text_completion", "embeddings": "embeddings"}
_PROVIDERS = (
    ("openai.azure.com", "azure.ai.openai"), ("cognitiveservices.azure.com", "azure.ai.openai"),
    ("services.ai.azure.com", "azure.ai.inference"), ("inference.ai.azure.com", "azure.ai.inference"),
    ("openai.com", "openai"), ("anthropic.com", "anthropic"), ("deepseek.com", "deepseek"), ("mistral.ai", "mistral_ai"),
    ("cohere.com", "cohere"), ("cohere.ai", "cohere"), ("x.ai", "x_ai"), ("groq.com", "groq"), ("perplexity.ai", "perplexity"),
    ("aiplatform.googleapis.com", "gcp.vertex_ai"), ("generativelanguage.googleapis.com", "gcp.gemini"),
    ("ml.cloud.ibm.com", "ibm.watsonx.ai"),
)  # fmt: skip
_BEDROCK = ("bedrock-runtime.", ".amazonaws.com")
_CANCELLED, _INVALID = 499, "InvalidInferenceResultError"
"""The code of a request that the client ended (nginx), and the kind of an answer that can't be read."""


def operation(endpoint: str) -> str:
    """``gen_ai.operation.name`` of an endpoint type; ``chat`` where the conventions have none for it."""
    return _OPERATIONS.get(endpoint, "chat")


def provider(urls: Iterable[str]) -> str:
    """``gen_ai.provider.name`` of the first URL's host; ``_OTHER`` where that isn't known."""
    host = (urlsplit(next(iter(urls), "")).hostname or "").lower()
    if host.startswith(_BEDROCK[0]) and host.endswith(_BEDROCK[1]):
        return "aws.bedrock"
    for domain, name in _PROVIDERS:
        if host == domain or host.endswith(("." + domain, "-" + domain)):
            return name
    return OTHER


def error_type(error: str | None, status: int | None, *, cancelled: bool) -> str:
    """``error.type`` of a failed request, of its error's JSON and its HTTP status; "" where nothing failed."""
    if cancelled:
        return "cancelled"
    if error is None:
        return ""
    told = json.loads(error)
    kind, code = str(told.get("type") or ""), told.get("code") or status
    if code == _CANCELLED and "cancel" in kind.lower():
        return "cancelled"
    if "timeout" in kind.lower():
        return "timeout"
    if kind == _INVALID:
        return "parse_error"
    if isinstance(code, int) and 400 <= code < 600:
        return f"http_{code // 100}xx"
    return OTHER


__all__ = ["DEFAULT_BOUNDS", "KNOWN", "OTHER", "KnownMetric", "error_type", "operation", "provider"]
