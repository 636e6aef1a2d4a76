"""What a worker hears of its requests: pieces of their answers, and their ends."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from time import monotonic_ns, time_ns
from typing import Any

from aiperf.rundir import journal
from aiperf.sdk.driver import Driver
from aiperf.sdk.model import ErrorDetails
from aiperf.sdk.plan import PhasePlan
from aiperf.sdk.sse import Messages
from aiperf.sdk.transport import LAST_HIDDEN, MESSAGES, STREAMED, Exchange
from aiperf.worker.answer_texts import AnswerTexts
from aiperf.worker.clock import NS_PER_S
from aiperf.worker.early_ends import EarlyEnds
from aiperf.worker.in_flight import InFlight
from aiperf.worker.logbook import Logbook
from aiperf.worker.turns import Turns


class RequestSink:
    """The sink of a worker's transport: to the journal, and to the session and driver of each request.

    streaming: what messages are, streamed or not.
    """

    _phase: PhasePlan
    _driver: Driver[Any]
    _on_idle: Callable[[], None]

    def __init__(
        self, in_flight: InFlight, ends: EarlyEnds, turns: Turns, logbook: Logbook, texts: AnswerTexts, *, streaming: bool,
        loop: asyncio.AbstractEventLoop,
    ) -> None:  # fmt: skip
        self._in_flight, self._ends, self._turns, self._logbook, self._loop = in_flight, ends, turns, logbook, loop
        self._log_chunk, self._log_error = logbook.chunk, texts.error
        self.head, self.trailers, self.written = texts.head, texts.trailers, ends.written  # a call less than handing on
        self._message_flags = MESSAGES | (STREAMED if streaming else 0)

    def begin(self, phase: PhasePlan, driver: Driver[Any], on_idle: Callable[[], None]) -> None:
        """Tell *driver*; *on_idle* is called when it has sent all, and no request is in flight."""
        self._phase, self._driver, self._on_idle = phase, driver, on_idle

    def chunk(self, exchange: Exchange, body: bytes, kernel_ns: int, read_ns: int, hidden: int) -> None:
        log_chunk = self._log_chunk
        log_chunk(exchange.request, kernel_ns, read_ns, body, hidden)
        session: Any = exchange.owner
        if session.listen is not None:  # a later turn repeats the answer, or waits for its last stamp
            session.kernel_ns, session.read_ns = kernel_ns, read_ns
            session.listen(body)

    def message(self, exchange: Exchange, data: bytes, kernel_ns: int, read_ns: int, hidden: int = 0) -> None:
        if not exchange.flags & MESSAGES:
            exchange.flags |= self._message_flags
            session: Any = exchange.owner
            if session.listen is not None:
                self._turns.listen(session, self._driver.first_token, Messages)
        self.chunk(exchange, data, kernel_ns, read_ns, ~(hidden | LAST_HIDDEN) if hidden else journal.MESSAGE)

    def done(self, exchange: Exchange, error: ErrorDetails | None) -> None:
        in_flight = self._in_flight
        if in_flight.open.pop(exchange.request, None) is None:
            return
        ended_ns = monotonic_ns()
        good = error is None and 200 <= exchange.status < 300
        session: Any = exchange.owner
        words = self._driver.overflow_words
        if words:
            session.overflowed = session.overheard.overflowed(words, error, good=good)
            session.overheard = None
            good = good and not session.overflowed
        if self._ends.outcome is not None:
            outcome, self._ends.outcome = self._ends.outcome, None
        elif good:
            outcome = journal.COMPLETED
            in_flight.completed += 1
        elif words and session.overflowed:
            outcome = journal.OVERFLOWED
            in_flight.completed += 1  # no failure: the conversation has ended
        else:
            outcome = journal.ERROR
            in_flight.errors += 1
        session.failed = not good
        pause_s = 0.0
        if error is not None:
            self._log_error(exchange, error)
            pause_s = in_flight.connecting.pause_s(session.url, error)
        elif in_flight.connecting.pauses:
            in_flight.connecting.opened(session.url)
        in_flight.last_answer_ns = ended_ns
        heard = exchange.final or not good  # no later turn counts from a stamp
        session.answered_ns = ended_ns + round(pause_s * NS_PER_S) if heard else _answered_ns(exchange, ended_ns)
        self._logbook.done(
            (
                exchange.request, outcome, exchange.status, exchange.flags, exchange.connected_ns, exchange.sent_ns,
                exchange.sent_end_ns, exchange.ack_ns, ended_ns, len(exchange.body), exchange.bytes_received,
                exchange.dns_ns, exchange.connect_ns, exchange.tls_ns,
            )
        )  # fmt: skip
        session.listen = None
        if in_flight.by_url is not None:
            in_flight.by_url[session.url] -= 1
        if not exchange.final or session.forks:
            self._turns.append(session, good=good, flags=exchange.flags)
        else:
            session.script = None  # whoever keeps the session, its bodies may be long
        driver = self._driver
        if session.prefilling:
            driver.first_token(session)
        if pause_s and not (self._phase.paced or driver.complete):
            self._loop.call_later(pause_s, driver.request_ended, session)
        else:
            in_flight.ended = exchange.request
            driver.request_ended(session)
            in_flight.ended = -1
        if driver.complete and not in_flight.open:
            self._on_idle()


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
