"""Faults of an answer, and the small language that asks for them.

``fail=500, cut=3, stall=5:0.4``: words separated by commas, in the ``X-Simulate`` header of one request or, with
``@SHARE`` behind, in ``--fault`` for a share of all.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from typing import Any

import msgspec
from msgspec import Struct

LINE_ENDS: dict[str, tuple[tuple[bytes, bytes], ...]] = {
    "lf": ((b"\n", b"\n"),),
    "crlf": ((b"\r\n", b"\r\n"),),
    "cr": ((b"\r", b"\r"),),
    # CR then LF would read as one line end, so that pair is left out.
    "mixed": ((b"\n", b"\n"), (b"\r\n", b"\r\n"), (b"\r", b"\r"), (b"\r\n", b"\n"), (b"\n", b"\r\n")),
}
"""Ends of an event's line and of the blank line after it, taken in turn."""

FRAMINGS = ("chunked", "eof")
BODIES = {"html": b"<html><body><h1>Bad Gateway</h1></body></html>\n", "empty": b""}

_NS = 1_000_000_000


class FaultError(ValueError):
    """An unknown word of the language; the message is a sentence."""


class Faults(Struct, frozen=True, omit_defaults=True):
    """How one answer is given.  Counts of chunks are of those with content.

    status: answer with this status instead, at once.  retry_after_s: header of a 429 or 503.
    silent: take the request and say nothing.  cut, reset: close, or reset, the connection after so many chunks.
    error: after so many chunks say an error in-band and end.  error_event: as an ``event: error``.
    stall_after, stall_ns: after so many chunks make a pause.  slow_first_ns: hold the first token, or the *status*, back.
    tokens, reasoning: length of the answer and of its reasoning, whatever the request and the options say.
    call: the answer calls the request's first tool.  items: vectors, scores, … in the answer, whatever was asked.
    body: in place of the answer, ``html`` or nothing at all (``empty``).  pad: bytes that the first chunk is longer.
    comments: a comment before each event, and one behind the headers.  names: events have their names.
    compressed: messages of gRPC are marked as compressed, with ``gzip``, or with nothing (``identity``).  Of a call, *done* is
    its status, *cut* closes the connection and *reset* the stream.
    job: the last status of the job that the answer names; ``lost`` answers 404 to polls.  film: its film is ``missing``, or its
    connection is ``cut`` in the middle.
    """

    status: int | None = None
    retry_after_s: float | None = None
    silent: bool = False
    cut: int | None = None
    reset: int | None = None
    error: int | None = None
    error_event: int | None = None
    stall_after: int | None = None
    stall_ns: int = 0
    slow_first_ns: int = 0
    tokens: int | None = None
    reasoning: int | None = None
    tokens_per_chunk: int | None = None
    lines: str | None = None
    framing: str | None = None
    done: bool = True
    usage: bool = True
    call: bool = False
    items: int | None = None
    body: str | None = None
    pad: int = 0
    comments: bool = False
    names: bool = True
    compressed: str | None = None
    job: str | None = None
    film: str | None = None

    @property
    def refusal(self) -> str:
        """What is said with *status*."""
        return f"the simulator was told to fail with status {self.status}"

    def over(self, below: Faults) -> Faults:
        """Both together; these faults win where both set a field."""
        return msgspec.structs.replace(below, **changes(self))


def changes(faults: Faults) -> dict[str, Any]:
    """The fields that differ from an answer without faults."""
    plain = Faults()
    return {name: value for name in Faults.__struct_fields__ if (value := getattr(faults, name)) != getattr(plain, name)}


class Odds(Struct, frozen=True):
    """Faults, and the share of requests that have them."""

    faults: Faults
    share: float


def parse(text: str) -> Faults:
    """The faults that *text* asks for.

    Raises:
        FaultError: A word is unknown or its value out of range.
    """
    fields: dict[str, Any] = {}
    for word in text.replace(";", ",").split(","):
        key, _, value = word.strip().partition("=")
        if not key:
            continue
        reader = _WORDS.get(key.strip().lower().replace("-", "_"))
        if reader is None:
            raise FaultError(f"{word.strip()!r} is no fault; known are {', '.join(_FORMS)}")
        form, read = reader
        try:
            fields.update(read(value.strip()))
        except ValueError as exc:
            raise FaultError(f"{word.strip()!r} can't be read: {exc}; it is written {form}") from exc
    return Faults(**fields)


