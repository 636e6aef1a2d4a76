"""The life cycle of requests on one worker: from a driver's ``send`` to a DONE row of the journal."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, MutableSequence, Sequence
from itertools import takewhile
from time import monotonic_ns, time_ns
from typing import Any

from aiperf.errors import ENDPOINT_ERROR
from aiperf.registry.hooks import Prepare
from aiperf.registry.third_party import why
from aiperf.rundir import journal
from aiperf.rundir.shapes import shape_of
from aiperf.rundir.store import Store
from aiperf.sdk.draws import uniform
from aiperf.sdk.driver import Driver, Session
from aiperf.sdk.model import ErrorDetails, HttpRequest
from aiperf.sdk.plan import PhasePlan, Plan, Secrets
from aiperf.sdk.sse import Messages
from aiperf.sdk.transport import MESSAGES, STREAMED, Exchange, Shape, Transport
from aiperf.worker.answer_texts import AnswerTexts
from aiperf.worker.clock import NS_PER_S
from aiperf.worker.connecting import Connecting
from aiperf.worker.logbook import Logbook
from aiperf.worker.new_sessions import NewSessions
from aiperf.worker.turns import Turns
from aiperf.worker.unready import Late, Unready
from aiperf.worker.url_balance import UrlBalance


class Requests:
    """Starts requests for drivers, and hears from the transport what becomes of them.

    phase, driver: of the phase under way.  open: requests in flight, by number.  encode_ns: time that endpoint and hooks took
    for requests that were not encoded before the load.  numbered: one cell that counts the requests of this shard, those of an
    earlier process included.  unready: requests that wait for their entries.  connecting: how far requests get to
    their servers.  warn: gets one sentence for the report.
    """

    transport: Transport
    driver: Driver[Any]

    def __init__(
        self, plan: Plan, secrets: Secrets, store: Store, logbook: Logbook, shard: int, prepare: Prepare | None = None, *,
        loop: asyncio.AbstractEventLoop, numbered: MutableSequence[int], warn: Callable[[str], None],
    ) -> None:  # fmt: skip
        self.plan, self.store, self.logbook, self.loop = plan, store, logbook, loop
        self.phase = plan.load.phases[0]
        self.open: dict[int, Exchange] = {}
        self.sent = self.completed = self.errors = self.last_answer_ns = self.encode_ns = 0
        self.on_idle: Callable[[], None] = lambda: None
        self.connecting = Connecting(self.open, loop.time)
        self._pauses = self.connecting.pauses
        texts = AnswerTexts(logbook, secrets.texts)  # whose methods are this sink's: a call less than handing on
        self.head, self.trailers, self._log_error = texts.head, texts.trailers, texts.error
        self._turns = Turns(plan, secrets, store, logbook, prepare, warn)
        self._shapes = self._turns.shapes
        balance = UrlBalance(plan, warn) if len(plan.target.urls) > 1 else None
        self._in_flight = None if balance is None else balance.in_flight
        self.session = NewSessions(plan, store, balance).session
        self.unready, store.on_shapes = Unready(store, loop, self._send_late), self._add_shapes
        self._numbered, self._log_chunk = numbered, logbook.chunk
        self._ending: int | None = None
        self._after = -1  # the request whose end the driver is told of
        self._logs_requests, self._prepares = plan.output.keeps_requests, prepare is not None
        self._changes_bodies, self._first_turns_stored = False, not self._prepares
        self._request_prefix = journal.request_prefix(plan.run.run_id, shard)

    def begin(self, phase: PhasePlan, driver: Driver[Any]) -> None:
        """Serve *driver*, and count from 0."""
        self.connecting.begin()
        self.phase, self.driver = phase, driver
        self._changes_bodies = getattr(self.transport, "changing_bodies", False)
        self._first_turns_stored = not (self._prepares or self.plan.data.cache_bust.marks(phase.kind))
        self.sent = self.completed = self.errors = 0

    @property
    def secret_headers(self) -> Sequence[str]:
        """Names of the headers whose values are shown nowhere."""
        return self._turns.secret_names

    # For drivers: RequestStarter

    def delay_ns(self, session: Session) -> int:
        return self.store.delay_ns(session.entry, session.turn)

    def send(self, session: Session, n: int, due_ns: int, held_ns: int = 0) -> None:
        entry, turn = session.entry, session.turn
        if entry >= self.store.entries and not self.unready.reaches(entry):
            self.unready.put_off((session, n, due_ns, held_ns, self._after))
            return
        request = self._numbered[0]
        stored = turn == 0 and self._first_turns_stored
        fault: ErrorDetails | None = None
        body: Any
        shown = None
        if stored:
            body = self.store.body(entry, 0, session.model)
            shape = self._shapes[session.url][self.store.shape(entry, 0, session.model)]
        else:
            began_ns = monotonic_ns()
            try:
                whole, shape, shown = self._turns.encode(session, request)
                body = whole if self._changes_bodies else bytes(whole)
            except Exception as error:  # noqa: BLE001  # code of a plugin, per request: cheaper than isolated()
                fault = ErrorDetails(f"the endpoint can't make the request: {why(error)}", type=ENDPOINT_ERROR)
                body, shape, shown = b"", self._shapes[session.url][0], b""
            self.encode_ns += monotonic_ns() - began_ns
        self._numbered[0] = request + 1
        started_ns = monotonic_ns()
        exchange = Exchange(request, shape, body, f"{self._request_prefix}{request:012x}", session.id, started_ns)
        exchange.deadline_ns = started_ns + self.plan.target.timeout_ns
        exchange.owner, exchange.final = session, session.last
        if session.prefilling or not exchange.final:
            self._turns.listen(session, self.driver.first_token)
        if share := self.phase.cancel_share:
            label = f"cancel:{self.phase.name}:{turn}"
            exchange.armed = uniform(self.plan.run.seed, label, session.number) < share
        if self._in_flight is not None:
            self._in_flight[session.url] += 1
        self.open[request] = exchange
        self.sent += 1
        self.logbook.sent(
            (
                request, n, session.phase, session.number, turn, entry, session.url, session.model, due_ns, started_ns, held_ns,
                self._after,
            )
        )  # fmt: skip
        if self._logs_requests:
            self._turns.log(exchange, shown)
        if fault is None:
            self.transport.send(exchange)
        else:
            self.loop.call_soon(self.done, exchange, fault)  # the driver is still inside send

    def _send_late(self, late: Late) -> None:
        session, n, due_ns, held_ns, self._after = late
        session.turns = session.turns or self.store.turns(session.entry)
        self.send(session, n, due_ns, held_ns)
        self._after = -1

    def _add_shapes(self) -> None:
        for row, url in zip(self._shapes, self.plan.target.urls, strict=True):
            row += [self._turns.new_shape(stored, url) for stored in self.store.shapes[len(row) :]]

    # For the transport: Sink

    def chunk(self, exchange: Exchange, body: bytes, kernel_ns: int, read_ns: int, hidden: int) -> None:
        log_chunk = self._log_chunk
        log_chunk(exchange.request, kernel_ns, read_ns, body, hidden)
        session: Any = exchange.owner
        if session.listen is not None:  # a later turn repeats the answer, or waits for its last stamp
            session.kernel_ns, session.read_ns = kernel_ns, read_ns
            session.listen(body)

    def message(self, exchange: Exchange, data: bytes, kernel_ns: int, read_ns: int) -> None:
        if not exchange.flags & MESSAGES:
            exchange.flags |= MESSAGES | (STREAMED if self.plan.target.streaming else 0)
            session: Any = exchange.owner
            if session.listen is not None:
                self._turns.listen(session, self.driver.first_token, Messages)
        self.chunk(exchange, data, kernel_ns, read_ns, journal.MESSAGE)

    def written(self, exchange: Exchange) -> None:
        """The whole request is sent; the time to its cancellation begins."""
        # Not at once, even without a delay: the transport is still inside its send.
        self.loop.call_later(self.phase.cancel_delay_ns / NS_PER_S, self._cancel, exchange)

    def shape_of(self, session: Session, request: HttpRequest) -> Shape:
        """The shape of a further exchange of a session's request."""
        return self._turns.new_shape(shape_of(request), self.plan.target.urls[session.url])

    def _cancel(self, exchange: Exchange) -> None:
        if exchange.request in self.open:
            message = f"Request cancelled {self.phase.cancel_delay_ns / NS_PER_S:.3f}s after being sent"
            self._drop(exchange, journal.CANCELLED, ErrorDetails(message, type="RequestCancellationError", code=499))

    def _drop(self, exchange: Exchange, outcome: int, error: ErrorDetails | None) -> None:
        self._ending = outcome
        self.transport.abort(exchange, error)

    def done(self, exchange: Exchange, error: ErrorDetails | None) -> None:
        if self.open.pop(exchange.request, None) is None:
            return
        ended_ns = monotonic_ns()
        good = error is None and 200 <= exchange.status < 300
        if self._ending is not None:
            outcome, self._ending = self._ending, None
        elif good:
            outcome = journal.COMPLETED
            self.completed += 1
        else:
            outcome = journal.ERROR
            self.errors += 1
        session: Any = exchange.owner
        pause_s = 0.0
        if error is not None:
            self._log_error(exchange, error)
            pause_s = self.connecting.pause_s(session.url, error)
        elif self._pauses:
            self.connecting.opened(session.url)
        self.last_answer_ns = ended_ns
        heard = exchange.final or not good  # no later turn counts from a stamp
        session.answered_ns = ended_ns + round(pause_s * NS_PER_S) if heard else _answered_ns(exchange, ended_ns)
        self.logbook.done(
            (
                exchange.request, outcome, exchange.status, exchange.flags, exchange.connected_ns, exchange.sent_ns,
                exchange.sent_end_ns, exchange.ack_ns, ended_ns, len(exchange.body), exchange.bytes_received,
                exchange.dns_ns, exchange.connect_ns, exchange.tls_ns,
            )
        )  # fmt: skip
        session.listen = None
        if self._in_flight is not None:
            self._in_flight[session.url] -= 1
        if exchange.final:
            session.script = None  # whoever keeps the session, its bodies may be long
        else:
            self._turns.append(session, good=good, flags=exchange.flags)
        if session.prefilling:
            self.driver.first_token(session)
        if pause_s and not (self.phase.paced or self.driver.complete):
            self.loop.call_later(pause_s, self.driver.request_ended, session)
        else:
            self._after = exchange.request
            self.driver.request_ended(session)
            self._after = -1
        if self.driver.complete and not self.open:
            self.on_idle()

    # Ending

    def stop(self) -> None:
        """Send nothing more, not even what waits for its entry."""
        self.driver.stop()
        self.unready.drop()

    def abort_all(self) -> None:
        """Stop, and abort all requests in flight: the grace period is over."""
        self.stop()
        for exchange in list(self.open.values()):
            self._drop(exchange, journal.ABORTED, None)

    def sweep(self, now_ns: int) -> None:
        """End requests that take longer than the timeout.  *open* is in order of deadlines."""
        for exchange in list(takewhile(lambda exchange: exchange.deadline_ns <= now_ns, self.open.values())):
            unsent = exchange.armed and not exchange.sent_end_ns
            missing, kind = ("not fully sent", "RequestSendTimeout") if unsent else ("no whole answer", "TimeoutError")
            within = f"within {self.plan.target.timeout_ns / NS_PER_S:g} s"
            self.transport.abort(exchange, ErrorDetails(f"{missing} {within}", type=kind, code=504))


def _answered_ns(exchange: Exchange, ended_ns: int) -> int:
    """Stamp of the answer's last byte, monotonic: the kernel's where there is one, else the read's, else *ended_ns*.

    A kernel stamp is of the wall clock, which may have been set since.
    """
    session: Any = exchange.owner
    kernel_ns, read_ns = session.kernel_ns, session.read_ns
    session.kernel_ns = session.read_ns = 0
    stamp = monotonic_ns() - (time_ns() - kernel_ns) if kernel_ns else read_ns
    for answered_ns in (stamp, read_ns):
        if exchange.started_ns <= answered_ns <= ended_ns:
            return int(answered_ns)
    return ended_ns
