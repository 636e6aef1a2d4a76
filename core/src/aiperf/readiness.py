"""Waiting until the servers under test are ready, before anything is measured: ``--wait-for-model-*``."""

from __future__ import annotations

import contextlib
import http.client
import json
import logging
import socket
import ssl
import threading
import time
from collections.abc import Sequence
from http import HTTPStatus
from typing import Any
from urllib.parse import urlsplit

from msgspec import Struct

from aiperf import __version__, addresses, environment, pairs
from aiperf.engine.contract import tls_context
from aiperf.errors import AiperfError, ConfigError
from aiperf.model import HttpRequest, Turn, join_url, names
from aiperf.plan import Plan, Secrets
from aiperf.strangers import load, who, why

log = logging.getLogger(__name__)

_TELL_EVERY_S = 5.0
_MOST_BYTES = 1 << 20
_FAMILIES = {"4": socket.AF_INET, "6": socket.AF_INET6}


class Question(Struct, frozen=True):
    """What a server is asked; one that names no *models* is ready when it answers with any status below 500.

    models: it is ready when its list (``GET /v1/models``) names all of them; where there is no list, when *base* answers well.
    """

    url: str
    headers: dict[str, str]
    method: str = "GET"
    body: bytes = b""
    models: tuple[str, ...] = ()
    base: str = ""

    def refused(self, status: int, body: bytes) -> str | None:
        """Why the answer doesn't mean ready; None where it does."""
        if not self.models:
            return f"it answers with {_status(status)}" if status >= 500 else None
        if status != 200:
            return f"its list of models is answered with {_status(status)}"
        listed = _listed(body)
        if listed is None:
            return "its list of models can't be read"
        missing = [model for model in self.models if model not in listed]
        return f"it lists {names(listed)}, not {names(missing)}" if missing else None


def questions(plan: Plan, secrets: Secrets, mode: str) -> list[list[Question]]:
    """For each URL what it must be asked: its models, for an answer from each (one token long), or both.

    Raises:
        ConfigError: The endpoint can't encode a turn of plain text.
    """
    common = {"User-Agent": f"aiperf/{__version__}", "Accept": "text/event-stream" if plan.streaming else "application/json"}
    asked: list[list[Question]] = []
    for url in plan.urls:
        listed = Question(join_url(url, "/v1/models"), pairs.merged(common, secrets.headers), models=plan.models, base=url)
        asked.append([listed] if mode in ("models", "both") else [])
    if mode in ("inference", "both"):
        endpoint = load(plan.endpoint)(plan.plugin_options(plan.endpoint))
        for model in plan.models:
            turn = Turn(texts=("Hello",), model=model, max_tokens=1, stream=plan.streaming, extra=plan.extra)
            request = _encoded(plan, endpoint, turn)
            headers = pairs.merged({**common, "Content-Type": request.content_type}, request.headers)
            for url, row in zip(plan.urls, asked, strict=True):
                to = join_url(url, plan.path)
                row.append(Question(to, pairs.merged(headers, secrets.headers), request.method, request.body))
    return asked


def _encoded(plan: Plan, endpoint: Any, turn: Turn) -> HttpRequest:
    try:
        request: HttpRequest = endpoint.encode(turn)
    except Exception as error:  # strangers' code, or a dialect that wants more than text
        raise ConfigError(
            f"{who(plan.endpoint)} can't encode the request to ask with: {why(error)}", "pass --wait-for-model-mode models"
        ) from error
    return request


