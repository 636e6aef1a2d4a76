"""Checks of header names and values, and merging of headers."""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib.util import find_spec

from aiperf.errors import ConfigError

_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")  # RFC 9110, 5.6.2
_BUILT_IN = ("gzip", "x-gzip", "deflate")
_PACKAGES = {"br": "brotli", "zstd": "zstandard"}


def check_header_name(name: str) -> None:
    """Raise ConfigError where *name* is no valid header name."""
    if not _HEADER_NAME.fullmatch(name):
        raise ConfigError(f"{name!r} is no header name", "use letters, digits and -_.!#$%&'*+^`|~")


def check_header_value(name: str, value: str) -> None:
    """Raise ConfigError where the value would break the request's head; the message never contains the value."""
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


def undecodable(encoding: str) -> str | None:
    """Why bodies of this encoding can't be read, with the way out; None where they can."""
    if encoding in _BUILT_IN or (encoding in _PACKAGES and find_spec(_PACKAGES[encoding]) is not None):
        return None
    if encoding in _PACKAGES:
        return f"needs the package {_PACKAGES[encoding]}: pip install 'aiperf-core[encodings]', or ask for gzip"
    return "can't be read here; ask for gzip, deflate, br or zstd, or for no encoding"


__all__ = ["check_header_name", "check_header_value", "merged", "undecodable"]
