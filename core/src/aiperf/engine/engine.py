"""The request's life cycle on one worker: from a driver's word to a ``done`` row."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, MutableSequence, Sequence
from functools import partial
from time import monotonic_ns
from typing import Any

import msgspec

from aiperf import __version__, environment, journal, pairs
from aiperf.balance import RoundRobin, UrlStrategy
from aiperf.draws import uniform
from aiperf.endpoint import Endpoint, encoded
from aiperf.engine.clock import NS_PER_S
from aiperf.engine.contract import Exchange, Shape, Transport
from aiperf.engine.drivers import Driver
from aiperf.engine.logbook import Logbook
from aiperf.engine.session import Session
from aiperf.errors import ENDPOINT_ERROR
from aiperf.ids import request_prefix, session_prefix
from aiperf.model import ErrorDetails, HttpRequest, Message, Turn, join_url
from aiperf.plan import PhasePlan, Plan, Secrets
from aiperf.schedule import sampler_of
from aiperf.sse import Splitter
from aiperf.store import Store
from aiperf.strangers import made, why

Prepare = Callable[[HttpRequest, Turn], HttpRequest]


class Engine:
    """What drivers ask and what the transport tells.

    *numbered*: one cell that counts the requests of this shard, those of a process before this one included.
    *warn* is told in a sentence of what belongs into the report.
    """

    def __init__(
        self,
        plan: Plan,
        secrets: Secrets,
        store: Store,
        logbook: Logbook,
        shard: int,
        prepare: Prepare | None = None,
        *,
        loop: asyncio.AbstractEventLoop,
        numbered: MutableSequence[int],
        warn: Callable[[str], None],
    ) -> None:
        self.loop = loop
        self.plan, self.store, self.logbook, self.shard = plan, store, logbook, shard
        self.transport: Transport
        self.driver: Driver
        self.phase: PhasePlan
        self.open: dict[int, Exchange] = {}
        self.sent = self.completed = self.errors = 0
        self.last_answer_ns = 0
        self.on_idle: Callable[[], None] = lambda: None
        self._numbered = numbered
        self._ending: int | None = None
        self._endpoint = made(plan.endpoint, plan.plugin_options(plan.endpoint))
        self._log_chunk = logbook.chunk
        self._models = len(plan.models)
        self._balance = _Balance(plan, warn) if len(plan.urls) > 1 else None
        self._request_prefix = request_prefix(plan.run_id, shard)
        self._session_prefixes = [session_prefix(plan.run_id, phase.index) for phase in plan.phases]
        self._sampler = sampler_of(plan)
        self._prepare = prepare
        self._shapes = self._make_shapes(secrets)
        self._hidden = tuple(secrets.headers)
        self._shown = _shown_headers(self._shapes, self._hidden) if plan.keeps_requests else None

    def _make_shapes(self, secrets: Secrets) -> list[list[Shape]]:
        """Per URL, per shape of the store, the request's unchanging part."""
        accept = "text/event-stream" if self.plan.streaming else "application/json"
        sessions = [self.plan.session_header, *environment.affinity_headers()]
        shapes = []
        for url in self.plan.urls:
            row = []
            for shape in self.store.shapes:
                headers = {"User-Agent": f"aiperf/{__version__}", "Content-Type": shape.content_type, "Accept": accept}
                for extra in (shape.headers, secrets.headers):
                    headers = _merged(headers, extra)
                headers = {name: value for name, value in headers.items() if name.lower() not in map(str.lower, sessions)}
                row.append(Shape(join_url(url, self.plan.path), headers, tuple(sessions), shape.method))
            shapes.append(row)
        return shapes

    # What drivers ask

    def session(self, phase: PhasePlan, number: int, entry: int | None = None, turns: int | None = None) -> Session:
        plan, index = self.plan, phase.index
        if entry is None:
            entry = phase.first_entry + self._sampler(plan.seed, number, phase.entries)
        model = self._model(phase, number) if self._models > 1 else 0
        url = 0 if self._balance is None else self._balance.choose(number)
        identity = f"{self._session_prefixes[index]}{number:012x}"
        return Session(index, number, entry, turns or self.store.turns(entry), model, url, identity)

    def _model(self, phase: PhasePlan, number: int) -> int:
        """Which of several models a session uses."""
        plan = self.plan
        if plan.model_strategy == "round_robin":
            return number % self._models
        return int(uniform(plan.seed, f"model:{phase.name}", number) * self._models)

    def delay_ns(self, session: Session) -> int:
        return self.store.delay_ns(session.entry, session.turn)

    def send(self, session: Session, n: int, due_ns: int, held_ns: int = 0) -> None:
        entry, turn = session.entry, session.turn
        stored = turn == 0 and self._prepare is None
        unmade: ErrorDetails | None = None
        if stored:
            body = self.store.body(entry, 0, session.model)
            shape = self._shapes[session.url][self.store.shape(entry, 0)]
        else:
            try:
                body, shape = self._encode(session)
            except Exception as error:  # noqa: BLE001  # strangers' code; it never left, and is over when the driver is done here
                unmade = ErrorDetails(f"the endpoint can't make the request: {why(error)}", type=ENDPOINT_ERROR)
                body, shape = b"", self._shapes[session.url][0]
        request = self._numbered[0]
        self._numbered[0] = request + 1
        started_ns = monotonic_ns()
        exchange = Exchange(request, shape, body, f"{self._request_prefix}{request:012x}", session.id, started_ns)
        exchange.n = n
        exchange.due_ns = due_ns
        exchange.deadline_ns = started_ns + self.plan.timeout_ns
        exchange.owner = session
        exchange.final = session.last
        if session.prefilling or not exchange.final:
            self._listen(session)
        if self.phase.cancel_share:
            exchange.armed = self._is_cancelled(session)
        if self._balance is not None:
            self._balance.begun(session.url)
        self.open[request] = exchange
        self.sent += 1
        self.logbook.sent(
            (request, n, session.phase, session.number, turn, entry, session.url, session.model, due_ns, started_ns, held_ns)
        )
        if self._shown is not None:
            self._keep_request(exchange, stored=stored)
        if unmade is None:
            self.transport.send(exchange)
        else:
            self.loop.call_soon(self.done, exchange, unmade)

    def _keep_request(self, exchange: Exchange, *, stored: bool) -> None:
        """Journal what is sent, secrets redacted; a body that the data set has is not repeated."""
        headers = (self._shown or {}).get(id(exchange.shape))
        if headers is None:  # a hook's own
            headers = pairs.shown(exchange.shape.headers, self._hidden)
        headers = {**headers, "X-Request-ID": exchange.request_id}
        headers |= dict.fromkeys(exchange.shape.session_headers, exchange.session_id)
        self.logbook.text(exchange.request, "request", {"headers": headers, "body": None if stored else exchange.body})

    def _listen(self, session: Session) -> None:
        """Hear the answer: what a later turn repeats, and when the first token is there."""
        collect = None if session.last else session.collected.append
        if session.prefilling:
            session.listen = _FirstToken(self._endpoint, partial(self.driver.first_token, session), collect).feed
        else:
            session.listen = collect

    def _is_cancelled(self, session: Session) -> bool:
        phase = self.phase
        return uniform(self.plan.seed, f"cancel:{phase.name}:{session.turn}", session.number) < phase.cancel_share

    def _encode(self, session: Session) -> tuple[bytes, Shape]:
        """A later turn: history with the live answers.  Also every turn that a hook may change."""
        conversation = self.store.conversation(session.entry)
        authored = conversation.turns[session.turn]
        turn = msgspec.structs.replace(
            authored,
            model=authored.model or self.plan.models[session.model],
            stream=self.plan.streaming,
            per_chunk_usage=self.plan.per_chunk_usage,
            history=(*conversation.prelude, *(() if conversation.alone else session.history)),
            extra={**self.plan.extra, **authored.extra},
        )
        request = encoded(self._endpoint, turn)
        if session.turn and not conversation.alone:
            prompt = " ".join(text for message in turn.messages for text in message.texts)
            self.logbook.text(self._numbered[0], "prompt", prompt)
        shape = self._shapes[session.url][self.store.shape(session.entry, session.turn)]
        if self._prepare is not None:
            changed = self._prepare(request, turn)
            if changed is not request:
                headers = _merged({**shape.headers, "Content-Type": changed.content_type}, changed.headers)
                url = shape.url if changed.path == request.path else join_url(self.plan.urls[session.url], changed.path)
                shape = Shape(url, headers, shape.session_headers, changed.method)
                request = changed
        return request.body, shape

    # What the transport says

    def chunk(self, exchange: Exchange, body: bytes, kernel_ns: int, read_ns: int, hidden: int) -> None:
        self._log_chunk(exchange.request, kernel_ns, read_ns, body, hidden)
        listen = exchange.owner.listen  # type: ignore[attr-defined]  # the owner is always the session
        if listen is not None:
            listen(body)

    def head(self, exchange: Exchange, status: int, reason: str, headers: list[tuple[str, str]]) -> None:
        self.logbook.text(exchange.request, "head", {"status": status, "reason": reason, "headers": headers})

    def written(self, exchange: Exchange) -> None:
        """The whole request is out, and the time to its cancellation begins."""
        # Never at once, even without a delay: the transport is still at it.
        self.loop.call_later(self.phase.cancel_delay_ns / NS_PER_S, self._cancel, exchange)

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
        if error is not None:
            self.logbook.text(exchange.request, "error", error)
        self.last_answer_ns = ended_ns
        self.logbook.done(
            (
                exchange.request, outcome, exchange.status, exchange.flags, exchange.connected_ns, exchange.sent_ns,
                exchange.sent_end_ns, exchange.ack_ns, ended_ns, len(exchange.body), exchange.bytes_received,
                exchange.dns_ns, exchange.connect_ns, exchange.tls_ns,
            )
        )  # fmt: skip
        session: Any = exchange.owner
        session.listen = None
        if self._balance is not None:
            self._balance.ended(session.url)
        if not exchange.final:
            self._remember(session, exchange, good)
        if session.prefilling:
            self.driver.first_token(session)
        self.driver.over(session)
        if self.driver.complete and not self.open:
            self.on_idle()

    def _remember(self, session: Session, exchange: Exchange, good: bool) -> None:
        """Keep the turn and its live answer for the next one; a failed turn adds no answer."""
        authored = self.store.conversation(session.entry).turns[session.turn]
        session.history.append(Message(authored.role, authored.texts, authored.media))
        pieces, session.collected = session.collected, []
        if good:
            answer = self._answer(pieces, streamed=bool(exchange.flags & journal.STREAMED))
            if answer:
                session.history.append(Message("assistant", (answer,)))

    def _answer(self, pieces: list[bytes], *, streamed: bool) -> str:
        """The answer's text; reasoning only where there was nothing else."""
        if streamed:
            splitter = Splitter()
            events = [event.data for piece in pieces for event in splitter.feed(piece)]
            events += [event.data for event in splitter.close()]
        else:
            events = [b"".join(pieces)]
        text, reasoning = [], []
        for event in events:
            try:
                delta = self._endpoint.decode(event)
                if delta is not None:
                    text.append(delta.text)
                    reasoning.append(delta.reasoning)
            except Exception:  # noqa: BLE001  # strangers' code; the reducer reports it, here there is nothing to repeat
                continue
        return "".join(text) or "".join(reasoning)

    # Ending

    def abort_all(self) -> None:
        """Drop everything in flight: the grace is over."""
        for exchange in list(self.open.values()):
            self._drop(exchange, journal.ABORTED, None)

    def sweep(self, now_ns: int) -> None:
        """End requests that take longer than the timeout; they were started in order of their deadlines."""
        late = []
        for exchange in self.open.values():
            if exchange.deadline_ns > now_ns:
                break
            late.append(exchange)
        for exchange in late:
            within = f"within {self.plan.timeout_ns / NS_PER_S:g} s"
            if exchange.armed and not exchange.sent_end_ns:
                error = ErrorDetails(f"not fully sent {within}", type="RequestSendTimeout", code=504)
            else:
                error = ErrorDetails(f"no whole answer {within}", type="TimeoutError", code=504)
            self.transport.abort(exchange, error)