def parse_odds(text: str) -> Odds:
    """``SPEC`` or ``SPEC@SHARE``.

    Raises:
        FaultError: As ``parse``, or the share is not from 0 to 1.
    """
    spec, mark, share = text.partition("@")
    if not mark:
        return Odds(parse(spec), 1.0)
    try:
        number = float(share)
    except ValueError:
        number = -1.0
    if not 0 <= number <= 1:
        raise FaultError(f"{share!r} in {text!r} is no share: a number from 0 to 1 is")
    return Odds(parse(spec), number)


def draw(odds: Iterable[Odds], dice: random.Random) -> Faults:
    """The faults of the next request.  Every fault takes one draw, hit or not, so that the draws stay independent."""
    hit = Faults()
    for fault in odds:
        if dice.random() < fault.share:
            hit = fault.faults.over(hit)
    return hit


def _count(field: str, least: int = 0) -> Callable[[str], dict[str, Any]]:
    def read(value: str) -> dict[str, Any]:
        number = int(value)
        if number < least:
            raise ValueError(f"{number} is less than {least}")
        return {field: number}

    return read


def _seconds(value: str) -> float:
    number = float(value)
    if not 0 <= number < 1e9:
        raise ValueError(f"{value} is no time in seconds")
    return number


def _status(value: str) -> dict[str, Any]:
    number = int(value)
    if not 400 <= number <= 599:
        raise ValueError(f"{number} is no status of a failure, 400 to 599")
    return {"status": number}


def _stall(value: str) -> dict[str, Any]:
    chunks, _, seconds = value.partition(":")
    return _count("stall_after", 1)(chunks) | {"stall_ns": round(_seconds(seconds) * _NS)}


def _one_of(field: str, words: Iterable[str]) -> Callable[[str], dict[str, Any]]:
    def read(value: str) -> dict[str, Any]:
        if value not in words:
            raise ValueError(f"{value!r} is none of {', '.join(words)}")
        return {field: value}

    return read


def _switch(field: str, on: bool) -> Callable[[str], dict[str, Any]]:
    def read(value: str) -> dict[str, Any]:
        if value:
            raise ValueError("it takes no value")
        return {field: on}

    return read


_WORDS: dict[str, tuple[str, Callable[[str], dict[str, Any]]]] = {
    "fail": ("fail=STATUS", _status),
    "status": ("status=STATUS", _status),
    "retry_after": ("retry_after=SECONDS", lambda value: {"retry_after_s": _seconds(value)}),
    "silent": ("silent", _switch("silent", True)),
    "cut": ("cut=CHUNKS", _count("cut")),
    "reset": ("reset=CHUNKS", _count("reset")),
    "error": ("error=CHUNKS", _count("error")),
    "error_event": ("error_event=CHUNKS", _count("error_event")),
    "stall": ("stall=CHUNKS:SECONDS", _stall),
    "slow_first": ("slow_first=SECONDS", lambda value: {"slow_first_ns": round(_seconds(value) * _NS)}),
    "tokens": ("tokens=N", _count("tokens", 1)),
    "reasoning": ("reasoning=N", _count("reasoning")),
    "tokens_per_chunk": ("tokens_per_chunk=N", _count("tokens_per_chunk", 1)),
    "lines": ("lines=lf|crlf|cr|mixed", _one_of("lines", LINE_ENDS)),
    "framing": ("framing=chunked|eof", _one_of("framing", FRAMINGS)),
    "no_done": ("no_done", _switch("done", False)),
    "no_usage": ("no_usage", _switch("usage", False)),
    "call": ("call", _switch("call", True)),
    "items": ("items=N", _count("items")),
    "body": ("body=html|empty", _one_of("body", BODIES)),
    "pad": ("pad=BYTES", _count("pad", 1)),
    "comments": ("comments", _switch("comments", True)),
    "job": ("job=STATUS", lambda value: {"job": value or "failed"}),
    "film": ("film=cut|missing", _one_of("film", ("cut", "missing"))),
    "no_names": ("no_names", _switch("names", False)),
    "compressed": ("compressed=gzip|identity", _one_of("compressed", ("gzip", "identity"))),
}
_FORMS = tuple(form for form, _ in _WORDS.values())
