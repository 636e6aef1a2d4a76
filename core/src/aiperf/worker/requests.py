"""How requests of one worker start: from a driver's ``send`` to a SENT row of the journal and the transport."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, MutableSequence, Sequence
from time import monotonic_ns
from typing import Any

from aiperf.registry.hooks import Prepare
from aiperf.rundir import journal
from aiperf.rundir.store import Store
from aiperf.rundir.uses import OwnUses
from aiperf.sdk.driver import Driver, Session
from aiperf.sdk.plan import PhasePlan, Plan, Secrets
from aiperf.sdk.transport import Exchange, Transport
from aiperf.worker.answer_texts import AnswerTexts
from aiperf.worker.early_ends import EarlyEnds
from aiperf.worker.in_flight import InFlight
from aiperf.worker.logbook import Logbook
from aiperf.worker.new_sessions import NewSessions
from aiperf.worker.overflow import Overheard
from aiperf.worker.request_contents import RequestContents
from aiperf.worker.request_sink import RequestSink
from aiperf.worker.turns import Turns
from aiperf.worker.unready import Late, Unready
from aiperf.worker.url_balance import UrlBalance


class Requests:
    """Starts requests for drivers.

    phase, driver: of the phase under way.  transport: set by :meth:`send_through`.  sink: what the transport tells.
    contents: what requests carry.  in_flight, early_ends: what is under way, and ends it before its answer.
    numbered: one cell that counts the requests of this shard, those of an earlier process included.  unready: requests that
    wait for their entries.  kind: of the sink.  uses: told of entries that are used.  warn: gets one sentence for the report.
    """

    transport: Transport
    driver: Driver[Any]

    def __init__(
        self, plan: Plan, secrets: Secrets, store: Store, logbook: Logbook, shard: int, prepare: Prepare | None = None, *,
        loop: asyncio.AbstractEventLoop, numbered: MutableSequence[int], warn: Callable[[str], None],
        kind: type[RequestSink] = RequestSink, uses: OwnUses | None = None,
    ) -> None:  # fmt: skip
        self.plan, self.store, self.logbook, self.loop = plan, store, logbook, loop
        self.phase = plan.load.phases[0]
        balance = UrlBalance(plan, warn) if len(plan.target.urls) > 1 else None
        sessions = NewSessions(plan, store, balance)
        self.session, self.child, self.streams, self.entry = sessions.session, sessions.child, sessions.streams, sessions.entry
        self.in_flight = InFlight(None if balance is None else balance.in_flight, loop.time)
        turns = Turns(plan, secrets, store, logbook, prepare, warn)
        self.contents = RequestContents(plan, store, turns, prepares=prepare is not None)
        self.early_ends = EarlyEnds(plan, self.in_flight.open, loop)
        texts, streaming = AnswerTexts(logbook, secrets.texts), plan.target.streaming
        self.sink = kind(self.in_flight, self.early_ends, turns, logbook, texts, streaming=streaming, loop=loop)
        self.unready = Unready(store, loop, self._send_late, uses)
        self._numbered, self._prefix = numbered, journal.request_prefix(plan.run.run_id, shard)

    def send_through(self, transport: Transport) -> None:
        """Set the transport of all requests."""
        self.transport = self.early_ends.transport = transport

    def begin(self, phase: PhasePlan, driver: Driver[Any], on_idle: Callable[[], None] = lambda: None) -> None:
        """Serve *driver*, and count from 0.  *on_idle* is called when it has sent all, and no request is in flight."""
        self.phase = self.early_ends.phase = phase
        self.driver = driver
        self.in_flight.begin()
        self.contents.begin(phase, changes_bodies=getattr(self.transport, "changing_bodies", False))
        self.sink.begin(phase, driver, on_idle)

    @property
    def secret_headers(self) -> Sequence[str]:
        """Names of the headers whose values are shown nowhere."""
        return self.contents.turns.secret_names

    # For drivers: RequestStarter

    def name(self, entry: int) -> str:
        return self.store.id(entry)

    def turns(self, entry: int) -> int:
        return self.store.turns(entry)

    def recorded_ns(self, entry: int, turn: int) -> tuple[int, int] | None:
        return self.store.recorded_ns(entry, turn)

    def delay_ns(self, session: Session) -> int:
        return self.store.delay_ns(session.entry, session.turn)

    def send(self, session: Session, n: int, due_ns: int, held_ns: int = 0) -> None:
        entry, in_flight = session.entry, self.in_flight
        if entry >= self.store.entries and not self.unready.reaches(entry):
            due_ns = due_ns if due_ns >= 0 else monotonic_ns()  # what is late is late behind this instant
            self.unready.put_off((session, n, due_ns, held_ns, in_flight.ended))
            return
        request = self._numbered[0]
        body, shape, shown, fault = self.contents.of(session, request)
        self._numbered[0] = request + 1
        started_ns = monotonic_ns()
        exchange = Exchange(request, shape, body, f"{self._prefix}{request:012x}", session.id, started_ns)
        exchange.deadline_ns = started_ns + self.plan.target.timeout_ns
        exchange.owner, exchange.final = session, session.last
        if not exchange.final or session.forks or session.prefilling:
            self.contents.turns.listen(session, self.driver.first_token)
        if self.driver.overflow_words:
            session.overheard = Overheard(session.listen)
            session.listen = session.overheard.feed
        if self.phase.cancel_share:
            exchange.armed = self.early_ends.cancels(session)
        if in_flight.by_url is not None:
            in_flight.by_url[session.url] += 1
        in_flight.open[request] = exchange
        in_flight.sent += 1
        self.logbook.sent(
            (
                request, n, session.phase, session.number, session.turn, entry, session.url, session.model, due_ns, started_ns,
                held_ns, in_flight.ended, session.lane, session.held_by,
            )
        )  # fmt: skip
        if self.plan.output.keeps_requests:
            self.contents.turns.log(exchange, shown)
        if fault is None:
            self.transport.send(exchange)
        else:
            self.loop.call_soon(self.sink.done, exchange, fault)  # the driver is still inside send

    def _send_late(self, late: Late) -> None:
        session, n, due_ns, held_ns, self.in_flight.ended = late
        session.turns = session.turns or self.store.turns(session.entry)
        self.send(session, n, due_ns, held_ns)
        self.in_flight.ended = -1

    # Ending

    def stop(self) -> None:
        """Send nothing more, not even what waits for its entry."""
        self.driver.stop()
        self.unready.drop()

    def abort_all(self) -> None:
        """Stop, and abort all requests in flight: the grace period is over."""
        self.stop()
        self.early_ends.abort_all()
