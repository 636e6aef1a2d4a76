"""The destination of requests: base URLs with their weights, the path below them, and the plugin that spreads sessions."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from urllib.parse import quote, urlsplit

from aiperf.errors import ConfigError
from aiperf.planning.problems import Problems, Selection
from aiperf.redaction import without_secrets
from aiperf.sdk.descriptor import PluginRef

_EXAMPLE = "give it as http://host:port"
_WEIGHTED = re.compile(r"(?P<url>[^?#]*)=(?P<weight>[+-]?[\d.]+(?:[eE][+-]?\d+)?)")

Weights = Sequence[float | None]
"""A weight for each URL, None where none was given."""


def base_urls(problems: Problems) -> tuple[tuple[str, ...], Weights]:
    """Base URLs and their weights; errors go to *problems*."""
    flag = problems.flag("urls")
    if not problems.kernel.urls:
        problems.refuse(f"{flag} is given no URL", "give it as http://host:port")
    bases, weights = [], []
    for text in problems.kernel.urls:
        with problems.collected(flag):
            url, weight = without_weight(text)
            bases.append(base_url(url))
            weights.append(weight)
    return tuple(bases), weights


def url_strategy(select: Selection, weights: Weights, workers: int) -> PluginRef | None:
    """The plugin that spreads sessions over several URLs; None for a single URL, or after a reported error."""
    problems, registry = select.problems, select.registry
    weighted = any(weight is not None for weight in weights)
    if len(weights) < 2 and not weighted and not problems.typed("url_strategy"):
        return None
    ref = select.chosen("url_strategies", problems.kernel.url_strategy, "url_strategy")
    if ref is None:
        return None
    can = registry.descriptor("url_strategies", ref.name).capabilities
    named = f"{problems.flag('url_strategy')} {ref.name}"
    if weighted and not can.get("weights"):
        choices = [one.name for one in registry.all("url_strategies") if one.capabilities.get("weights")]
        problems.refuse(
            f"{problems.flag('urls')} gives weights, and {named} has no use for them",
            f"choose {' or '.join(choices)}, or drop the weights (write %3D for a '=' that belongs to a path)",
        )
    if can.get("uses_load") and workers > 1:
        one = f"{problems.flag('workers_max')} 1"
        problems.warn(f"{named} goes by what each of the {workers} workers has in flight; {one} would count all")
    return ref if len(weights) > 1 else None


def without_weight(text: str) -> tuple[str, float | None]:
    """The URL and weight of ``URL=weight``; a URL with a query has no weight, because its ``=`` belongs to the query.

    Raises:
        ConfigError: The weight isn't a number above 0.
    """
    match = _WEIGHTED.fullmatch(text)
    if match is None:
        return text, None
    try:
        weight = float(match["weight"])
    except ValueError:
        weight = 0.0
    if not 0 < weight < math.inf:
        raise ConfigError(f"the weight {match['weight']} of {without_secrets(match['url'])!r} is not a number above 0")
    return match["url"], weight


def base_url(text: str) -> str:
    """A typed base URL with its scheme, ``http://`` by default, and without its fragment, which is never sent.

    Raises:
        ConfigError: The text is no base URL; the message never shows a password.
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
