"""The guard before pages and routes: host names, origins, the token, headers of answers, errors as sentences."""

from __future__ import annotations

import ipaddress
import logging
import socket
from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import urlsplit

from aiohttp import hdrs, web

from aiperf_pages.tokens import bears

POLICY = "; ".join((
    "default-src 'none'", "script-src 'self'", "style-src 'self'", "img-src 'self' data:", "connect-src 'self'",
    "base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'",
))  # fmt: skip
"""The content security policy of every answer: nothing from elsewhere, and no script or style inside a page."""
FILE_POLICY = "default-src 'none'; sandbox"
"""The policy of files that a run wrote, which are shown and never run."""
_HEADERS = {
    "Content-Security-Policy": POLICY, "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin", "Cross-Origin-Opener-Policy": "same-origin", "Cache-Control": "no-store",
}  # fmt: skip
_SAFE = frozenset((hdrs.METH_GET, hdrs.METH_HEAD, hdrs.METH_OPTIONS))

log = logging.getLogger(__name__)

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Refusal(Exception):  # noqa: N818  # an answer, not a fault
    """A request that gets *status* and *sentence* in place of an answer; *headers* go with it."""

    def __init__(self, status: int, sentence: str, headers: dict[str, str] | None = None) -> None:
        super().__init__(sentence)
        self.status, self.sentence, self.headers = status, sentence, headers or {}


def is_loopback(host: str) -> bool:
    """Whether a server that listens on *host* is for this machine alone."""
    if host.lower().rstrip(".") == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def host_of(header: str) -> str | None:
    """The name or address in a header ``Host``, in lower case and without brackets; None where it is none."""
    try:
        parts = urlsplit(f"//{header}")
        valid = parts.netloc == header and "@" not in header and (parts.port is None or parts.port > 0)
    except ValueError:
        return None
    return parts.hostname.rstrip(".") if valid and parts.hostname else None


class Guard:
    """Lets a request pass, or refuses it with a sentence.

    bound: the name or address that the server listens on.  token: what ``Authorization: Bearer`` must have where a request
    changes something, and beyond loopback everywhere.  public: paths of routes, as they are registered, that need no token:
    they say nothing of a run.
    """

    def __init__(self, bound: str, token: str, public: frozenset[str] = frozenset()) -> None:
        self.token, self._public = token, public
        self.local = is_loopback(bound)
        self._bound = bound.lower().strip("[]").rstrip(".")
        self._names = self._known_names()

    def _known_names(self) -> frozenset[str]:
        names = {self._bound, "localhost"} if self.local else {self._bound}
        if self.local:
            return frozenset(names | {"127.0.0.1", "::1"})
        if self._everywhere:
            names |= {"localhost", socket.gethostname().lower(), socket.getfqdn().lower()}
        return frozenset(names)

    @property
    def _everywhere(self) -> bool:
        return self._bound in ("", "0.0.0.0", "::")

    def check(self, request: web.Request) -> None:
        """Pass, or raise.

        Raises:
            Refusal: 400 without a host, 403 for a host or an origin of somebody else's, 401 without the token.
        """
        hosts = request.headers.getall(hdrs.HOST, [])
        host = host_of(hosts[0]) if len(hosts) == 1 else None
        if host is None:
            raise Refusal(400, "the request needs one header Host with a name or an address")
        if host not in self._names and not (not self.local and host == self._address(request)):
            raise Refusal(403, f"the header Host names {host}, and this server is not reached by that name; use {self._bound}")
        origin = request.headers.get(hdrs.ORIGIN)
        if origin is not None and not _same(origin, hosts[0]):
            raise Refusal(403, "the request comes from a page of another origin, and other pages may not use this server")
        resource = request.match_info.route.resource
        path = "" if resource is None else resource.canonical
        if (self.local and request.method in _SAFE) or path in self._public:
            return
        if not bears(request.headers.get(hdrs.AUTHORIZATION), self.token):
            why = "changes something" if self.local else "comes to an address that other machines reach"
            raise Refusal(
                401, f"a request that {why} needs the token: Authorization: Bearer TOKEN",
                {hdrs.WWW_AUTHENTICATE: 'Bearer realm="aiperf"'},
            )  # fmt: skip

    def _address(self, request: web.Request) -> str | None:
        """This machine's address of the connection: a name for a server that listens on all, or on a name."""
        transport = request.transport
        own = None if transport is None else transport.get_extra_info("sockname")
        return None if not own else str(own[0]).partition("%")[0]


def _same(origin: str, host: str) -> bool:
    parts = urlsplit(origin)
    return parts.scheme in ("http", "https") and parts.netloc.lower() == host.lower()


def refused(status: int, sentence: str, headers: dict[str, str] | None = None) -> web.Response:
    """The answer to a request that can't be served: a JSON object whose ``detail`` is the sentence."""
    return web.json_response({"detail": sentence}, status=status, headers=headers)


def middleware(guard: Guard) -> Any:
    """The middleware of an application behind the guard; also every error becomes a sentence."""

    @web.middleware
    async def guarded(request: web.Request, handler: Handler) -> web.StreamResponse:
        try:
            guard.check(request)
            return await handler(request)
        except Refusal as refusal:
            answer = refused(refusal.status, refusal.sentence, refusal.headers)
        except web.HTTPRedirection:
            raise
        except web.HTTPException as error:
            answer = refused(error.status, _sentence(error, request), _kept(error))
        except Exception as error:  # ours: the request gets a sentence, and the log the rest
            if _gone(request):
                raise ConnectionResetError("the client is gone") from error
            log.exception("the answer to %s %s failed", request.method, request.path[:200])
            answer = refused(500, "the server failed to make this answer; its log says how")
        if request.writer.output_size > 0:  # a part of another answer is sent: the client must not take it for whole
            if request.transport is not None:
                request.transport.abort()
            raise ConnectionResetError("the answer broke off")
        if not request.content.is_eof():
            answer.force_close()
        return answer

    return guarded


def _gone(request: web.Request) -> bool:
    """Whether the client has closed its connection."""
    return request.transport is None or request.transport.is_closing()


def _sentence(error: web.HTTPException, request: web.Request) -> str:
    if isinstance(error, web.HTTPNotFound):
        return f"there is nothing at {request.path[:200]}; /api/openapi.json lists the routes"
    if isinstance(error, web.HTTPMethodNotAllowed):
        return f"{error.method[:20]} is not possible here; {', '.join(sorted(error.allowed_methods))} is"
    if isinstance(error, web.HTTPRequestEntityTooLarge):
        return "the request's body is too large; the routes need none"
    return error.reason


def _kept(error: web.HTTPException) -> dict[str, str]:
    return {hdrs.ALLOW: error.headers[hdrs.ALLOW]} if hdrs.ALLOW in error.headers else {}


async def add_headers(request: web.Request, response: web.StreamResponse) -> None:
    """A signal of the application, ``on_response_prepare``: :func:`set_headers`."""
    set_headers(response)


def set_headers(response: web.StreamResponse) -> None:
    """Give an answer the headers that every one has, unless it has its own."""
    for name, value in _HEADERS.items():
        response.headers.setdefault(name, value)
    response.headers[hdrs.SERVER] = "aiperf"


__all__ = [
    "FILE_POLICY", "POLICY", "Guard", "Handler", "Refusal", "add_headers", "host_of", "is_loopback", "middleware", "refused",
    "set_headers",
]  # fmt: skip
