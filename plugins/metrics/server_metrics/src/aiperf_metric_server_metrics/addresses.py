"""The addresses of pages of metrics: as typed, as they are asked, and as files show them."""

from __future__ import annotations

import re
from base64 import b64encode
from urllib.parse import SplitResult, unquote, urlsplit, urlunsplit

from aiperf.sdk.redaction import without_secrets
from aiperf.sdk.transport import UNIX
from msgspec import Struct

_PORTS = {"http": 80, "https": 443}
_PAGES = ("metrics", "federate")
_SECRET = re.compile("key|token|secret|passw|auth|sig|cred|jwt|code", re.IGNORECASE)
"""In names of parameters whose values are secrets."""


class Address(Struct, frozen=True):
    """url: without credentials.  login: the header of the credentials; "" without.  name: for people, without secrets."""

    url: str
    login: str = ""

    @property
    def name(self) -> str:
        address, mark, query = self.url.partition("?")
        return f"{address}{mark}{'&'.join(map(_shown, query.split('&')))}"

    @property
    def key(self) -> tuple[str, str, int | None, str, str]:
        """What two spellings of one page have in common."""
        parts = urlsplit(self.url)
        host = "127.0.0.1" if parts.hostname == "localhost" else parts.hostname or ""
        return parts.scheme, host, parts.port or _PORTS.get(parts.scheme), parts.path.rstrip("/"), parts.query


def given_address(item: str) -> Address:
    """The page that the user means by an item of ``--server-metrics``.

    Raises:
        ValueError: It is no address.
    """
    text = item if "://" in item else f"http://{item}"
    try:
        parts = urlsplit(text)
        bad = parts.scheme not in _PORTS or not parts.hostname or parts.port == 0
    except ValueError:
        bad = True
    if bad or ("://" not in item and ":" not in item):
        raise ValueError(f"{without_secrets(item)!r} is no address of a page: write HOST:PORT, or http://HOST:PORT/metrics")
    path = parts.path.rstrip("/")
    if not parts.query and path.rpartition("/")[2] not in _PAGES:
        path += "/metrics"
    return _address(parts, path)


def tested_address(url: str) -> Address:
    """The page of a server under test, whatever the path of its API."""
    if url.startswith(f"{UNIX}://"):
        return Address(f"{url.rstrip('/')}/metrics")
    parts = urlsplit(url)
    return _address(parts._replace(query=""), "/metrics")


def _shown(parameter: str) -> str:
    name, mark, _ = parameter.partition("=")
    return f"{name}{mark}<redacted>" if mark and _SECRET.search(name) else parameter


def _address(parts: SplitResult, path: str) -> Address:
    user, at, host = parts.netloc.rpartition("@")
    code = b64encode(unquote(user).encode()).decode() if at else ""
    return Address(urlunsplit((parts.scheme, host, path, parts.query, "")), f"Basic {code}" if code else "")
