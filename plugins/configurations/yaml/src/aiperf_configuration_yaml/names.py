"""Keys of a file, and the places that they stand for."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")

SAME = {
    "model": "models", "endpoint.url": "endpoint.urls", "datasets": "dataset", "dataset.isl": "dataset.prompts.isl",
    "dataset.osl": "dataset.prompts.osl",
}
"""Synonyms of places."""
SHORT = {"models": "models.items", "tokenizer": "tokenizer.name", "profiling.rate_series": "profiling.rate_series.path"}
"""The place of a scalar where a mapping may stand; a distribution's is its mean, a ramp's its duration."""
KINDS = ("warmup", "profiling")
ALIASES = (
    "concurrency", "prefill_concurrency", "rate", "requests", "duration", "sessions", "users", "smoothness", "grace_period",
    "concurrency_ramp", "prefill_ramp", "rate_ramp", "rate_series",
)  # fmt: skip
"""Keys of the profiling phase that a sweep may name by themselves."""


@lru_cache(4096)  # the keys of a file are read for each cell of its sweep
def snake(key: str) -> str:
    return _CAMEL.sub("_", key).lower().replace("-", "_")


def snaked(value: Any) -> Any:
    if isinstance(value, dict):
        return {snake(key): snaked(below) for key, below in value.items()}
    return [snaked(one) for one in value] if isinstance(value, list) else value
