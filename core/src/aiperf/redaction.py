"""Hides secrets in texts, URLs and headers."""

from __future__ import annotations

import contextlib
import functools
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

REDACTED = "<redacted>"
"""Replaces a secret."""

_CREDENTIAL = (
    r"(?i)authori[sz]ation|cookie|secret|passw|credential|signature|api[-_]?key|(?:auth|access|security|session|csrf)[-_]?token"
)
_SECRET = (
    r"(?:(?:api|access)[-_]?key|(?:access|auth|api|bearer|refresh|id|hf)[-_]?token"
    r"|secret|passw(?:or)?d|passphrase|private[-_]?key|authorization|credential)"
)
_NAME = rf"(?:[\w-]*{_SECRET}[\w-]*|token|jwt)"
"""Of a field with a secret; ``token`` by itself, because of ``stop_token`` and the like."""
_IN_QUERY = r"(?:key|token|secret|passw|auth|sig|credential|jwt|(?<=[?&;])code(?==))"
_NAME_IN_QUERY = rf"[?&;][^=&#\s]*{_IN_QUERY}[^=&#\s]*="
_PARAMETER = rf"(?i){_NAME_IN_QUERY}([^&#\s]*)"
_FIELD = rf"(?i){_SECRET}|^(?:token|jwt)$"
_LITERAL = rf"(?i)\"({_NAME})\"\s*:\s*\"[^\"{{}}\\]{{8,}}\""
_JSON_FIELD = (rf"(?i)(\"{_NAME}\"\s*:\s*)\"(?:[^\"\\]|\\.)*\"", rf'\1"{REDACTED}"')
_STRING = r'"[^"\\]*(?:\\.[^"\\]*)*"'
_MARKS = frozenset(":=@")
"""A text with a secret has one of them."""
_REDACTIONS = (
    (r"([a-zA-Z][\w+.-]*://)[^/?#\s]+@", rf"\1{REDACTED}@"),
    (r"^[^/?#\s@:=\"{]+:[^/?#\s@]+@(?=[\w.\[])", f"{REDACTED}@"),
    (rf"(?i)({_NAME_IN_QUERY})[^&#\s]*", rf"\1{REDACTED}"),
    _JSON_FIELD,
    (r"(?i)(authorization['\"]?\s*[:=]\s*['\"]?(?:bearer|basic|digest|token)\s+)[^\s,'\"]+", rf"\1{REDACTED}"),
    (rf"(?i)((?:^|[\s,]){_NAME}[:=])[^\s,]+", rf"\1{REDACTED}"),
)

_compiled = functools.cache(re.compile)
"""Each expression is compiled when it is first used: it takes 0.3 ms, and most commands use none."""


def harmless(text: str) -> str:
    """*text* without characters that steer a terminal or turn its direction; line ends and tabs stay."""
    if text.isprintable():
        return text
    return "".join(letter if letter.isprintable() or letter in "\n\t\u00a0\u3000" else " " for letter in text)


def private(path: Path) -> Path:
    """*path*, a file that only this user may read: it is made here if it is not there."""
    path.touch(0o600)
    path.chmod(0o600)
    return path


@contextlib.contextmanager
def owner_alone(wanted: bool) -> Iterator[None]:
    """Where *wanted*, nobody else may read the files that this process, and those that it starts, make in the block."""
    mask = os.umask(0o077) if wanted else None
    try:
        yield
    finally:
        if mask is not None:
            os.umask(mask)


def redact(text: str) -> str:
    """*text* without passwords in URLs, and without keys and tokens in queries, maps and JSON."""
    for pattern, instead in _REDACTIONS:
        text = _compiled(pattern).sub(instead, text)
    return text


def redact_json(text: str) -> str:
    """JSON *text* with each of its strings redacted, as :func:`redact` does, so that it stays JSON."""
    import json

    def one(string: re.Match[str]) -> str:
        if not _MARKS.intersection(string[0]):
            return string[0]
        word = json.loads(string[0])
        shown = redact(word)
        return string[0] if shown == word else json.dumps(shown, ensure_ascii=False)

    pattern, instead = _JSON_FIELD
    return _compiled(_STRING).sub(one, _compiled(pattern).sub(instead, text))


def scrubbed(text: str, secrets: Iterable[str]) -> str:
    """*text* without the *secrets*, in whatever case."""
    folded = text.lower()
    for secret, low in _lowered(tuple(secrets)):
        if low in folded:
            text = re.sub(re.escape(secret), REDACTED, text, flags=re.IGNORECASE)
            folded = text.lower()
    return text


@functools.lru_cache(maxsize=8)
def _lowered(secrets: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    """Each secret beside itself in lower case: heads of answers are looked through one after the other."""
    return tuple((secret, secret.lower()) for secret in secrets)


def secret_parameters(url: str) -> list[str]:
    """The values in a URL's query whose names are those of secrets."""
    return _compiled(_PARAMETER).findall(url)


def without_secrets(url: str) -> str:
    """The URL for people: without user, password and query."""
    address, mark, _ = url.partition("?")
    url = f"{address}?<redacted>" if mark else address
    scheme, mark, rest = url.rpartition("://")
    authority, slash, path = rest.partition("/")
    user, at, host = authority.rpartition("@")
    return f"{scheme}{mark}<redacted>@{host}{slash}{path}" if at and user else url


def secret_fields(text: str) -> list[str]:
    """Names in the JSON of *text*, a template for instance, whose values are secrets of 8 characters or more."""
    return _compiled(_LITERAL).findall(text)


def shown_fields(value: Any) -> Any:
    """Fields of a body for files: values of fields that are named like a secret are redacted, nested ones too."""
    if isinstance(value, dict):
        return {name: REDACTED if is_secret_field(name, each) else shown_fields(each) for name, each in value.items()}
    return [shown_fields(each) for each in value] if isinstance(value, list) else value


def is_secret_field(name: str, value: Any) -> bool:
    """Whether a field of a body holds a secret: ``max_tokens`` and other numbers do not."""
    return isinstance(value, str) and _compiled(_FIELD).search(name) is not None


def shown_headers(headers: Mapping[str, str], hidden: Iterable[str] = ()) -> dict[str, str]:
    """Headers for logs and files: values of *hidden* headers and of credentials are redacted."""
    names = {name.lower() for name in hidden}
    credential = _compiled(_CREDENTIAL)
    return {name: REDACTED if name.lower() in names or credential.search(name) else value for name, value in headers.items()}
