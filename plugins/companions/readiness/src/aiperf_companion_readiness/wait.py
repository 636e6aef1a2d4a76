"""Asking the servers whether they are ready, and what their answers mean.

Servers of HTTP get the question on a connection of its own; those of another scheme over the run's transport.  An endpoint that
knows when its server is ready (``Endpoint.unready``) is asked in place of that, whatever the mode.
"""

from __future__ import annotations

import contextlib
import http
import http.client
import json
import logging
import socket
import ssl
import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from urllib.parse import urlsplit

from aiperf import AiperfError, ConfigError, __version__
from aiperf.parts.asking import Asker
from aiperf.parts.loading import endpoint_of, why
from aiperf.sdk.endpoint import Endpoint, completed, encoded
from aiperf.sdk.environment import ip_version
from aiperf.sdk.framing import accept
from aiperf.sdk.headers import merged
from aiperf.sdk.model import Conversation, HttpRequest, join_url, names
from aiperf.sdk.plan import Plan, Secrets
from aiperf.sdk.transport import tls_context
from msgspec import Struct

log = logging.getLogger("aiperf.companions.readiness")

_SILENT = "it does not answer"
_CUT_SHORT_S = 1.0
_LOG_EVERY_S = 5.0
_MOST_BYTES = 1 << 20
_FAMILIES = {"4": socket.AF_INET, "6": socket.AF_INET6}


class Question(Struct, frozen=True):
    """A request that tells whether a server is ready.  Without *models* any status below 500 does.

    base, path: of the URL.  models: the server's list (``GET /v1/models``) must name all of them; without a list, *base* must
    answer with 2xx.
    """

    base: str
    path: str
    headers: dict[str, str]
    method: str = "GET"
    body: bytes = b""
    models: tuple[str, ...] = ()


Look = Callable[[float], str | None]
"""Asks a server within a time in s: why it is not ready, None if it is."""


def questions(plan: Plan, secrets: Secrets, mode: str) -> list[list[Question]]:
    """The questions for each URL: for its list of models, for an answer of one token from each model, or both.

    Raises:
        ConfigError: The endpoint can't encode its probe.
    """
    to = plan.target
    ref = plan.plugins.endpoint
    endpoint = endpoint_of(plan)
    common = {"User-Agent": f"aiperf/{__version__}", "Accept": accept(endpoint.framing, asked=to.streaming)}
    asked: list[list[Question]] = []
    for url in to.urls:
        listed = Question(url, "/v1/models", merged(common, secrets.headers), models=to.models)
        asked.append([listed] if mode in ("models", "both") else [])
    if mode in ("inference", "both"):
        for model in to.models:
            try:
                turn = completed(Conversation("probe", (endpoint.probe(),)), 0, to, model)
                request = encoded(endpoint, turn, to.given_path)
            except Exception as error:  # code of a plugin, or a dialect that needs more than text
                hint = "pass --wait-for-model-mode models"
                raise ConfigError(f"{ref} can't encode the request to ask with: {why(error)}", hint) from error
            headers = merged(merged({**common, "Content-Type": request.content_type}, request.headers), secrets.headers)
            for url, row in zip(to.urls, asked, strict=True):
                row.append(Question(url, request.path, headers, request.method, request.body))
    return asked


def looks(plan: Plan, secrets: Secrets, mode: str) -> list[list[Look]]:
    """How each server is asked.

    Raises:
        ConfigError: The endpoint can't encode its probe.
    """
    urls, endpoint = plan.target.urls, endpoint_of(plan)
    if type(endpoint).unready is not Endpoint.unready:
        return [[partial(_own_reason, endpoint, partial(Asker, plan, secrets, url))] for url in urls]
    asked = questions(plan, secrets, mode)
    if plan.target.scheme not in ("http", "https"):
        over = partial(_over_transport, partial(Asker, plan, secrets))
        return [[partial(_unready, question, over) for question in row] for row in asked]
    tls = tls_context(plan.target.tls) if any(url.startswith("https://") for url in urls) else None
    answer = partial(_answer, tls, _FAMILIES.get(ip_version(), socket.AF_UNSPEC))
    return [[partial(_unready, question, answer) for question in row] for row in asked]


