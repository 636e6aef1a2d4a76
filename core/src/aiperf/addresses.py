"""Where requests go: base URLs and the path below them, checked."""

from __future__ import annotations

import math
import re
from urllib.parse import quote, urlsplit

from aiperf.errors import ConfigError

_EXAMPLE = "give it as http://host:port"
_WEIGHTED = re.compile(r"(?P<url>[^?#]*)=(?P<weight>[+-]?[\d.]+(?:[eE][+-]?\d+)?)")


def without_weight(text: str) -> tuple[str, float | None]:
    """``URL=weight`` taken apart; a URL with a query has no weight, its ``=`` is the query's.

    Raises:
        ConfigError: The weight isn't a number above 0.
    """
    found = _WEIGHTED.fullmatch(text)
    if found is None:
        return text, None
    try:
        weight = float(found["weight"])
    except ValueError:
        weight = 0.0
    if not 0 < weight < math.inf:
        raise ConfigError(f"the weight {found['weight']} of {without_secrets(found['url'])!r} is not a number above 0")
    return found["url"], weight


def base_url(text: str) -> str:
    """A base URL as typed, made whole: ``http://`` where no scheme is given; a fragment, which is never sent, left out.

    Raises:
        ConfigError: It is none; never shows a password.
    """
    url, shown = text, repr(without_secrets(text))
    if not url:
        raise ConfigError("the URL is empty", _EXAMPLE)
    if any(letter.isspace() or not letter.isprintable() for letter in url):
        raise ConfigError(f"{shown} has white space in it", _EXAMPLE)
    if not url.isascii():
        raise ConfigError(f"{shown} has characters outside ASCII", "percent-encode the path; write the host in its xn-- form")
    url = url if "://" in url else f"http://{url}"
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise ConfigError(f"{shown} is no URL: {str(error).lower()}", _EXAMPLE) from None
    if parts.scheme not in ("http", "https"):
        raise ConfigError(f"{shown} has the scheme {parts.scheme!r}; only http and https are known", _EXAMPLE)
    if not parts.hostname:
        raise ConfigError(f"{shown} names no host", _EXAMPLE)
    if port == 0:
        raise ConfigError(f"{shown} has port 0; it must be 1 to 65535", _EXAMPLE)
    if "@" in parts.netloc:
        raise ConfigError(
            f"{shown} has a user name in it, which would be written with the results",
            "pass --api-key, or --header 'Authorization: Basic …'",
        )
    return url.partition("#")[0]


def request_path(given: str) -> str:
    """``--endpoint``: the path below the base URL; "" appends nothing.

    Raises:
        ConfigError: It doesn't start with a slash, or can't be in a request line.
    """
    if given and not given.startswith("/"):
        raise ConfigError(f"{given!r} must start with '/'", f"write /{given}, or '' to append nothing")
    if not given.isascii() or any(letter.isspace() or not letter.isprintable() for letter in given):
        raise ConfigError(f"{given!r} can't be part of a URL", "percent-encode what is not ASCII, and white space")
    return given.partition("#")[0]


def with_model(path: str, models: tuple[str, ...]) -> str:
    """The path with ``{model}`` replaced.

    Raises:
        ConfigError: Several models, and the path must name one.
    """
    if "{model}" not in path:
        return path
    if len(models) != 1:
        raise ConfigError(f"the path {path} names the model, and {len(models)} models are given", "give one model")
    return path.replace("{model}", quote(models[0], safe=""))


def without_secrets(url: str) -> str:
    """The URL without user, password and query, to be shown."""
    address, mark, _ = url.partition("?")
    url = f"{address}?<redacted>" if mark else address
    scheme, mark, rest = url.rpartition("://")
    authority, slash, path = rest.partition("/")
    user, at, host = authority.rpartition("@")
    return f"{scheme}{mark}<redacted>@{host}{slash}{path}" if at and user else url
