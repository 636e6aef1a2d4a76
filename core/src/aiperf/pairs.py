"""``KEY:VALUE`` as people type it: fields for request bodies, and headers."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping
from typing import Any

from aiperf.descriptor import REDACTED
from aiperf.errors import ConfigError

_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")  # RFC 9110, 5.6.2
_INTEGER = re.compile(r"[+-]?[0-9]+")
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_WORDS: Mapping[str, Any] = {"true": True, "false": False, "none": None, "null": None}
_CREDENTIAL = re.compile(
    r"authori[sz]ation|cookie|secret|passw|credential|signature|api[-_]?key|(?:auth|access|security|session|csrf)[-_]?token",
    re.IGNORECASE,
)
_FRAMING = ("content-length", "transfer-encoding", "connection", "x-request-id")
_WHOLE = "payload_template"


def body_fields(text: str) -> dict[str, Any]:
    """One ``--extra-inputs``: a JSON object, or pairs split at commas, each at its first colon.

    A value may be JSON, commas and all.  What doesn't split cleanly, and a ``payload_template``, is one pair.

    Raises:
        ConfigError: Neither.
    """
    text = text.strip()
    if text.startswith("{"):
        return _json_object(text)
    pairs = None if text.partition(":")[0].strip() == _WHOLE else _split(text)
    if pairs is None:
        key, colon, value = text.partition(":")
        if not colon or not key.strip():
            hint = f"write {text.replace('=', ':', 1)}" if "=" in text else "write temperature:0.7, or one JSON object"
            raise ConfigError(f"{text!r} is not KEY:VALUE", hint)
        pairs = {key.strip(): value.strip() if key.strip() == _WHOLE else _coerced(value.strip())}
    return pairs


def headers(text: str) -> dict[str, str]:
    """One ``--header``: ``Name:Value``, split at the first colon and otherwise opaque, or a JSON object.

    Raises:
        ConfigError: Neither, or not a header; never shows a value.
    """
    if text.lstrip().startswith("{"):
        given = _json_object(text, secret=True)
        found = {name: value if isinstance(value, str) else json.dumps(value) for name, value in given.items()}
    else:
        name, colon, value = text.partition(":")
        if not colon:
            raise ConfigError("a header is NAME:VALUE, and what was given has no colon", "for example 'X-Team: perf'")
        found = {name.strip(): value.strip()}
    for name, value in found.items():
        check_header_name(name)
        if name.lower() in _FRAMING:
            raise ConfigError(f"{name} is set by the transport, for each request", "drop it")
        check_header_value(name, value)
    return found


def check_header_name(name: str) -> None:
    """Raises ConfigError where no header can be called that."""
    if not _HEADER_NAME.fullmatch(name):
        raise ConfigError(f"{name!r} is no header name", "letters, digits and -_.!#$%&'*+^`|~ can be in it")


def check_header_value(name: str, value: str) -> None:
    """Raises ConfigError where the value would break the request's head; never shows it."""
    if not value.isprintable() and any((ord(letter) < 32 and letter != "\t") or ord(letter) == 127 for letter in value):
        raise ConfigError(f"the value of {name} has a line break or another control character in it")
    try:
        value.encode("latin-1")
    except UnicodeEncodeError:
        raise ConfigError(f"the value of {name} has a character that no header can carry (beyond Latin-1)") from None


def merged(below: Mapping[str, str], above: Mapping[str, str]) -> dict[str, str]:
    """*above* over *below*, names compared without case."""
    names = {name.lower() for name in above}
    return {name: value for name, value in below.items() if name.lower() not in names} | dict(above)


def shown(headers: Mapping[str, str], hidden: Iterable[str] = ()) -> dict[str, str]:
    """Headers as they may be written: neither the values of those in *hidden* nor of what looks like a credential."""
    names = {name.lower() for name in hidden}
    return {
        name: REDACTED if name.lower() in names or _CREDENTIAL.search(name) else value for name, value in headers.items()
    }


def _json_object(text: str, *, secret: bool = False) -> dict[str, Any]:
    try:
        found = json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        shown = "what was given" if secret else repr(text)
        raise ConfigError(f"{shown} is no JSON object: {error}") from None
    assert isinstance(found, dict)  # it begins with a brace, and nothing follows it
    return found


def _no_constant(word: str) -> None:
    raise ValueError(f"{word} is no JSON")


def _split(text: str) -> dict[str, Any] | None:
    """The pairs, or None where a piece has no colon."""
    pairs: dict[str, Any] = {}
    while text.strip(" ,"):
        text = text.lstrip(" ,")
        key, colon, rest = text.partition(":")
        if not colon or not key.strip() or "," in key:
            return None
        rest = rest.lstrip()
        if rest[:1] in ("{", "[", '"'):
            try:
                value, end = json.JSONDecoder(parse_constant=_no_constant).raw_decode(rest)
            except (ValueError, RecursionError):
                end = -1
            if end >= 0 and rest[end:].lstrip()[:1] in ("", ","):
                pairs[key.strip()], text = value, rest[end:].lstrip()
                continue
        piece, _, text = rest.partition(",")
        pairs[key.strip()] = _coerced(piece.strip())
    return pairs or None


def _coerced(word: str) -> Any:
    """A word as the JSON value a person means by it."""
    if word.lower() in _WORDS:
        return _WORDS[word.lower()]
    if _INTEGER.fullmatch(word) and -(2**63) <= int(word) < 2**64:
        return int(word)
    if _NUMBER.fullmatch(word) and math.isfinite(float(word)):
        return float(word)
    return word