class _FirstToken:
    """Looks through an answer for the first piece that shows something, and calls *found*.

    *collect* gets all of the answer, where a later turn needs it.
    """

    def __init__(self, endpoint: Endpoint, found: Callable[[], None], collect: Callable[[bytes], None] | None) -> None:
        self._decode, self._found, self._collect = endpoint.decode, found, collect
        self._splitter: Splitter | None = Splitter()

    def feed(self, body: bytes) -> None:
        if self._collect is not None:
            self._collect(body)
        if self._splitter is not None and any(self._shows(event.data) for event in self._splitter.feed(body)):
            self._splitter = None
            self._found()

    def _shows(self, data: bytes) -> bool:
        try:
            delta = self._decode(data)
            return delta is not None and delta.content
        except Exception:  # noqa: BLE001  # strangers' code; the reducer reports it
            return False


class _Balance:
    """Sessions over several URLs as the plan's strategy says; where it fails they go in turn, and that is said once."""

    def __init__(self, plan: Plan, warn: Callable[[str], None]) -> None:
        ref, count = plan.url_strategy, len(plan.urls)
        weights = plan.url_weights or (1.0,) * count
        self._name = "round_robin" if ref is None else ref.name
        self._strategy: UrlStrategy = RoundRobin(weights) if ref is None else made(ref, weights)
        self._warn = warn
        self._in_flight = [0] * count
        self._nothing = (0,) * count

    def choose(self, session: int) -> int:
        strategy = self._strategy
        try:
            url = strategy.choose(session, self._in_flight if strategy.uses_load else self._nothing)
            if not 0 <= url < len(self._nothing):
                raise IndexError(f"it chose URL {url} of {len(self._nothing)}")
        except Exception as error:  # noqa: BLE001  # strangers' code
            self._warn(f"the URL strategy {self._name} failed, and sessions take turns: {type(error).__name__}: {error}")
            self._strategy = RoundRobin(strategy.weights)
            return self._strategy.choose(session, self._nothing)
        return url

    def begun(self, url: int) -> None:
        self._in_flight[url] += 1

    def ended(self, url: int) -> None:
        self._in_flight[url] -= 1


def _shown_headers(shapes: list[list[Shape]], hidden: Sequence[str]) -> dict[int, dict[str, str]]:
    """The headers of each shape as they may be written, by its id."""
    return {id(shape): pairs.shown(shape.headers, hidden) for row in shapes for shape in row}


def _merged(headers: dict[str, str], extra: dict[str, str]) -> dict[str, str]:
    """*extra* over *headers*, names compared without case."""
    names = {name.lower() for name in extra}
    return {name: value for name, value in headers.items() if name.lower() not in names} | extra
