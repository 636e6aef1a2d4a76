"""What a server has instead of the path or the model that it lacks."""

from __future__ import annotations

import contextlib
import json
import socket
import ssl
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from difflib import SequenceMatcher
from urllib.parse import quote, urlsplit, urlunsplit

from aiperf import AiperfError
from aiperf.sdk.descriptor import Descriptor
from aiperf.sdk.fetch import FetchError, Servers
from aiperf.sdk.model import names
from aiperf.sdk.redaction import without_secrets
from aiperf.sdk.verdict import Look

from aiperf_verdict_failures.causes import MODELS, ROUTE, TLS

_ASK_S = 1.0
_MOST_THREADS = 8
_MOST_MODELS, _MOST_ROUTES = 10, 3
_NOWHERE = "/aiperf-asks-whether-every-path-is-answered"
_THERE = (400, 401, 403, 405, 406, 411, 415, 422)
"""Statuses, beside 200, of a path that a server has: those of a GET to what takes POST."""


def looked(look: Look) -> dict[str, str]:
    """Where else the server answers, with what to change, and its models; each only where it tells."""
    found: dict[str, str] = {}
    if look.plan.target.control_urls or not look.servers.urls:  # these are none of the servers under test
        return found
    if "no_route" in look.causes and (route := _route(look)):
        found[ROUTE] = route
    elif {"no_route", "unknown_model"} & set(look.causes) and (models := _models(look.servers)):
        found[MODELS] = models
    if "closed" in look.causes and _speaks_tls(look.servers.urls[0]):
        found[TLS] = "it takes a handshake of TLS"
    return found


def _speaks_tls(url: str) -> bool:
    """Whether what listens at an address of http takes a handshake of TLS, with whatever certificate; nothing is sent in it."""
    parts = urlsplit(url)
    if parts.scheme != "http":
        return False
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with contextlib.suppress(OSError):
        with socket.create_connection((parts.hostname or "", parts.port or 80), _ASK_S) as connection:
            context.wrap_socket(connection, server_hostname=parts.hostname).close()
        return True
    return False


def _models(servers: Servers) -> str:
    """The models that the server lists; "" where it has no list."""
    listed: list[str] = []
    with contextlib.suppress(AiperfError, ValueError, KeyError, TypeError):
        page = servers.get(servers.urls[0], "/v1/models", _ASK_S)
        listed += [_printable(str(model["id"])) for model in json.loads(page.body)["data"]]
    shown = listed[:_MOST_MODELS]
    more = [f"{len(listed) - len(shown):,} more"] if len(listed) > len(shown) else []
    return names([*shown, *more]) if shown else ""


def _printable(text: str) -> str:
    return "".join(character if character.isprintable() else " " for character in text)


def _route(look: Look) -> str:
    """Paths at which the server answers, and the options to reach them; the run's own endpoint type comes first."""
    own, given = look.plan.plugins.endpoint.name, look.servers.urls[0]
    paths = _paths(look)
    top = _top(given)
    roots = [given] if top == given else [given, top]
    there = {root: _answered(look.servers, root, paths) for root in roots}
    for root in roots:
        for path in there[root]:
            if own in paths[path]:
                change = [] if root == given else [_address(root)]
                change += [] if look.plan.target.given_path is None else ["it without --endpoint"]
                return f"{path}: use {', and '.join(change)}" if change else ""
    for root in roots:
        if found := there[root][:_MOST_ROUTES]:
            types = " or ".join(_nearest(path, paths[path]) for path in found)
            address = "" if root == given else f"{_address(root)} "
            drop = "" if look.plan.target.given_path is None else ", without --endpoint"
            return f"{names(found)}: use {address}--endpoint-type {types}{drop}"
    return ""


def _paths(look: Look) -> dict[str, list[str]]:
    """The endpoint types of each path, in their order; without those that name no path."""
    paths: dict[str, list[str]] = {}
    model = quote(look.plan.target.models[0], safe="")
    for endpoint in look.endpoints:
        for path in _paths_of(endpoint):
            paths.setdefault(path.replace("{model}", model), []).append(endpoint.name)
    return paths


def _paths_of(endpoint: Descriptor) -> Iterable[str]:
    given = (endpoint.capabilities.get(name) for name in ("path", "streaming_path"))
    return [path for path in given if isinstance(path, str) and path.startswith("/")]


def _answered(servers: Servers, root: str, paths: Iterable[str]) -> list[str]:
    """The paths that the server has below *root*; none where it answers every path alike, or not at all."""
    if _status(servers, root, _NOWHERE) != 404:
        return []
    asked = list(paths)
    with ThreadPoolExecutor(_MOST_THREADS) as pool:
        statuses = pool.map(lambda path: _status(servers, root, path), asked)
        return [path for path, status in zip(asked, statuses, strict=True) if status == 200 or status in _THERE]


def _status(servers: Servers, root: str, path: str) -> int | None:
    """The status of a GET; None where no answer comes in time."""
    try:
        servers.get(root, path, _ASK_S)
    except FetchError as error:
        return error.status
    return 200


def _top(url: str) -> str:
    parts = urlsplit(url)
    return urlunsplit((parts.scheme, parts.netloc, "", parts.query, ""))


def _address(root: str) -> str:
    return f"-u {without_secrets(root)}"


def _nearest(path: str, types: list[str]) -> str:
    """The endpoint type whose name is most like the path's end, of those of one path."""
    end = path.rstrip("/").rpartition("/")[2]
    return max(types, key=lambda name: SequenceMatcher(None, name, end).ratio())


__all__ = ["looked"]
