"""The server's own counts under every name servers give them."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from aiperf_reducer_columns.reduce.usage import Usage, merged_usage, read_usage

PROMPT = ("prompt_tokens", "input_tokens", "promptTokenCount", "inputTokens", "input_token_count")
COMPLETION = ("completion_tokens", "output_tokens", "candidatesTokenCount", "outputTokens", "generated_token_count")
TOTAL = ("total_tokens", "totalTokenCount", "totalTokens")
CACHED = (
    "cache_read_input_tokens", "prompt_cache_hit_tokens", "cachedContentTokenCount", "cacheReadInputTokens", "cached_tokens",
)  # fmt: skip
NAMES = {"prompt": PROMPT, "completion": COMPLETION, "total": TOTAL, "cached": CACHED}


@pytest.mark.parametrize(("field", "key"), [(field, key) for field, keys in NAMES.items() for key in keys])
def test_every_name_of_a_count_is_known(field: str, key: str) -> None:
    assert getattr(read_usage({key: 7}), field) == 7


@pytest.mark.parametrize(("field", "keys"), NAMES.items())
def test_of_several_names_the_first_of_the_list_wins(field: str, keys: tuple[str, ...]) -> None:
    said = {key: place for place, key in enumerate(keys, 1)}
    assert getattr(read_usage(dict(reversed(said.items()))), field) == 1


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ({"prompt_tokens_details": {"cached_tokens": 3}}, Usage(cached=3)),
        ({"input_tokens_details": {"cached_tokens": 3}}, Usage(cached=3)),
        ({"completion_tokens_details": {"reasoning_tokens": 4}}, Usage(reasoning=4)),
        ({"output_tokens_details": {"reasoning_tokens": 0}}, Usage(reasoning=0)),  # zero is said, and kept
        ({"thoughtsTokenCount": 5}, Usage(reasoning=5)),
        ({"cacheWriteInputTokens": 6}, Usage(written=6)),
        ({"prompt_cache_miss_tokens": 7}, Usage(missed=7)),
        ({"prompt_tokens_details": {"audio_tokens": 8}}, Usage(prompt_audio=8)),
        ({"output_tokens_details": {"audio_tokens": 9}}, Usage(completion_audio=9)),
        (
            {"completion_tokens_details": {"accepted_prediction_tokens": 2, "rejected_prediction_tokens": 0}},
            Usage(accepted=2, rejected=0),
        ),
        ({"toolUsePromptTokenCount": 4}, Usage(tool=4)),
        ({"prompt_audio_seconds": 2.5}, Usage(audio_s=2.5)),
        ({"prompt_audio_seconds": True}, Usage()),
    ],
)
def test_details_are_found_where_servers_put_them(said: dict[str, Any], expected: Usage) -> None:
    assert read_usage(said) == expected


@pytest.mark.parametrize(
    "wrapped",
    [
        {"usage": {"prompt_tokens": 9}},
        {"response": {"usage": {"input_tokens": 9}}},
        {"message": {"usage": {"input_tokens": 9}}},
        {"usageMetadata": {"promptTokenCount": 9}},
        {"meta": {"tokens": {"inputTokens": 9}}},
        {"tokens": {"input_token_count": 9}},
    ],
)
def test_containers_are_opened(wrapped: dict[str, Any]) -> None:
    assert read_usage(wrapped) == Usage(prompt=9)


def test_what_stands_outside_a_container_wins_over_what_is_in_it() -> None:
    assert read_usage({"usage": {"prompt_tokens": 1, "total_tokens": 3}, "prompt_tokens": 2}) == Usage(prompt=2, total=3)


def test_cached_input_that_is_counted_apart_is_added_back() -> None:
    anthropic = {"input_tokens": 10, "cache_read_input_tokens": 80, "cache_creation_input_tokens": 5, "output_tokens": 3}
    assert read_usage(anthropic) == Usage(prompt=95, completion=3, cached=80, written=5)
    bedrock = {"inputTokens": 10, "cacheReadInputTokens": 80, "cacheWriteInputTokens": 5, "outputTokens": 3, "totalTokens": 98}
    assert read_usage(bedrock) == Usage(prompt=95, completion=3, total=98, cached=80, written=5)


def test_cached_input_that_is_part_of_the_prompt_is_not_added() -> None:
    openai = {"prompt_tokens": 100, "prompt_tokens_details": {"cached_tokens": 80}, "completion_tokens": 3}
    assert read_usage(openai) == Usage(prompt=100, completion=3, cached=80)
    responses = {"input_tokens": 100, "input_tokens_details": {"cached_tokens": 80}}
    assert read_usage(responses) == Usage(prompt=100, cached=80)


@pytest.mark.parametrize("value", [None, "12", True, [], {}, float("nan"), float("inf")])
def test_what_is_no_count_is_unknown(value: Any) -> None:
    assert read_usage({"prompt_tokens": value, "completion_tokens_details": value, "usage": value}) == Usage()


def test_a_count_that_is_unknown_leaves_the_next_name_to_say_it() -> None:
    assert read_usage({"prompt_tokens": None, "input_token_count": 4.0}) == Usage(prompt=4)


@pytest.mark.parametrize(
    ("said", "merged"),
    [
        ([], None),
        ([{"a": 1}], {"a": 1}),
        ([{"a": 1, "b": 2}, {"a": 3, "b": 4}], {"a": 3, "b": 4}),
        ([{"a": 1, "b": 2}, {"a": 3}], {"a": 3, "b": 2}),
        ([{"a": 1}, {"a": None, "b": 2}], {"a": 1, "b": 2}),
        ([{"a": None}, {"b": 2}], {"a": None, "b": 2}),
        ([{"a": {"x": 1, "y": 2}}, {"a": {"x": None, "y": 3}}, {"a": None}], {"a": {"x": 1, "y": 3}}),
        ([{"a": None}, {"a": {"x": 1}}], {"a": {"x": 1}}),
        ([{"a": {"x": 1}}, {"a": 5}], {"a": 5}),
    ],
)
def test_the_usage_of_several_events_is_one(said: list[dict[str, Any]], merged: dict[str, Any] | None) -> None:
    before = copy.deepcopy(said)
    assert merged_usage(said) == merged
    assert said == before
