"""The words by which an error tells that a prompt was longer than the model's context."""

from __future__ import annotations

import json
import os

from aiperf import ConfigError

WORDS = ("context length", "maximum context", "context_length_exceeded", "prompt is too long")
_VARIABLE = "AIPERF_AGENTX_CONTEXT_OVERFLOW_SUBSTRINGS"


def overflow_words() -> tuple[str, ...]:
    """In small letters; those of the variable where it is set.

    Raises:
        ConfigError: It is no JSON list of texts.
    """
    text = os.environ.get(_VARIABLE)
    if text is None:
        return WORDS
    try:
        words = json.loads(text)
    except ValueError:
        words = None
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        raise ConfigError(f"{_VARIABLE} is no JSON list of texts: {text!r}", 'write ["context length"], or [] for none')
    return tuple(word.lower() for word in words if word)
