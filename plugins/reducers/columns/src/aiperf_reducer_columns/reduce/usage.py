"""The server's own token counts under one set of names.

Keys and containers are those of real servers (OpenAI, Anthropic, Gemini, Bedrock and compatible ones).  A count that is no
count (a text, a negative number, a part of a token) is not used, and the answer is one whose counts can't be read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

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
_COUNTS_ALONE = ("usage", "usageMetadata")
"""Wrappers that hold counts and nothing else."""
_MOST = 1 << 31
"""No answer has so many tokens: a count from here on is damaged."""
_SECONDS = "prompt_audio_seconds"


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


_OF_PROMPT = ("prompt", "cached", "written", "missed", "prompt_audio", "tool", "audio_s")
_OF_COMPLETION = ("completion", "reasoning", "completion_audio", "accepted", "rejected")


class Counted(NamedTuple):
    """Counts of an answer.  unread: the server sent counts that are none, or that can't be told apart."""

    usage: Usage
    unread: bool = False


def merged_usage(usages: Sequence[Any]) -> dict[str, Any] | None:
    """The usage of an answer whose events have these, in order: nested, key by key, later values win.  A value of None says
    nothing.  One that is no object stands under the name ``usage``, where it can't be read."""
    if not usages:
        return None
    last = usages[-1]
    if len(usages) == 1 and isinstance(last, dict):
        return last
    usages = [usage if isinstance(usage, dict) else {"usage": usage} for usage in usages]
    last = usages[-1]
    # The usual counts with each chunk: plain numbers under the same keys.
    if all(type(value) is int for value in last.values()) and all(map(set(last).issuperset, usages)):
        return dict(last)
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
    """The counts of a usage object, without those that can't be read."""
    return counted(usage).usage


def counted(usage: Mapping[str, Any]) -> Counted:
    """Normalise a usage object.

    Some servers (Anthropic, Bedrock) count cached input apart from ``input_tokens``: it is added.
    """
    plain = plain_counts(usage)
    if plain is not None:
        return Counted(Usage(*plain))
    flat = _flat(usage)
    counts: dict[str, int] = {}
    unread = any(isinstance(holder, dict) and holder.get(name) is not None and not isinstance(holder[name], dict)
                 for holder in (usage, usage.get("response"), usage.get("message")) for name in _COUNTS_ALONE)  # fmt: skip
    for name, places in _SPLIT_PLACES.items():
        for key, inner_key in places:
            value = flat.get(key)
            if inner_key and isinstance(value, dict):
                value = value.get(inner_key)
            if value is None:
                continue
            number = _count(value)
            if number is None:
                unread = True
            elif name not in counts:
                apart = [_count(flat.get(each)) or 0 for each in (_APART if key in _SAYS_INPUT else ())]
                counts[name] = number + sum(apart)
    seconds = flat.get(_SECONDS)
    audio_s = _duration(seconds)
    return Counted(Usage(**counts, audio_s=audio_s), unread or (seconds is not None and audio_s is None))


def plain_counts(usage: Mapping[str, Any]) -> tuple[int, int, int] | None:
    """The first three counts where the server gives these alone, as usual; the rest costs ten times as much."""
    if len(usage) == 3:
        prompt, completion, total = usage.get("prompt_tokens"), usage.get("completion_tokens"), usage.get("total_tokens")
        if type(prompt) is not int or type(completion) is not int or type(total) is not int:
            return None
        if 0 <= prompt < _MOST and 0 <= completion < _MOST and 0 <= total < _MOST:
            return prompt, completion, total
    return None


def added(usages: Sequence[Usage], prompts: int) -> Counted:
    """The counts of an answer with several choices, of which each has its own.

    Completions are added.  Choices of one prompt all count that prompt, which the server had once; *prompts*: of how many the
    choices are.  What they count differently of the same prompt is unknown.
    """
    counts: dict[str, Any] = {}
    unread = False
    for name in _OF_COMPLETION:
        values = [getattr(usage, name) for usage in usages]
        if None not in values:
            counts[name] = sum(values)
    each, rest = divmod(len(usages), prompts)
    for name in _OF_PROMPT:
        values = [getattr(usage, name) for usage in usages]
        if None in values:
            continue
        if not rest and each == 1:
            counts[name] = sum(values)
        elif len(set(values)) == 1 and not rest:
            counts[name] = values[0] * prompts
        else:
            unread = unread or name == "prompt"
    if "prompt" in counts and "completion" in counts:
        counts["total"] = counts["prompt"] + counts["completion"]
    return Counted(Usage(**counts), unread)


def _flat(usage: Mapping[str, Any]) -> dict[str, Any]:
    flat = dict(usage)
    for wrapper in _WRAPPERS:
        inner = flat.get(wrapper)
        if isinstance(inner, dict):
            flat = {**_flat(inner), **{key: value for key, value in flat.items() if key != wrapper}}
    return flat


def _count(value: Any) -> int | None:
    """A number of tokens; None where the value is none."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < _MOST:  # NaN is neither
        return None
    return int(value) if value == int(value) else None


def _duration(value: Any) -> float | None:
    return None if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < _MOST else float(value)
