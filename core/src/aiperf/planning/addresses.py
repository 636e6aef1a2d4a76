"""Base URLs of a run, and the transport that serves them."""

from __future__ import annotations

import math
import os
import re
import stat
from collections.abc import Collection, Iterable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from aiperf.errors import ConfigError
from aiperf.planning import proxies
from aiperf.planning.problems import Draft
from aiperf.redaction import without_secrets
from aiperf.sdk.descriptor import Descriptor, PluginRef
from aiperf.sdk.model import names
from aiperf.sdk.transport import LONGEST_SOCKET_PATH, UNIX, socket_path

if TYPE_CHECKING:
    from aiperf.planning.target import EndpointChoice

_HTTP = ("http", "https")
_WEIGHTED = re.compile(r"(?P<url>[^?#]*)=(?P<weight>[+-]?[\d.]+(?:[eE][+-]?\d+)?)")

Weights = Sequence[float | None]
"""A weight for each URL, None where none was given."""


def base_urls(draft: Draft, choice: EndpointChoice) -> tuple[tuple[str, ...], Weights]:
    """Base URLs and their weights; errors go to *draft*.

    Without ``--url`` it is the endpoint's own default, where it has one.
    """
    flag, transports = draft.flag("urls"), draft.registry.all("transports")
    general, known = _served(transports, own=False) or set(_HTTP), _served(transports)
    places = _served(each for each in transports if each.capabilities.get("places"))
    own = choice.can.schemes
    typed = draft.kernel.urls if draft.typed("urls") or not choice.can.url else [choice.can.url]
    if not typed:
        draft.refuse(f"{flag} is given no URL", f"give it as {next(iter(own), 'http')}://host:port")
    bases, weights = [], []
    for text in typed:
        with draft.collected(flag):
            url, weight = without_weight(text)
            if scheme_of(url) in known:
                _check_spoken(draft, choice, url, list(own) or sorted(general))
            bases.append(base_url(url, {*known, *own} or _HTTP, next(iter(own), "http"), places))
            weights.append(weight)
    schemes = list(dict.fromkeys(map(scheme_of, bases)))
    if own and len(schemes) > 1:
        kind = draft.kernel.endpoint_type
        draft.refuse(
            f"{flag} has the schemes {names(schemes)}, and requests of the type {kind!r} are made for one of them",
            "give URLs of one scheme",
        )
    return tuple(bases), weights


def control_urls(draft: Draft) -> tuple[str, ...]:
    """The HTTP servers of ``--server-control-url``; errors go to *draft*."""
    found = []
    for text in draft.kernel.control_urls:
        with draft.collected(draft.flag("control_urls")):
            found.append(base_url(text, (*_HTTP, UNIX)))
    return tuple(dict.fromkeys(found))


def _check_spoken(draft: Draft, choice: EndpointChoice, url: str, taken: Sequence[str]) -> None:
    """
    Raises:
        ConfigError: The endpoint doesn't speak what the URL's scheme stands for.
    """
    scheme, kind = scheme_of(url), choice.descriptor
    if scheme in taken or kind is None or (choice.can.transport is not None and not choice.can.schemes):
        return
    able = [each.name for each in draft.registry.all("endpoints") if scheme in _own_schemes(each)]
    flag = draft.flag("endpoint_type")
    raise ConfigError(
        f"{without_secrets(url)!r} has the scheme {scheme!r}, and the endpoint type {kind.name!r} takes {names(taken)}",
        f"give it as {taken[0]}://…" + (f", or use {flag} {' or '.join(able)}" if able else ""),
    )


def _own_schemes(endpoint: Descriptor) -> Mapping[str, str]:
    """The schemes that an endpoint names in its manifest."""
    found = endpoint.capabilities.get("schemes", {})
    return found if isinstance(found, dict) else {}


def scheme_of(url: str) -> str:
    """The scheme of a URL; "" where it has none."""
    scheme, found, _ = url.partition("://")
    return scheme.lower() if found else ""


def transport(draft: Draft, choice: EndpointChoice, urls: Sequence[str]) -> PluginRef | None:
    """What moves the bytes: the typed transport, else the endpoint's, else one that serves *urls*, also behind proxies."""
    schemes, registry = sorted({urlsplit(url).scheme for url in urls}), draft.registry
    own = next(filter(None, map(choice.can.schemes.get, schemes)), choice.can.transport)
    flag, behind = draft.flag("transport"), list[str]()
    with draft.collected():
        behind = proxies.proxied(urls)
    if draft.typed("transport"):
        ref = draft.chosen("transports", draft.kernel.transport, "transport")
    elif own is not None and registry.find("transports", own) is None:
        installed = names(registry.names("transports"))
        draft.refuse(
            f"{draft.flag('endpoint_type')} {draft.kernel.endpoint_type} needs the transport {own!r}, which is not installed",
            f"install its package, or name one of {installed} with {flag}",
        )
        return None
    else:
        able = [each for each in registry.all("transports") if _served([each]).issuperset(schemes)]
        usual = own or proxies.usual_for(draft, draft.kernel.transport, able, behind)
        serving = [each.name for each in able]
        if own is None and usual not in serving and len(serving) > 1:
            draft.refuse(f"{names(serving)} serve {names(schemes)} URLs", f"name one with {flag}")
            return None
        ref = draft.chosen("transports", serving[0] if own is None and serving and usual not in serving else usual)
    if ref is None:
        return None
    chosen = registry.descriptor("transports", ref.name)
    _check_module(draft, chosen)
    proxies.check(draft, chosen, behind)
    served = _served([chosen])
    if foreign := [scheme for scheme in schemes if scheme not in served]:
        draft.refuse(
            f"{draft.flag('urls')} has the scheme {names(foreign)}; the transport {ref.name!r} serves {names(sorted(served))}",
            f"give URLs that one transport serves, or name another with {flag}",
        )
    elif own is not None and not _speaks_like(chosen, registry.find("transports", own)):
        draft.refuse(
            f"requests of the type {draft.kernel.endpoint_type!r} to {names(schemes)} URLs go through the transport {own!r},"
            f" and {flag} names {ref.name!r}",
            f"drop {flag}",
        )
    return ref


