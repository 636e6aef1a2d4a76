"""The {{ cookiecutter.name }} dialect: what goes out, and what is made of what comes back."""

from __future__ import annotations

from typing import Any, ClassVar

import msgspec
from aiperf import Message, Turn
from aiperf.testing import EndpointContract

from {{ cookiecutter.__module }} import {{ cookiecutter.__class }}


class TestItKeepsTheContract(EndpointContract):
    endpoint = {{ cookiecutter.__class }}()
    transcript = (
        b'{"choices":[{"delta":{"role":"assistant"}}]}',
        b'{"choices":[{"delta":{"reasoning_content":"Hm. "}}]}',
        b'{"choices":[{"delta":{"content":"Hi"}}]}',
        b'{"choices":[{"delta":{"content":" there"},"finish_reason":"stop"}]}',
        b'{"choices":[],"usage":{"completion_tokens":4}}',
        b"[DONE]",
    )
    answer = "Hm. Hi there"
    usage: ClassVar[dict[str, Any] | None] = {"completion_tokens": 4}
    whole = b'{"choices":[{"message":{"content":"Hi there","reasoning_content":"Hm. "}}]}'
    silent = (b'{"choices":[{"delta":{"role":"assistant"}}]}', b'{"choices":[{"delta":{}}]}', b"[DONE]")


def test_what_came_before_is_sent_along() -> None:
    turn = Turn(texts=("And you?",), model="m1", stream=True, max_tokens=7, history=(Message("system", ("Be brief.",)),))
    assert msgspec.json.decode({{ cookiecutter.__class }}().encode(turn).body) == {
        "model": "m1",
        "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "And you?"}],
        "stream": True,
        "stream_options": {"include_usage": True},
        "max_tokens": 7,
    }


def test_extra_inputs_have_the_last_word() -> None:
    turn = Turn(texts=("Hi",), model="m1", max_tokens=7, extra={"max_tokens": 9, "temperature": 0})
    body = msgspec.json.decode({{ cookiecutter.__class }}().encode(turn).body)
    assert (body["max_tokens"], body["temperature"]) == (9, 0)
