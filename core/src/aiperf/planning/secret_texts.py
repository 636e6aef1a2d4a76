"""The exact texts that are removed from what a server says: it may repeat a key or a cookie in an error."""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any
from urllib.parse import quote, quote_plus, unquote_plus

from aiperf.redaction import is_secret_field, secret_parameters

_LEAST = 8
"""Characters of a secret: a shorter text may stand anywhere by chance."""
_PLAIN = frozenset(("accept", "accept-encoding", "accept-language", "cache-control", "content-type", "user-agent"))
"""Headers whose values are no secrets, and stand in every answer."""


def secret_texts(
    headers: Mapping[str, str], options: Mapping[str, Mapping[str, Any]], urls: tuple[str, ...], extra: Mapping[str, Any]
) -> tuple[str, ...]:
    """Every secret of at least 8 characters as it is, in JSON, in a URL, as base64 and as hex, the longest first.

    *urls*: base URLs and the path.  *options*: the secret ones of plugins.
    """
    known = [*_of_headers(headers), *_strings(options), *_of_fields(extra)]
    known += [text for url in urls for text in secret_parameters(url)]
    long = {text for text in known if len(text) >= _LEAST}
    forms = {form for text in long for form in (text, json.dumps(text)[1:-1], quote(text, safe=""), unquote_plus(text))}
    forms |= {form for text in long for form in (quote_plus(text), *_encoded(text.encode()))}
    return tuple(sorted((form for form in forms if len(form) >= _LEAST), key=lambda form: (-len(form), form)))


def _encoded(secret: bytes) -> Iterator[str]:
    """The secret in hex, and in base64 wherever it stands in the text that was encoded.

    Three bytes make four characters: the first and the last may be of other bytes, too, and are left out.
    """
    yield secret.hex()
    for before in range(3):
        code = b64encode(bytes(before) + secret).decode()
        own = code[-(-before * 8 // 6) : (before + len(secret)) * 8 // 6]
        yield from (own, own.replace("+", "-").replace("/", "_"))


def _of_headers(headers: Mapping[str, str]) -> Iterator[str]:
    for name, value in headers.items():
        if name.lower() in _PLAIN:
            continue
        yield value
        if name.lower().endswith("-bin"):
            yield from _decoded(value)
        elif name.lower() == "cookie":
            yield from (cookie.partition("=")[2].strip() for cookie in value.split(";"))
        elif "auth" in name.lower():
            yield value.partition(" ")[2].strip()  # behind "Bearer"


def _decoded(value: str) -> Iterator[str]:
    """The texts in binary metadata of gRPC: base64, with or without padding, of several values between commas."""
    for part in value.split(","):
        with suppress(ValueError):  # no base64, or bytes that are no text
            yield b64decode(part.strip() + "=" * (-len(part.strip()) % 4), validate=True).decode()


def _of_fields(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for name, each in value.items():
            yield from [each] if is_secret_field(name, each) else _of_fields(each)
    elif isinstance(value, list):
        for each in value:
            yield from _of_fields(each)


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for each in value.values():
            yield from _strings(each)
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _strings(each)