def _speaks_like(chosen: Descriptor, own: Descriptor | None) -> bool:
    """Whether a transport serves one of the schemes that an endpoint's *own* transport serves for such endpoints alone."""
    by_type = _served([own]) - _served([own], own=False) if own is not None else set()
    return not by_type or not by_type.isdisjoint(_served([chosen]))


def _check_module(draft: Draft, transport: Descriptor) -> None:
    """Refuse a transport whose package lacks a module of others: ``needs_module`` in the capabilities of its manifest."""
    module, extra = (transport.capabilities.get(name) for name in ("needs_module", "needs_extra"))
    if isinstance(module, str) and find_spec(module) is None:
        hint = f"pip install '{extra}'" if extra else "install it"
        draft.refuse(f"the transport {transport.name!r} needs the Python package {module}, which is not installed", hint)


def _served(transports: Iterable[Descriptor], *, own: bool = True) -> set[str]:
    """The URL schemes of the transports, from the capabilities of their manifests.

    ``schemes``, http and https without it, are for all endpoints; ``by_type``, with *own*, for those that name them.
    """
    keys = ("schemes", "by_type") if own else ("schemes",)
    usual = {"schemes": _HTTP}
    listed = [each.capabilities.get(key, usual.get(key, ())) for each in transports for key in keys]
    return {str(scheme).lower() for schemes in listed if isinstance(schemes, list | tuple) for scheme in schemes}


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


def base_url(text: str, schemes: Collection[str] = _HTTP, usual: str = "http", places: Collection[str] = ()) -> str:
    """A typed base URL with its scheme, one of *schemes* and *usual* by default; without its fragment, which is never sent.

    *places*: schemes of what is on this machine, of which a URL has a path and no host.

    Raises:
        ConfigError: The text is no base URL; the message never shows a password.
    """
    url, shown = text, repr(without_secrets(text))
    example = f"give it as {usual}://host:port"
    if not url:
        raise ConfigError("the URL is empty", example)
    if any(letter.isspace() or not letter.isprintable() for letter in url):
        raise ConfigError(f"{shown} has white space in it", example)
    if not url.isascii():
        raise ConfigError(f"{shown} has characters outside ASCII", "percent-encode the path; write the host in its xn-- form")
    url = url if "://" in url else f"{usual}://{url}"
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        weight = "a weight is a number: http://host:port=3"
        hint = weight if "=" in url.rpartition(":")[2] else example
        raise ConfigError(f"{shown} is no URL: {str(error).lower()}", hint) from None
    if parts.scheme not in schemes:
        raise ConfigError(f"{shown} has the scheme {parts.scheme!r}; only {names(sorted(schemes))} are known", example)
    if parts.scheme == UNIX:
        return _socket_url(url, shown)
    if parts.scheme in places:
        if parts.netloc or not parts.path.strip("/"):
            raise ConfigError(f"{shown} names no path of this machine", f"give it as {parts.scheme}:///path")
        return url.partition("#")[0]
    if not parts.hostname:
        raise ConfigError(f"{shown} names no host", example)
    if port == 0:
        raise ConfigError(f"{shown} has port 0; it must be 1 to 65535", example)
    if "@" in parts.netloc:
        raise ConfigError(
            f"{shown} has a user name in it, which would be written with the results",
            "pass --api-key, or --header 'Authorization: Basic …'",
        )
    return url.partition("#")[0]


def _socket_url(url: str, shown: str) -> str:
    """The base URL of a socket of this machine, which may be made later.

    Raises:
        ConfigError: Its path is none, or that of something else.
    """
    example, parts = "give it as unix:///path/to/socket", urlsplit(url)
    if parts.netloc or parts.path in ("", "/"):
        raise ConfigError(f"{shown} names no path of a socket", f"{example}, with three slashes")
    if parts.query or parts.fragment:
        raise ConfigError(f"{shown} has a query, and the path of a socket has none", "percent-encode '?' and '#'")
    path, _ = socket_path(url, (url,))
    if len(os.fsencode(path)) > LONGEST_SOCKET_PATH:
        length = len(os.fsencode(path))
        raise ConfigError(f"the path of {shown} has {length} bytes; a socket's has at most {LONGEST_SOCKET_PATH}", "use a link")
    try:
        mode = Path(path).stat().st_mode
    except FileNotFoundError:
        return url  # the server may be about to make it
    except OSError as error:
        raise ConfigError(f"{shown} can't be used: {error.strerror or error}", example) from error
    if not stat.S_ISSOCK(mode):
        kind = "a directory" if stat.S_ISDIR(mode) else "a file"
        raise ConfigError(f"{shown} is {kind}, not a socket", "name the socket on which the server listens")
    return url


__all__ = ["Weights", "base_url", "base_urls", "scheme_of", "transport", "without_weight"]
