"""The server's own token counts under one set of names.

Keys and containers are those of real servers (OpenAI, Anthropic, Gemini, Bedrock and compatible ones).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from msgspec import Struct

_PROMPT = ("prompt_tokens", "input_tokens", "promptTokenCount", "inputTokens", "input_token_count")
_COMPLETION = ("completion_tokens", "output_tokens", "candidatesTokenCount", "outputTokens", "generated_token_count")
_TOTAL = ("total_tokens", "totalTokenCount", "totalTokens")
_CACHED = (
    "cache_read_input_tokens", "prompt_cache_hit_tokens", "cachedContentTokenCount", "cacheReadInputTokens", "cached_tokens",
)  # fmt: skip
_WRITTEN = ("cache_creation_input_tokens", "cacheWriteInputTokens")
_PROMPT_DETAILS = ("prompt_tokens_details", "input_tokens_details")
_COMPLETION_DETAILS = ("completion_tokens_details", "output_tokens_details")
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


def read_usage(usage: Mapping[str, Any]) -> Usage:
    """Normalise a usage object.

    Some servers (Anthropic, Bedrock) count cached input apart from ``input_tokens``: it is added.
    """
    if len(usage) == 3:  # usually three plain counts; the rest costs ten times as much
        prompt, completion, total = usage.get("prompt_tokens"), usage.get("completion_tokens"), usage.get("total_tokens")
        if type(prompt) is int and type(completion) is int and type(total) is int:
            return Usage(prompt, completion, total)
    flat = _flat(usage)
    prompt_key, prompt = _first(flat, _PROMPT)
    if prompt is not None and prompt_key in _SAYS_INPUT:
        prompt += sum(_whole(flat.get(key)) or 0 for key in _APART)
    cached = _nested(flat, _PROMPT_DETAILS, "cached_tokens")
    reasoning = _nested(flat, _COMPLETION_DETAILS, "reasoning_tokens")
    return Usage(
        prompt, _first(flat, _COMPLETION)[1], _first(flat, _TOTAL)[1],
        reasoning=reasoning if reasoning is not None else _whole(flat.get("thoughtsTokenCount")),
        cached=cached if cached is not None else _first(flat, _CACHED)[1],
        written=_first(flat, _WRITTEN)[1], missed=_whole(flat.get("prompt_cache_miss_tokens")),
        prompt_audio=_nested(flat, _PROMPT_DETAILS, "audio_tokens"),
        completion_audio=_nested(flat, _COMPLETION_DETAILS, "audio_tokens"),
        accepted=_nested(flat, _COMPLETION_DETAILS, "accepted_prediction_tokens"),
        rejected=_nested(flat, _COMPLETION_DETAILS, "rejected_prediction_tokens"),
        tool=_whole(flat.get("toolUsePromptTokenCount")), audio_s=_number(flat.get("prompt_audio_seconds")),
    )  # fmt: skip


def _flat(usage: Mapping[str, Any]) -> dict[str, Any]:
    flat = dict(usage)
    for wrapper in _WRAPPERS:
        inner = flat.get(wrapper)
        if isinstance(inner, dict):
            flat = {**_flat(inner), **{key: value for key, value in flat.items() if key != wrapper}}
    return flat


def _whole(value: Any) -> int | None:
    number = _number(value)
    return None if number is None else int(number)


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return value


def _first(flat: Mapping[str, Any], keys: tuple[str, ...]) -> tuple[str, int | None]:
    for key in keys:
        value = _whole(flat.get(key))
        if value is not None:
            return key, value
    return "", None


def _nested(flat: Mapping[str, Any], holders: tuple[str, ...], key: str) -> int | None:
    for holder in holders:
        inner = flat.get(holder)
        if isinstance(inner, dict) and (value := _whole(inner.get(key))) is not None:
            return value
    return None