class Wait:
    """Asks every server until it is ready, each in a thread of its own, so that none holds up another or the caller.

    *interval_s*: between two looks at one server.  What keeps a server is logged: when it changes, and now and then.
    """

    def __init__(self, plan: Plan, secrets: Secrets, mode: str, timeout_s: float, interval_s: float) -> None:
        self._timeout_s, self._interval_s = timeout_s, interval_s
        self._begun_s = time.monotonic()
        self._reasons: dict[str, str | None] = {}
        self._family = _FAMILIES.get(environment.ip_version(), socket.AF_UNSPEC)
        tls = tls_context(plan.tls) if any(url.startswith("https://") for url in plan.urls) else None
        self._threads = []
        for url, asked in zip(plan.urls, questions(plan, secrets, mode), strict=True):
            shown = addresses.without_secrets(url)
            self._reasons[shown] = "it has not answered"
            # A daemon: a server that never answers must not keep the program from ending.
            self._threads.append(threading.Thread(target=self._ask, args=(shown, asked, tls), daemon=True))
        for thread in self._threads:
            thread.start()

    def over(self) -> bool:
        """Whether everyone is ready, or the time is up."""
        return self._left_s() <= 0 or not any(thread.is_alive() for thread in self._threads)

    def settle(self) -> None:
        """Go on where everyone is ready.

        Raises:
            AiperfError: Somebody isn't; what each of them said last.
        """
        unready = [f"{url}: {reason}" for url, reason in self._reasons.items() if reason is not None]
        if unready:
            raise AiperfError(
                f"not ready within {self._timeout_s:g} s: {'; '.join(unready)}",
                "wait longer with --wait-for-model-timeout, or look at the server",
            )

    def _left_s(self) -> float:
        return self._begun_s + self._timeout_s - time.monotonic()

    def _ask(self, shown: str, asked: Sequence[Question], tls: ssl.SSLContext | None) -> None:
        told, told_s = "", 0.0
        while (left_s := self._left_s()) > 0:
            reason = next(filter(None, (_unready(question, tls, self._family, left_s) for question in asked)), None)
            self._reasons[shown] = reason
            now_s = time.monotonic()
            if reason is None:
                log.info("%s is ready after %.1f s", shown, now_s - self._begun_s)
                return
            if reason != told or now_s - told_s >= _TELL_EVERY_S:
                log.info("Waiting for %s: %s (%.0f of %g s)", shown, reason, now_s - self._begun_s, self._timeout_s)
                told, told_s = reason, now_s
            time.sleep(max(0.0, min(self._interval_s, self._left_s())))


def _unready(question: Question, tls: ssl.SSLContext | None, family: int, timeout_s: float) -> str | None:
    """Why the server isn't ready; None where it is."""
    try:
        status, body = _answer(question, question.url, tls, family, timeout_s)
        if status == 404 and question.models:
            status, _ = _answer(question, question.base, tls, family, timeout_s)
            return None if 200 <= status < 300 else f"it has no list of models, and answers with {_status(status)}"
        return question.refused(status, body)
    except TimeoutError:
        return "it does not answer"
    except (OSError, http.client.HTTPException, UnicodeError) as error:
        return f"{type(error).__name__}: {(error.strerror if isinstance(error, OSError) else None) or error}"


def _answer(question: Question, url: str, tls: ssl.SSLContext | None, family: int, timeout_s: float) -> tuple[int, bytes]:
    """Status and body of the answer, asked for on a connection of its own."""
    parts = urlsplit(url)
    secure = parts.scheme == "https"
    host, port = parts.hostname or "", parts.port or (443 if secure else 80)
    connection = http.client.HTTPConnection(host, port, timeout=timeout_s)
    with contextlib.closing(connection):
        connection.sock = _connected(host, port, family, timeout_s)
        if secure and tls is not None:
            connection.sock = tls.wrap_socket(connection.sock, server_hostname=host)
        target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        headers = {"Accept-Encoding": "identity", **question.headers, "Connection": "close"}
        if secure and port == 443:  # http.client knows the port of its own scheme alone
            headers.setdefault("Host", f"[{host}]" if ":" in host else host)
        connection.request(question.method, target, question.body or None, headers)
        answer = connection.getresponse()
        body = b""
        with contextlib.suppress(OSError, http.client.HTTPException):  # of an answer to a request the status says enough
            body = answer.read(_MOST_BYTES)
        return answer.status, body


def _connected(host: str, port: int, family: int, timeout_s: float) -> socket.socket:
    """A connection to the first address of the family that takes it."""
    failed: OSError | None = None
    for kind, _, _, _, address in socket.getaddrinfo(host, port, family, socket.SOCK_STREAM):
        made = socket.socket(kind, socket.SOCK_STREAM)
        made.settimeout(timeout_s)
        try:
            made.connect(address)
        except OSError as error:
            made.close()
            failed = error
        else:
            return made
    raise failed or OSError(f"{host} has no address")


def _listed(body: bytes) -> list[str] | None:
    """Ids in a list of models; None where it is none."""
    try:
        data = json.loads(body)["data"]
        return [str(one["id"]) for one in data]
    except (ValueError, KeyError, TypeError):
        return None


def _status(status: int) -> str:
    try:
        return f"{status} {HTTPStatus(status).phrase}"
    except ValueError:
        return str(status)
