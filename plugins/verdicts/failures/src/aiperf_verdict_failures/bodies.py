"""What a server says in the body of an error."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
from aiperf import ErrorDetails

_MOST_CHARACTERS = 200
"""Of a server's own words in a sentence."""


def said(error: ErrorDetails) -> str:
    """The server's own words, behind a colon; "" where it says nothing."""
    text = " ".join(_message(error.message).split())
    short = text if len(text) <= _MOST_CHARACTERS else f"{text[:_MOST_CHARACTERS]}…"
    return f"; it says: {short}" if short else ""


def _message(body: str) -> str:
    """The sentence in an error body of the usual forms; the body itself where it has none."""
    try:
        value = msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError):
        return "" if body.lstrip().startswith("<") else body
    for name in ("error", "detail", "message"):
        value = value.get(name, value) if isinstance(value, dict) else value
    if isinstance(value, list):
        value = ", ".join(_field_errors(value)) or None
    return value if isinstance(value, str) else body


def _field_errors(errors: list[Any]) -> Iterator[str]:
    """The sentences of pydantic's errors, each behind the field that it is about."""
    for each in errors:
        if isinstance(each, dict) and isinstance(each.get("msg"), str) and isinstance(each.get("loc"), list):
            field = ".".join(str(part) for part in each["loc"] if part != "body")
            yield f"{field}: {each['msg']}" if field else each["msg"]


def told(body: str) -> str:
    """What rules look at: the sentence of an error body, with the name that the API has for the error; else the body."""
    try:
        value = msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError):
        return body
    inner = value.get("error", value) if isinstance(value, dict) else value
    code = inner.get("code") if isinstance(inner, dict) else None
    return f"{_message(body)} {code}" if isinstance(code, str) else _message(body)


__all__ = ["said", "told"]
