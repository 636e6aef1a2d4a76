"""How an endpoint asks its server before the load."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy

import msgspec
import pytest
from aiperf.sdk.asking import ASK_S, AskError, Reply
from aiperf.sdk.endpoint import Endpoint, encoded
from aiperf.sdk.model import HttpRequest

from aiperf_testing.endpoints.transcript import OnTranscript
from aiperf_testing.findings import unlike


class ScriptedAsk:
    """A server with these replies, one a call; without one it gives no answer.  asked: the requests."""

    url = "http://localhost:8000"
    models: tuple[str, ...] = ("model",)

    def __init__(self, replies: Sequence[Reply], scheme: str) -> None:
        self.scheme, self._left = scheme, list(replies)
        self.asked: list[HttpRequest] = []

    def __call__(self, request: HttpRequest, *, timeout_s: float = ASK_S) -> Reply:
        self.asked.append(request)
        assert not request.path or request.path.startswith("/"), f"it asks for {request.path!r}: a path begins with /"
        assert isinstance(request.body, bytes), f"the body of a question is {request.body!r:.80}, not bytes"
        if not self._left:
            raise AskError(f"{self.url} gives no answer")
        return self._left.pop(0)


class AskingTests(OnTranscript):
    """What it learns of the server holds for every process; why a server isn't ready is a sentence."""

    @property
    def _scheme(self) -> str:
        return next(iter(self.endpoint.capabilities.schemes), "http")

    def test_what_it_prepares_is_the_same_in_every_process(self) -> None:
        endpoint = self.endpoint
        if type(endpoint).prepare is Endpoint.prepare:
            pytest.skip("this endpoint asks nothing before the load")
        ask = ScriptedAsk(self.replies, self._scheme)
        result = deepcopy(endpoint).prepare(ask)
        assert ask.asked or not self.replies, "it asks for nothing, and replies has answers"
        if result is None:
            return
        again = msgspec.json.decode(msgspec.json.encode(result))
        assert again == result, unlike(again, result, "give JSON values alone: they go through run.json")
        other = deepcopy(endpoint).prepare(ScriptedAsk(self.replies, self._scheme))
        assert other == result, unlike(other, result, "the same replies must mean the same")
        asked, fresh = deepcopy(endpoint), type(endpoint)(endpoint.options)
        asked.prepare(ScriptedAsk(self.replies, self._scheme))
        asked.prepared = fresh.prepared = again
        assert encoded(asked, self.turn) == encoded(fresh, self.turn), (
            "another instance makes another request: keep what prepare learns in its result alone"
        )

    def test_a_server_that_is_not_ready_is_a_reason(self) -> None:
        endpoint = self.endpoint
        if type(endpoint).unready is Endpoint.unready:
            pytest.skip("its server is asked for its probe")
        reason = deepcopy(endpoint).unready(ScriptedAsk(self.ready, self._scheme))
        assert reason is None, unlike(reason, None, "give None for a server that is ready, and set ready to its replies")
        if not self.ready:
            return
        try:
            reason = deepcopy(endpoint).unready(ScriptedAsk((), self._scheme))
        except AskError:
            return
        assert isinstance(reason, str) and reason, "without an answer it is not ready: give a reason, or let AskError pass"
