"""A stream's events at the price of their texts.

Nearly all events of an answer differ in one JSON string alone, the piece of text; what stands around it, the envelope, is the
same bytes.  Where an endpoint promises that such events say nothing but that string (``Endpoint.repeats_envelope``), one of
them is decoded to find the string in it, the others are cut out and their strings read together; the last is decoded, too, and
must agree.  A third of what decoding each takes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import repeat
from typing import Any, NamedTuple

import msgspec

from aiperf.model import Delta

_MISSES = 3
"""Events without a neighbour alike after which the rest of the answer isn't tried."""
_NOTHING = Delta()
_strings = msgspec.json.Decoder(list[str]).decode
_encoded = msgspec.json.Encoder().encode


class Opened(NamedTuple):
    """The texts and reasonings of all events, what else some said, in order, and the usage that the first content told."""

    texts: list[str]
    reasonings: list[str]
    usages: list[dict[str, Any] | None]
    finishes: list[str | None]
    extras: list[dict[str, float] | None]
    first_usage: dict[str, Any] | None


def opened(events: Sequence[bytes], decode: Callable[[bytes], Delta | None]) -> Opened | None:
    """What the events say, as *decode* would; None where each has to be decoded."""
    found = Opened([""] * len(events), [""] * len(events), [], [], [], None)
    shown = False
    at = misses = 0
    while at < len(events):
        delta = decode(events[at]) or _NOTHING
        if delta.tool or delta.items:
            return None
        found.texts[at], found.reasonings[at] = delta.text, delta.reasoning
        found.usages.append(delta.usage)
        found.finishes.append(delta.finish)
        found.extras.append(delta.extra)
        at += 1
        if not shown and (delta.text or delta.reasoning):
            shown, found = True, found._replace(first_usage=delta.usage)
        thought = not delta.text
        string = delta.reasoning if thought else delta.text
        if not string or delta != _saying(string, thought=thought):
            continue
        strings = _like(events[at - 1], string, events[at:])
        if not strings:
            misses += 1
            if misses == _MISSES:
                return None
            continue
        end = at + len(strings)
        if decode(events[end - 1]) != _saying(strings[-1], thought=thought):
            return None
        (found.reasonings if thought else found.texts)[at:end] = strings
        at = end
    return found


def _saying(string: str, *, thought: bool) -> Delta:
    return Delta(reasoning=string) if thought else Delta(string)


def _like(event: bytes, string: str, following: Sequence[bytes]) -> list[str]:
    """The strings of those that follow *event* directly in the same envelope; *string* is its own."""
    quoted = _encoded(string)
    begin = event.find(quoted)
    if begin < 0 or event.find(quoted, begin + 1) >= 0:
        return []
    before, behind = event[: begin + 1], event[begin + len(quoted) - 1 :]
    if not following or not following[0].startswith(before):
        return []
    same = min(_until(bytes.startswith, following, before), _until(bytes.endswith, following, behind))
    events = following[:same]
    if not events or min(map(len, events)) < len(before) + len(behind):
        return []
    first, last = len(before), -len(behind)
    inside = b'","'.join([each[first:last] for each in events])
    # A backslash at an end would take the quote behind it into the string.
    if inside.endswith(b"\\") or b'\\","' in inside:
        return []
    try:
        strings = _strings(b'["%b"]' % inside)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return []
    return strings if len(strings) == len(events) else []


def _until(fits: Callable[[bytes, bytes], bool], events: Sequence[bytes], part: bytes) -> int:
    """How many of the first events fit."""
    fitting = list(map(fits, events, repeat(part)))
    return fitting.index(False) if False in fitting else len(fitting)
