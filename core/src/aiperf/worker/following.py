"""Several exchanges for one request, for endpoints that define ``follow``: a job that is polled, an upload, a download.

:class:`Following` stands between a worker's requests and its transport.  To the requests it is the transport of whole requests;
to the transport it is the sink of single exchanges, the *legs* of a request.  Other endpoints run without it.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from time import monotonic_ns

from msgspec.structs import replace

from aiperf.errors import ENDPOINT_ERROR
from aiperf.registry.third_party import endpoint_of, why
from aiperf.rundir.journal import DRAINED
from aiperf.sdk.draws import uniform
from aiperf.sdk.driver import Session
from aiperf.sdk.exchanges import Answered, Done, Follow
from aiperf.sdk.fetch import origin
from aiperf.sdk.model import ErrorDetails, HttpRequest, joined
from aiperf.sdk.transport import RECONNECTED, RESENT, REUSED, STREAMED, Exchange, Transport
from aiperf.worker.draining import Drain
from aiperf.worker.requests import Requests
from aiperf.worker.rounds import Rounds

_SAID_BYTES = 2048
"""Length of the part of a body that an error message quotes."""
_SPREAD, _LEAST_WAIT = 0.4, 0.1
"""Shares of a poll's interval: by how much it varies, up and down; and the shortest wait behind a slow answer."""
_ROUND = 1 / 32
"""Share of a poll's interval by which it may come sooner or later, to be sent with others."""
_ACCEPTED = 202
"""The status of a request whose processing has not been completed (RFC 9110)."""


class _Answer:
    """The answer of a leg.  reads: with ~``hidden`` of a message.  drain: where its bytes go, None keeps them all."""

    __slots__ = ("drain", "head", "leg", "reads", "trailers")

    def __init__(self, leg: Exchange) -> None:
        self.leg = leg
        self.reads: list[tuple[bytes, int, int, int]] = []
        self.head: tuple[int, str, list[tuple[str, str]]] | None = None
        self.trailers: list[tuple[str, str]] | None = None
        self.drain: Drain | None = None

    def read(self, body: bytes, kernel_ns: int, read_ns: int, hidden: int) -> None:
        if self.leg.shape.drain and self.leg.shape.drains(self.leg.status):
            if self.drain is None:
                self.drain = Drain()
            body = self.drain.take(body, kernel_ns, read_ns)
            if not body:
                return
        self.reads.append((body, kernel_ns, read_ns, hidden))

    @property
    def body(self) -> bytes:
        """The bytes that were kept."""
        return self.reads[0][0] if len(self.reads) == 1 else b"".join([read[0] for read in self.reads])

    @property
    def stamps(self) -> tuple[int, int]:
        """Stamps of the last read; 0 without any."""
        if self.drain is not None:
            return self.drain.kernel_ns, self.drain.read_ns
        return self.reads[-1][1:3] if self.reads else (0, 0)


class _Chain:
    """A request and its legs.

    leg: in flight, None while the next one waits.  answer: of *leg*, or of the last one.  kept: the answer that is the
    request's though others follow.  step, shape, body: what *leg* is, or the next one; None for the first.
    over: the request was aborted, and nothing follows.  legs: rows of the journal's text ``legs``.
    """

    __slots__ = ("answer", "body", "final", "kept", "leg", "legs", "outer", "over", "shape", "step")

    def __init__(self, outer: Exchange) -> None:
        self.outer, self.final, self.over = outer, outer.final, False
        self.shape, self.body = outer.shape, outer.body
        self.legs: list[tuple[int, int, int, int, bool]] = []
        self.step: Follow | None = None
        self.kept: _Answer | None = None
        self.leg: Exchange | None
        self.begin(outer)

    @property
    def polled(self) -> bool:
        """Whether the leg began behind a wait."""
        return self.step is not None and self.step.after_s > 0

    def begin(self, leg: Exchange) -> None:
        leg.final = False  # whether it is the last is only known behind its answer
        self.leg = leg
        self.answer = _Answer(leg)


