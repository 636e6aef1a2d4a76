"""The server's own token counts under one set of names.

Keys and containers are those of real servers (OpenAI, Anthropic, Gemini, Bedrock and compatible ones).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

_PLACES = {
    "prompt": "prompt_tokens input_tokens promptTokenCount inputTokens input_token_count",
    "completion": "completion_tokens output_tokens candidatesTokenCount outputTokens generated_token_count",
    "total": "total_tokens totalTokenCount totalTokens",
    "reasoning": "completion_tokens_details.reasoning_tokens output_tokens_details.reasoning_tokens thoughtsTokenCount",
    "cached": (
        "prompt_tokens_details.cached_tokens input_tokens_details.cached_tokens cache_read_input_tokens"
        " prompt_cache_hit_tokens cachedContentTokenCount cacheReadInputTokens cached_tokens"
    ),
    "written": "cache_creation_input_tokens cacheWriteInputTokens",
    "missed": "prompt_cache_miss_tokens",
    "prompt_audio": "prompt_tokens_details.audio_tokens input_tokens_details.audio_tokens",
    "completion_audio": "completion_tokens_details.audio_tokens output_tokens_details.audio_tokens",
    "accepted": "completion_tokens_details.accepted_prediction_tokens output_tokens_details.accepted_prediction_tokens",
    "rejected": "completion_tokens_details.rejected_prediction_tokens output_tokens_details.rejected_prediction_tokens",
    "tool": "toolUsePromptTokenCount",
}
"""Where servers say each count; the first place that has a number counts."""
_SPLIT_PLACES = {name: [place.partition(".")[::2] for place in places.split()] for name, places in _PLACES.items()}
_APART = ("cache_read_input_tokens", "cache_creation_input_tokens", "cacheReadInputTokens", "cacheWriteInputTokens")
_SAYS_INPUT = ("input_tokens", "inputTokens")
_WRAPPERS = ("response", "message", "usage", "usageMetadata", "meta", "tokens")


class Usage(Struct, frozen=True):
    """Counts of tokens; None where the server sends none.

    Of the prompt: cached, written, missed (found in the prefix cache, written to it, not found in it), prompt_audio, tool
    (results of tools that the server called), audio_s (seconds).
    Of the completion: reasoning, completion_audio, accepted and rejected (predicted outputs).
    """

    prompt: int | None = None
    completion: int | None = None
    total: int | None = None
    reasoning: int | None = None
    cached: int | None = None
    written: int | None = None
    missed: int | None = None
    prompt_audio: int | None = None
    completion_audio: int | None = None
    accepted: int | None = None
    rejected: int | None = None
    tool: int | None = None
    audio_s: float | None = None


def merged_usage(usages: Sequence[dict[str, Any]]) -> dict[str, Any] | None:
    """The usage of an answer whose events have these, in order: nested, key by key, later values win.  A value of None says
    nothing."""
    if not usages:
        return None
    last = usages[-1]
    if len(usages) == 1:
        return last
    # The usual counts with each chunk: plain numbers under the same keys.
    if all(type(value) is int for value in last.values()) and all(map(set(last).issuperset, usages)):
        return last
    merged: dict[str, Any] = {}
    for usage in usages:
        _merge(merged, usage)
    return merged


def _merge(merged: dict[str, Any], usage: Mapping[str, Any]) -> None:
    for key, value in usage.items():
        if isinstance(value, dict):
            inner = merged.get(key)
            merged[key] = inner = {**inner} if isinstance(inner, dict) else {}
            _merge(inner, value)
        elif value is not None or key not in merged:
            merged[key] = value


def read_usage(usage: Mapping[str, Any]) -> Usage:
    """Normalise a usage object.

    Some servers (Anthropic, Bedrock) count cached input apart from ``input_tokens``: it is added.
    """
    plain = plain_counts(usage)
    if plain is not None:
        return Usage(*plain)
    flat = _flat(usage)
    counts: dict[str, int] = {}
    for name, places in _SPLIT_PLACES.items():
        for key, inner_key in places:
            value = flat.get(key)
            if inner_key:
                value = value.get(inner_key) if isinstance(value, dict) else None
            if (number := _number(value)) is not None:
                apart = _APART if key in _SAYS_INPUT else ()
                counts[name] = int(number) + sum(int(_number(flat.get(each)) or 0) for each in apart)
                break
    return Usage(**counts, audio_s=_number(flat.get("prompt_audio_seconds")))


def plain_counts(usage: Mapping[str, Any]) -> tuple[int, int, int] | None:
    """The first three counts where the server gives these alone, as usual; the rest costs ten times as much."""
    if len(usage) == 3:
        prompt, completion, total = usage.get("prompt_tokens"), usage.get("completion_tokens"), usage.get("total_tokens")
        if type(prompt) is int and type(completion) is int and type(total) is int:
            return prompt, completion, total
    return None


def _flat(usage: Mapping[str, Any]) -> dict[str, Any]:
    flat = dict(usage)
    for wrapper in _WRAPPERS:
        inner = flat.get(wrapper)
        if isinstance(inner, dict):
            flat = {**_flat(inner), **{key: value for key, value in flat.items() if key != wrapper}}
    return flat


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return value