class Wait:
    """Asks every server until it is ready, each in its own thread.

    *interval_s*: time between two questions to a server.  The reason of the wait is logged when it changes, and every 5 s.
    """

    def __init__(self, plan: Plan, secrets: Secrets, mode: str, timeout_s: float, interval_s: float) -> None:
        self._timeout_s, self._interval_s = timeout_s, interval_s
        self._begun_s = time.monotonic()
        self._closed = threading.Event()
        self._reasons: dict[str, str | None] = {}
        self._threads = []
        for shown, asked in zip(plan.public().target.urls, looks(plan, secrets, mode), strict=True):
            self._reasons[shown] = "it has not answered"
            # A daemon: a server that never answers must not keep the program from ending.
            self._threads.append(threading.Thread(target=self._ask, args=(shown, asked), daemon=True))
            self._threads[-1].start()

    @property
    def shown(self) -> list[str]:
        """The servers that are not ready."""
        return [url for url, reason in self._reasons.items() if reason is not None]

    def far(self) -> tuple[int | None, int | None, str]:
        """How much of the time is over."""
        return round(time.monotonic() - self._begun_s), round(self._timeout_s), "s"

    def over(self) -> bool:
        """Whether all servers are ready, or the time is up."""
        return self._left_s() <= 0 or not any(thread.is_alive() for thread in self._threads)

    def settle(self) -> None:
        """Return if all servers are ready.

        Raises:
            AiperfError: A server is not; the message has the last reason of each.
        """
        unready = [f"{url}: {reason}" for url, reason in self._reasons.items() if reason is not None]
        if unready:
            hint = "wait longer with --wait-for-model-timeout, or look at the server"
            raise AiperfError(f"not ready within {self._timeout_s:g} s: {'; '.join(unready)}", hint)

    def close(self) -> None:
        """Ask no more."""
        self._closed.set()

    def _left_s(self) -> float:
        return 0.0 if self._closed.is_set() else self._begun_s + self._timeout_s - time.monotonic()

    def _ask(self, shown: str, asked: Sequence[Look]) -> None:
        logged, logged_s = "", 0.0
        while (left_s := self._left_s()) > 0:
            reason = next(filter(None, (look(left_s) for look in asked)), None)
            if reason == _SILENT and logged and left_s < _CUT_SHORT_S:
                reason = logged  # the end of the time cut the question short; the answer before tells more
            self._reasons[shown] = reason
            now_s = time.monotonic()
            if reason is None:
                log.info("%s is ready after %.1f s", shown, now_s - self._begun_s)
                return
            if reason != logged or now_s - logged_s >= _LOG_EVERY_S:
                log.info("Waiting for %s: %s (%.0f of %g s)", shown, reason, now_s - self._begun_s, self._timeout_s)
                logged, logged_s = reason, now_s
            self._closed.wait(max(0.0, min(self._interval_s, self._left_s())))


def _own_reason(endpoint: Endpoint, asker: Callable[[], Asker], timeout_s: float) -> str | None:
    """Why the endpoint thinks that the server is not ready."""
    try:
        with contextlib.closing(asker()) as ask:
            return endpoint.unready(ask)
    except Exception as error:  # noqa: BLE001  # code of a plugin
        return why(error)


def _over_transport(
    asker: Callable[[str], Asker], question: Question, path: str, timeout_s: float
) -> tuple[int, bytes]:  # fmt: skip
    """Status and body of the answer over the run's transport; b"" of one in messages."""
    request = HttpRequest(path, question.body, question.headers, question.headers.get("Content-Type", ""), question.method)
    with contextlib.closing(asker(question.base)) as ask:
        reply = ask(request, timeout_s=timeout_s)
    return reply.status, reply.body


def _unready(question: Question, answer: Callable[[Question, str, float], tuple[int, bytes]], timeout_s: float) -> str | None:
    """Why the server is not ready; None if it is."""
    try:
        status, body = answer(question, question.path, timeout_s)
        if not question.models:
            return f"it answers with {_status(status)}" if status >= 500 else None
        if status == 404:
            status, _ = answer(question, "", timeout_s)
            return None if 200 <= status < 300 else f"it has no list of models, and answers with {_status(status)}"
        if status != 200:
            return f"its list of models is answered with {_status(status)}"
        try:
            listed = [str(model["id"]) for model in json.loads(body)["data"]]
        except (ValueError, KeyError, TypeError):
            return "its list of models can't be read"
        missing = [model for model in question.models if model not in listed]
        return f"it lists {names(listed)}, not {names(missing)}" if missing else None
    except AiperfError as error:  # AskError, or of a transport that fails
        return error.message
    except TimeoutError:
        return _SILENT
    except (OSError, http.client.HTTPException, UnicodeError) as error:
        return f"{type(error).__name__}: {(error.strerror if isinstance(error, OSError) else None) or error}"


def _answer(
    tls: ssl.SSLContext | None, family: int, question: Question, path: str, timeout_s: float
) -> tuple[int, bytes]:  # fmt: skip
    """Status and body of the answer on a new connection."""
    parts = urlsplit(join_url(question.base, path))
    secure = parts.scheme == "https"
    host, port = parts.hostname or "", parts.port or (443 if secure else 80)
    with contextlib.closing(http.client.HTTPConnection(host, port, timeout=timeout_s)) as connection:
        connection.sock = _connected(host, port, family, timeout_s)
        if secure and tls is not None:
            connection.sock = tls.wrap_socket(connection.sock, server_hostname=host)
        target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        headers = {"Accept-Encoding": "identity", **question.headers, "Connection": "close"}
        if secure and port == 443:  # http.client leaves out port 80 only
            headers.setdefault("Host", f"[{host}]" if ":" in host else host)
        connection.request(question.method, target, question.body or None, headers)
        answer = connection.getresponse()
        with contextlib.suppress(OSError, http.client.HTTPException):
            return answer.status, answer.read(_MOST_BYTES)
        return answer.status, b""  # the status suffices


def _connected(host: str, port: int, family: int, timeout_s: float) -> socket.socket:
    """A connection to the first address of the family that accepts one."""
    failed: OSError | None = None
    for kind, _, _, _, address in socket.getaddrinfo(host, port, family, socket.SOCK_STREAM):
        connection = socket.socket(kind, socket.SOCK_STREAM)
        connection.settimeout(timeout_s)
        try:
            connection.connect(address)
            return connection
        except OSError as error:
            connection.close()
            failed = error
    raise failed or OSError(f"{host} has no address")


def _status(status: int) -> str:
    return f"{status} {http.client.responses.get(status, '')}".rstrip()