class Following:
    """The transport of requests that have legs.  A request's answer is that of its last leg; nothing of others is journaled
    but their stamps.  *transport* is set by the owner."""

    transport: Transport

    def __init__(self, requests: Requests, loop: asyncio.AbstractEventLoop) -> None:
        plan = requests.plan
        self._requests, self._seed, self._rounds = requests, plan.run.seed, Rounds(loop, self._start)
        self._endpoint = endpoint_of(plan)
        self._sticky, self._keep_heads = plan.target.sticky, plan.output.keeps_requests
        self._chains: dict[int, _Chain] = {}

    # For the requests: Transport

    async def open(self) -> None:
        await self.transport.open()

    async def warm(self, connections: int) -> None:
        await self.transport.warm(connections)

    async def close(self) -> None:
        await self.transport.close()

    @property
    def statistics(self) -> dict[str, int]:
        return self.transport.statistics

    @property
    def stamps(self) -> str:
        return getattr(self.transport, "stamps", "kernel")

    @property
    def changing_bodies(self) -> bool:
        return getattr(self.transport, "changing_bodies", False)

    def send(self, exchange: Exchange) -> None:
        self._chains[exchange.request] = _Chain(exchange)
        self.transport.send(exchange)

    def abort(self, exchange: Exchange, error: ErrorDetails | None) -> None:
        chain = self._chains.get(exchange.request)
        if chain is None:  # it never came to a leg
            self._requests.sink.done(exchange, error)
            return
        chain.over = True
        if chain.leg is not None:
            self.transport.abort(chain.leg, error)
        else:
            self._end(chain, None, error)

    # For the transport: Sink

    def chunk(self, exchange: Exchange, body: bytes, kernel_ns: int, read_ns: int, hidden: int) -> None:
        self._chains[exchange.request].answer.read(body, kernel_ns, read_ns, hidden)

    def message(self, exchange: Exchange, data: bytes, kernel_ns: int, read_ns: int, hidden: int = 0) -> None:
        self._chains[exchange.request].answer.read(data, kernel_ns, read_ns, ~hidden)

    def trailers(self, exchange: Exchange, trailers: list[tuple[str, str]]) -> None:
        self._chains[exchange.request].answer.trailers = trailers

    def head(self, exchange: Exchange, status: int, reason: str, headers: list[tuple[str, str]]) -> None:
        self._chains[exchange.request].answer.head = status, reason, headers

    def written(self, exchange: Exchange) -> None:
        self._requests.sink.written(exchange)  # of the first leg: no other is armed

    def done(self, exchange: Exchange, error: ErrorDetails | None) -> None:
        chain = self._chains.get(exchange.request)
        if chain is None or chain.leg is not exchange:
            return
        chain.leg, answer = None, chain.answer
        first_ns = answer.reads[0][2] if answer.reads else exchange.ack_ns
        last_ns = answer.stamps[1]
        ended_ns = last_ns if last_ns and error is None else monotonic_ns()
        chain.legs.append((exchange.started_ns, first_ns, ended_ns, exchange.status, chain.polled))
        last: _Answer | None = answer
        # A poll that breaks off is no answer that began: whether a deadline falls into a poll or between two is chance.
        if chain.polled and error is not None and (chain.over or exchange.status == _ACCEPTED):
            self._pass(chain, exchange)
            last = None
        if error is None and not chain.over and 200 <= exchange.status < 300:
            began_ns = monotonic_ns()
            try:
                if (wait_s := self._next(chain, exchange)) is not None:
                    self._pass(chain, exchange)
                    if wait_s and chain.step is not None:
                        self._rounds.add(chain, wait_s, chain.step.after_s * _ROUND)
                    else:
                        self._start(chain)
                    return
            except Exception as trouble:  # noqa: BLE001  # code of a plugin
                error = ErrorDetails(f"the endpoint can't follow the answer: {why(trouble)}", type=ENDPOINT_ERROR)
                last = None
            finally:
                self._requests.contents.encode_ns += monotonic_ns() - began_ns
        elif chain.step is not None and chain.step.failure is not None and not chain.over:
            error = _failure(chain.step, exchange, answer, error)
        self._end(chain, last, error)

    def _next(self, chain: _Chain, exchange: Exchange) -> float | None:
        """Seconds until the next leg, which stands in *chain* then; None behind the last.

        Raises:
            Exception: Of the endpoint, or because of what it returned.
        """
        answer, before = chain.answer, chain.step
        headers = {} if answer.head is None else {name.lower(): value for name, value in answer.head[2]}
        number, url = len(chain.legs) - 1, exchange.shape.url
        state, request = (None, None) if before is None else (before.state, before.request)
        step = self._endpoint.follow(Answered(number, exchange.status, answer.body, headers, request, state, url))
        if isinstance(step, Done):
            return None
        if not isinstance(step, Follow) or not isinstance(step.request, HttpRequest):
            raise TypeError(f"follow returned {type(step).__name__}, neither Follow with an HttpRequest nor Done")
        after_s = step.after_s
        if not 0 <= after_s < math.inf:
            raise ValueError(f"follow gave after_s {after_s!r}, which must be 0 or more")
        session = chain.outer.owner
        assert isinstance(session, Session)  # the kernel's owner of every request
        if request is not step.request or before is None or before.drain is not step.drain:  # else it is asked again
            self._shape(chain, session, step, url)
        if step.keep:
            chain.kept = answer
        chain.step = step
        if not after_s:
            return 0.0
        # Requests that began together would ask together, for ever: each has intervals of its own.
        label = f"follow:{session.phase}:{session.turn}:{number + 1}"
        interval_s = after_s * (1 + _SPREAD * (2 * uniform(self._seed, label, session.number) - 1))
        spent_s = (monotonic_ns() - exchange.started_ns) / 1e9 if before is not None and before.after_s else 0.0
        return max(interval_s - spent_s, after_s * _LEAST_WAIT)

    def _shape(self, chain: _Chain, session: Session, step: Follow, url: str) -> None:
        """Shape and body of the next leg, behind one that went to *url*.

        Raises:
            Exception: It can't be sent.
        """
        request = step.request
        if not request.path.startswith("/") and origin(request.path) != origin(url):
            raise ValueError(f"follow gave the path {request.path!r}: not below /, and no URL of the same server")
        chain.body = joined(request).body
        chain.shape = self._requests.contents.shape_of(session, replace(request, drain=True) if step.drain else request)

    def _pass(self, chain: _Chain, exchange: Exchange) -> None:
        """Leave a leg behind that is not the last."""
        outer = chain.outer
        if exchange is not outer:
            outer.bytes_received += exchange.bytes_received
            outer.flags |= exchange.flags & (RECONNECTED | RESENT)

    def _start(self, chain: _Chain) -> None:
        if chain.over:
            return
        outer = chain.outer
        leg = Exchange(outer.request, chain.shape, chain.body, outer.request_id, outer.session_id, monotonic_ns())
        leg.deadline_ns, leg.owner = outer.deadline_ns, outer.owner
        chain.begin(leg)
        self.transport.send(leg)

    def _end(self, chain: _Chain, last: _Answer | None, error: ErrorDetails | None) -> None:
        """End the request with the answer *last*, or with the one kept before it; or without any."""
        outer, sink = chain.outer, self._requests.sink
        del self._chains[outer.request]
        behind: _Answer | None = None
        kept = chain.kept if last is not None and 200 <= last.leg.status < 300 else None
        begun = None if kept is None else (kept.leg.status, kept.leg.ack_ns, kept.leg.flags & STREAMED)
        if last is None:
            outer.status = outer.ack_ns = 0
        else:
            self._take(chain, last)
        if begun is not None:
            last, behind, outer.flags = kept, last, outer.flags & ~STREAMED | begun[2]
            outer.status, outer.ack_ns = begun[:2]
        self._requests.logbook.text(outer.request, "legs", chain.legs)
        if last is not None:
            self._tell(chain, last, behind)
        outer.final = chain.final
        if self._sticky and (chain.final or chain.over or error is not None):
            part: Callable[[str], None] | None = getattr(self.transport, "part", None)
            if part is not None:
                part(outer.session_id)
        sink.done(outer, error)

    def _take(self, chain: _Chain, last: _Answer) -> None:
        """Add what the last leg's exchange has to the request's."""
        outer, leg = chain.outer, last.leg
        if leg is not outer:
            outer.status, outer.ack_ns = leg.status, leg.ack_ns
            outer.flags = outer.flags & (REUSED | RECONNECTED | RESENT) | leg.flags & ~REUSED
            outer.bytes_received += leg.bytes_received

    def _tell(self, chain: _Chain, answer: _Answer, behind: _Answer | None) -> None:
        """Journal the request's answer; of the one *behind* it the last stamp."""
        outer, sink = chain.outer, self._requests.sink
        if answer.head is not None and (self._keep_heads or not 200 <= answer.leg.status < 300):
            sink.head(outer, *answer.head)
        if answer.drain is not None:
            self._requests.logbook.text(outer.request, DRAINED, answer.drain.bytes)
        for body, kernel_ns, read_ns, hidden in answer.reads:
            if hidden < 0:
                sink.message(outer, body, kernel_ns, read_ns, ~hidden)
            else:
                sink.chunk(outer, body, kernel_ns, read_ns, hidden)
        kernel_ns, read_ns = answer.stamps if behind is None else behind.stamps
        if behind is not None or (answer.drain is not None and answer.drain.behind):
            sink.chunk(outer, b"", kernel_ns, read_ns or monotonic_ns(), 0)
        if answer.trailers is not None:
            sink.trailers(outer, answer.trailers)


def _failure(step: Follow, exchange: Exchange, answer: _Answer, error: ErrorDetails | None) -> ErrorDetails:
    """The error of an exchange whose failures have a type of their own."""
    if error is not None:
        return replace(error, type=step.failure)
    said = answer.body[:_SAID_BYTES].decode("utf-8", "replace").strip()
    what = f"HTTP {exchange.status}"  # paths have ids, and equal errors are counted together
    return ErrorDetails(f"{what}: {said}" if said else what, type=step.failure, code=exchange.status)
