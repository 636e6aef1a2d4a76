"""Token counts that are none, at every place where a server of any dialect may say them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from aiperf.testing import EndpointContract
from aiperf_reducer_columns.reduce.answer import Answer, read_answer
from aiperf_reducer_columns.reduce.usage import Counted
from msgspec.structs import astuple
from test_bad_answers import STREAMING, TYPES, framed

COUNTS = frozenset((
    "prompt_tokens", "input_tokens", "completion_tokens", "output_tokens", "total_tokens", "cached_tokens", "reasoning_tokens",
    "prompt_eval_count", "eval_count", "generated_tokens", "input_length", "cache_read_input_tokens", "audio_tokens",
))  # fmt: skip
HOLDERS = frozenset(("usage", "prompt_tokens_details", "completion_tokens_details", "input_tokens_details"))
BAD = {
    "a negative number": -1, "a part of a token": 2.5, "a text": "7", "an empty text": "", "true": True, "false": False,
    "an object": {"a": 1}, "no member": {}, "a list": [1], "no element": [], "a huge number": 1e300, "64 bits": 1 << 63,
    "more bits": 10**30,
}  # fmt: skip
NO_OBJECTS = {"a number": 7, "a text": "seven", "true": True, "a list": [1], "a part": 0.5}
NOTHING = {"zero": 0, "an empty text": "", "false": False, "no element": [], "no member": {}}
"""What says no more than null, in place of the whole usage."""
HAVE = sorted(name for name, kind in TYPES.items() if kind.usage)


def places(document: Any, names: frozenset[str]) -> Iterator[tuple[Any, ...]]:
    """Paths of the members of a document that have one of these names."""
    members = document.items() if isinstance(document, dict) else enumerate(document) if isinstance(document, list) else ()
    for name, value in members:
        if name in names and value is not None:
            yield (name,)
        yield from ((name, *rest) for rest in places(value, names))


def changed(body: bytes, names: frozenset[str], value: Any) -> Iterator[bytes]:
    """The document with *value* at each place of these names, one at a time."""
    for path in places(json.loads(body), names):
        document = json.loads(body)
        holder = document
        for part in path[:-1]:
            holder = holder[part]
        holder[path[-1]] = value
        yield json.dumps(document).encode()


def whole(kind: type[EndpointContract], names: frozenset[str], value: Any) -> Iterator[Answer]:
    for body in changed(kind.whole or kind.transcript[0], names, value):
        yield read_answer([(10, 11, 0, body)], kind.endpoint.reader, streamed=False)


def streamed(kind: type[EndpointContract], names: frozenset[str], value: Any) -> Iterator[Answer]:
    events, endpoint = list(kind.transcript), kind.endpoint
    given = kind.names or [None] * len(events)
    for at, event in enumerate(events):
        if not event.startswith(b"{"):
            continue
        for other in changed(event, names, value):
            sent = [*events[:at], other, *events[at + 1 :]]
            bodies = [framed(kind, each, name) for each, name in zip(sent, given, strict=True)]
            reads = [(10 * n, 10 * n + 1, 0, body) for n, body in enumerate(bodies, 1)]
            yield read_answer(
                reads, endpoint.reader, streamed=True, repeats=endpoint.repeats_envelope, framing=endpoint.framing
            )


def sound(counted: Counted) -> bool:
    return all(count is None or 0 <= count < 1 << 31 for count in astuple(counted.usage))


Read = Callable[[type[EndpointContract], frozenset[str], Any], Iterator[Answer]]
CASES = [*((name, whole) for name in HAVE), *((name, streamed) for name in HAVE if name in STREAMING)]
OWN = [(name, read) for name, read in CASES if name != "template"]  # whose answers may call anything usage
IDS = [f"{name}-{read.__name__}" for name, read in CASES]


@pytest.mark.parametrize("value", BAD.values(), ids=BAD)
@pytest.mark.parametrize(("name", "read"), CASES, ids=IDS)
def test_a_count_that_is_none_fails_no_answer_and_is_not_used(name: str, read: Read, value: Any) -> None:
    for answer in read(TYPES[name], COUNTS, value):
        assert answer.error is None and answer.stamps and not answer.unreadable
        assert sound(answer.counts())


@pytest.mark.parametrize("value", BAD.values(), ids=BAD)
@pytest.mark.parametrize(("name", "read"), CASES, ids=IDS)
def test_a_count_that_is_none_in_the_last_usage_is_noticed(name: str, read: Read, value: Any) -> None:
    told = [answer.counts().unread for answer in read(TYPES[name], COUNTS, value)]
    assert not told or told[-1]


@pytest.mark.parametrize("value", NO_OBJECTS.values(), ids=NO_OBJECTS)
@pytest.mark.parametrize(("name", "read"), OWN, ids=[f"{name}-{read.__name__}" for name, read in OWN])
def test_usage_that_is_no_object_fails_no_answer_and_is_noticed(name: str, read: Read, value: Any) -> None:
    answers = list(read(TYPES[name], HOLDERS, value))
    for answer in answers:
        assert answer.error is None and answer.stamps and not answer.unreadable
        assert sound(answer.counts())
    assert not answers or any(answer.counts().unread for answer in answers)


@pytest.mark.parametrize(("name", "read"), CASES, ids=IDS)
def test_a_count_that_is_null_is_none_and_nothing_is_wrong(name: str, read: Read) -> None:
    for answer in read(TYPES[name], COUNTS, None):
        assert answer.error is None and answer.stamps and not answer.counts().unread


@pytest.mark.parametrize("value", NOTHING.values(), ids=NOTHING)
@pytest.mark.parametrize(("name", "read"), OWN, ids=[f"{name}-{read.__name__}" for name, read in OWN])
def test_usage_that_says_nothing_fails_no_answer(name: str, read: Read, value: Any) -> None:
    for answer in read(TYPES[name], HOLDERS, value):
        assert answer.error is None and answer.stamps and not answer.unreadable
        assert sound(answer.counts())
