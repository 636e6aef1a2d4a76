"""Requests that end before their answer: those that are cancelled, take too long, or outlive the grace period."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from itertools import takewhile

from aiperf.rundir import journal
from aiperf.sdk.draws import uniform
from aiperf.sdk.driver import Session
from aiperf.sdk.model import ErrorDetails
from aiperf.sdk.plan import PhasePlan, Plan
from aiperf.sdk.transport import Exchange, Transport
from aiperf.worker.clock import NS_PER_S


class EarlyEnds:
    """Aborts requests among those in flight.

    phase, transport: of the phase under way; set by the owner.  outcome: of the request that is aborted just now, for its row
    of the journal; None where an answer or an error ends it.
    """

    phase: PhasePlan
    transport: Transport

    def __init__(self, plan: Plan, in_flight: Mapping[int, Exchange], loop: asyncio.AbstractEventLoop) -> None:
        self._in_flight, self._loop = in_flight, loop
        self._seed, self._timeout_ns = plan.run.seed, plan.target.timeout_ns
        self.outcome: int | None = None

    def cancels(self, session: Session) -> bool:
        """Whether the request of the session's current turn is to be cancelled: drawn by ``--request-cancellation-rate``."""
        label = f"cancel:{self.phase.name}:{session.turn}"
        return uniform(self._seed, label, session.number) < self.phase.cancel_share

    def written(self, exchange: Exchange) -> None:
        """The whole request is sent; the time to its cancellation begins."""
        # Not at once, even without a delay: the transport is still inside its send.
        self._loop.call_later(self.phase.cancel_delay_ns / NS_PER_S, self._cancel, exchange)

    def _cancel(self, exchange: Exchange) -> None:
        if exchange.request in self._in_flight:
            message = f"Request cancelled {self.phase.cancel_delay_ns / NS_PER_S:.3f}s after being sent"
            self._drop(exchange, journal.CANCELLED, ErrorDetails(message, type="RequestCancellationError", code=499))

    def _drop(self, exchange: Exchange, outcome: int, error: ErrorDetails | None) -> None:
        self.outcome = outcome
        self.transport.abort(exchange, error)

    def abort_all(self) -> None:
        """Abort all requests in flight: the grace period is over."""
        for exchange in list(self._in_flight.values()):
            self._drop(exchange, journal.ABORTED, None)

    def sweep(self, now_ns: int) -> None:
        """End requests that take longer than the timeout.  Those in flight are in order of deadlines."""
        for exchange in list(takewhile(lambda exchange: exchange.deadline_ns <= now_ns, self._in_flight.values())):
            unsent = exchange.armed and not exchange.sent_end_ns
            missing, kind = ("not fully sent", "RequestSendTimeout") if unsent else ("no whole answer", "TimeoutError")
            within = f"within {self._timeout_ns / NS_PER_S:g} s"
            self.transport.abort(exchange, ErrorDetails(f"{missing} {within}", type=kind, code=504))
