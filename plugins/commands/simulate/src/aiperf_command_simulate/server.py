"""Routes, and one engine whose tokens are sent as it makes them."""

from __future__ import annotations

import asyncio
import math
import random
import time
from collections.abc import Sequence as ListOf
from typing import Any

from msgspec.structs import replace

from aiperf_command_simulate import faults as fault_language
from aiperf_command_simulate.alarm import alarm
from aiperf_command_simulate.answer import Answer, Choice
from aiperf_command_simulate.dialect import Ask, AskError, Dialect, Opened, Page, chat_line
from aiperf_command_simulate.dialects import Route, Routes, found, method_of, pick
from aiperf_command_simulate.drafts import account
from aiperf_command_simulate.engine import Engine, Sequence
from aiperf_command_simulate.faults import BODIES, FaultError, Faults
from aiperf_command_simulate.gpus import Gpus
from aiperf_command_simulate.http1 import Closable, Request, Responder
from aiperf_command_simulate.jobs import Jobs
from aiperf_command_simulate.lengths import Lengths
from aiperf_command_simulate.meters import Meters
from aiperf_command_simulate.pages import ANY_MODEL, Pages
from aiperf_command_simulate.pouring import pour
from aiperf_command_simulate.prefix import block_keys, token_count
from aiperf_command_simulate.scenario import ServerScenario
from aiperf_command_simulate.tenant import Tenant
from aiperf_command_simulate.truth import CLIENT_GONE, COMPLETED, CUT, FAILED, REFUSED, Record, Truth
from aiperf_command_simulate.words import Wording

_NO_DIALECT = Dialect()
"""Of requests that no dialect takes: errors in OpenAI's form."""


class RefusedError(Exception):
    """The request gets this status and this sentence instead of an answer, or the page *body*, of a gateway."""

    def __init__(
        self, status: int, kind: str, message: str, retry_after_s: float | None = None, body: bytes | None = None
    ) -> None:
        super().__init__(message)
        self.body = body
        self.status = status
        self.kind = kind
        self.message = message
        self.retry_after_s = retry_after_s


class Server:
    """Answers requests from one engine.  Everything happens on the loop that made it.

    *routes*: None has those of the folder ``dialects``.
    """

    def __init__(
        self, scenario: ServerScenario, loop: asyncio.AbstractEventLoop, routes: ListOf[Route] | None = None
    ) -> None:
        self.scenario = scenario
        self.truth = Truth(scenario.truth_log)
        gpus = Gpus(scenario.gpus, started_ns := time.monotonic_ns())
        self.engine: Engine[Any] = Engine(scenario.engine, scenario.seed, started_ns, gpus.worked)
        self._ready_ns, self._to_refuse = started_ns + scenario.ready_after_ns, scenario.ready_after_requests
        self._alarm = alarm(loop, self._tick)
        self._dice = random.Random(f"faults {scenario.seed}")
        self._lengths = Lengths(scenario)
        self._connections: set[Closable] = set()
        self._connection_numbers = 0
        self._answering: dict[Responder, tuple[Record, Answer | None]] = {}
        self._meters = {name: Meters(scenario.metrics_lag_s) for name in scenario.models or (ANY_MODEL,)}
        self.jobs = Jobs(scenario.film_ns, scenario.film_bytes)
        self._routes = Routes(found() if routes is None else routes)
        self._created_s = int(time.time())
        self._tenant = Tenant(scenario, self.engine, self._meters, started_ns)
        self._pages = Pages(scenario, self.engine, self.truth, self._meters, self._created_s, gpus, self._tenant).by_path
        self._set_alarm()

    # What connections call.

    def opened(self, connection: Closable) -> int:
        self._connections.add(connection)
        self._connection_numbers += 1
        self.truth.connected()
        return self._connection_numbers

    def route_of(self, path: str) -> Route | None:
        routes, _ = self._routes.at(path)
        return routes[0] if routes and not self.scenario.not_found else None

    def closed(self, connection: Closable) -> None:
        self._connections.discard(connection)
        self.truth.disconnected()

    def lost(self, connection: Responder, outcome: str = CLIENT_GONE) -> None:
        record, answer = self._answering[connection]
        if answer is None:
            del self._answering[connection]
            self.truth.end(record, outcome, time.monotonic_ns())
            self._meters_of(record.model).count("failed")
            return
        answer.over = True
        answer.meters.finished("abort")
        self._ended(answer, outcome)

    def answer(self, connection: Responder, request: Request) -> None:
        path = request.path.rstrip("/") or "/"
        page = self._pages.get(path)
        routes, variables = self._routes.at(path)
        if variables:
            request = replace(request, variables=variables)
        if path == "/truth/reset" and request.method == "POST":
            self.truth.reset()
            self._tenant.reset()
            connection.respond(200, b"{}")
            connection.release()
        elif path != "/truth" and (self._to_refuse > 0 or time.monotonic_ns() < self._ready_ns):
            self._to_refuse -= 1
            loading = RefusedError(503, "ServiceUnavailableError", "the model is being loaded", self.scenario.retry_after_s)
            self._refuse(connection, self._begin(connection, request), loading)
        elif page is not None and request.method in ("GET", "HEAD") and (path == "/truth" or not self.scenario.not_found):
            page(connection, request)
            connection.release()
        elif not self.scenario.not_found and (route := pick(routes, request)) is not None:
            self._take(connection, request, route)
        else:
            known = {"GET"} if page is not None else {method_of(each) for each in routes}
            why = _lost_way(request, set() if self.scenario.not_found else known)
            self._refuse(connection, self._begin(connection, request), why)

    def close(self) -> None:
        """Drop every connection; requests being answered stay ``in flight`` in the truth."""
        self._alarm.close()
        self._answering.clear()
        for connection in list(self._connections):
            connection.cut()

    # Answers.

    def faults_of(self, request: Request, record: Record) -> Faults:
        faults = fault_language.draw(self.scenario.odds, self._dice)
        if (spoken := request.headers.get("x-simulate")) is not None:
            faults = fault_language.parse(spoken).over(faults)
        record.fault = fault_language.changes(faults) or None
        return replace(faults, retry_after_s=self.scenario.retry_after_s) if faults.retry_after_s is None else faults

    def _take(self, connection: Responder, request: Request, route: Dialect | Page) -> None:
        if isinstance(route, Dialect):
            self._infer(connection, request, route)
            return
        record = self._begin(connection, request) if route.recorded else None
        reply = route.answer(request, self)
        if reply.pieces is not None and record is not None:
            record.status, self._answering[connection] = reply.status, (record, None)
            connection.begin(reply.status, {"Content-Type": reply.content_type}, length=reply.length)
            pour(connection, request, record, reply, lambda whole: self._poured(connection, record, whole=whole))
            return
        connection.respond(reply.status, reply.body, kind=reply.content_type)
        if record is not None:
            record.status = reply.status
            self.truth.end(record, COMPLETED if reply.status < 400 else REFUSED, time.monotonic_ns())
        connection.release()

    def _poured(self, connection: Responder, record: Record, *, whole: bool) -> None:
        del self._answering[connection]
        self.truth.end(record, COMPLETED if whole else CUT, time.monotonic_ns())
        (connection.release if whole else connection.cut)()

    def _infer(self, connection: Responder, request: Request, dialect: Dialect) -> None:
        record = self._begin(connection, request)
        try:
            faults = self.faults_of(request, record)
            if faults.status is not None:
                page = BODIES.get(faults.body or "")
                refusal = RefusedError(faults.status, "SimulatedError", faults.refusal, faults.retry_after_s, page)
                if not faults.slow_first_ns:
                    raise refusal
                self._answering[connection] = record, None
                delay_s = faults.slow_first_ns / 1e9
                asyncio.get_running_loop().call_later(delay_s, self._refuse_late, connection, record, refusal, dialect)
                return
            ask = dialect.read(request)
            self._start(connection, record, dialect, ask, faults)
        except RefusedError as refusal:
            self._refuse(connection, record, refusal, dialect)
        except (AskError, FaultError) as exc:
            status, record.over_context = (exc.status, exc.over) if isinstance(exc, AskError) else (400, 0)
            self._refuse(connection, record, RefusedError(status, "BadRequestError", str(exc)), dialect)

    def _start(self, connection: Responder, record: Record, dialect: Dialect, ask: Ask, faults: Faults) -> None:
        scenario = self.scenario
        if scenario.models and ask.prefill_only and not ask.model:  # some of these APIs have no model
            ask = replace(ask, model=scenario.models[0])
        if scenario.models and ask.model not in scenario.models:
            served = ", ".join(scenario.models)
            raise RefusedError(404, "NotFoundError", f"no model is called {ask.model!r}; served: {served}")
        record.model, record.stream = ask.model, ask.stream
        counts = [token_count(prompt) for prompt in ask.prompts]
        record.prompt_tokens = sum(counts)
        if faults.silent:
            self._answering[connection] = (record, None)
            return
        frame = dialect.framing(faults.lines or scenario.lines, faults)
        call = (ask.tool or "function") if faults.call else None
        opened = Opened(record.number, self._created_s, ask.model or ANY_MODEL, ask, faults, frame, record, self.jobs, call)
        answer = Answer(
            connection, record, ask, faults, dialect, frame, dialect.writer(opened),
            self._meters_of(ask.model), self.truth, self._ended,
            tokens_per_chunk=faults.tokens_per_chunk or scenario.tokens_per_chunk,
            framing=faults.framing or scenario.framing, timed=scenario.request_metrics, block_size=scenario.engine.block_size,
        )  # fmt: skip
        choices, sequences = list[Choice](), list[Sequence[Choice]]()
        asked = [] if ask.prefill_only else scenario.answers.asked(ask.prompts, ask.choices)
        for place, (prompt, count) in enumerate(zip(ask.prompts, counts, strict=True)):
            blocks = block_keys(prompt, scenario.engine.block_size) if scenario.engine.cache_blocks else ()
            for n in range(ask.choices):
                index = place * ask.choices + n
                words = Wording(scenario.seed % 1_000_003 + record.number * 131 + index, asked[index].text if asked else "")
                length = self._lengths.of(ask, faults, count, reasons=dialect.reasons, pieces=len(words.pieces))
                choice = Choice(answer, index, length, words)
                choice.sequence = Sequence(choice, count, length.tokens, blocks, _pauses(faults, scenario.tokens_per_chunk))
                choices.append(choice)
                sequences.append(choice.sequence)
        # From when the request was here, not from when it had been read: what reading costs is ours, not the engine's.
        received = record.received_mono_ns
        self._tenant.submit(received)
        for taken, sequence in enumerate(sequences):
            if not self.engine.submit(sequence, received):
                for other in sequences[:taken]:
                    self.engine.cancel(other, received)
                self._set_alarm()
                limit = scenario.engine.max_queue
                raise RefusedError(429, "RateLimitError", f"{limit} sequences wait already", faults.retry_after_s)
        record.answers = scenario.answers.noted(asked)
        if scenario.drafts is not None and len(choices) == 1 and not ask.prefill_only:
            record.drafts = account(scenario.drafts, choices[0].length.tokens, scenario.seed + record.number)
        self._answering[connection] = (record, answer)
        answer.start(choices)
        self._set_alarm()

    def _ended(self, answer: Answer, outcome: str) -> None:
        now = time.monotonic_ns()
        del self._answering[answer.connection]
        self.truth.end(answer.record, outcome, now)
        answer.meters.count("completed" if outcome == COMPLETED else "failed")
        for choice in answer.choices:
            if choice.sequence is None:
                continue
            if outcome == COMPLETED and self.engine.cache.capacity and not answer.ask.prefill_only:
                self.engine.cache.add(_blocks(answer.ask, choice, choice.sequence, self.scenario.engine.block_size))
            elif outcome != COMPLETED:
                self.engine.cancel(choice.sequence, now)
        if outcome != COMPLETED:
            self._set_alarm()

    def _tick(self) -> None:
        now = time.monotonic_ns()
        self._tenant.submit(now)
        for sequence, at_ns in self.engine.advance(now):
            sequence.owner.token(at_ns)
        self._set_alarm()

    def _set_alarm(self) -> None:
        self._alarm.set(self._tenant.next_ns(self.engine.next_ns))

    def _begin(self, connection: Responder, request: Request) -> Record:
        headers = request.headers
        record = self.truth.begin(
            connection.number, request.path, request.received_ns, request.received_wall_ns,
            headers.get("x-request-id"), headers.get("x-correlation-id"),
        )  # fmt: skip
        if self.scenario.truth_bodies:
            record.body = request.body.decode("utf-8", "replace")
        return record

    def _refuse(self, connection: Responder, record: Record, refusal: RefusedError, dialect: Dialect = _NO_DIALECT) -> None:
        record.status = refusal.status
        told, in_stream = (refusal.message, refusal.kind, refusal.status), refusal.kind in dialect.said_in_stream
        error = dialect.refusal(*told) if refusal.body is None else refusal.body
        if in_stream:
            error = dialect.framing(self.scenario.lines, Faults())(dialect.error(*told))
        headers = {} if record.request_id is None else {"X-Request-ID": record.request_id}
        if refusal.retry_after_s is not None and refusal.status in (429, 503):
            headers["Retry-After"] = str(math.ceil(refusal.retry_after_s))
        kind = "application/json" if refusal.body is None else "text/html"
        connection.respond(200 if in_stream else refusal.status, error, headers, kind)
        if dialect is not _NO_DIALECT:
            self._meters_of(record.model).count("failed")
        self.truth.end(record, REFUSED if refusal.status < 500 else FAILED, time.monotonic_ns())
        connection.release()

    def _refuse_late(self, connection: Responder, record: Record, refusal: RefusedError, dialect: Dialect) -> None:
        if self._answering.get(connection, (None, None))[0] is record:  # the client hasn't left meanwhile
            del self._answering[connection]
            self._refuse(connection, record, refusal, dialect)

    def _meters_of(self, model: str) -> Meters:
        """The model's; those of the first one where it is unknown."""
        known = self._meters.get(model)
        return next(iter(self._meters.values())) if known is None else known


def _lost_way(request: Request, methods: set[str]) -> RefusedError:
    """Why nobody answers a request.  *methods*: of what is at its path."""
    if not methods:
        return RefusedError(404, "NotFoundError", f"there is nothing at {request.path}")
    if request.method not in methods:
        allowed = " or ".join(sorted(methods))
        return RefusedError(405, "MethodError", f"{request.path} takes {allowed}, not {request.method}")
    return RefusedError(400, "BadRequestError", f"the body is of no dialect of {request.path}")


def _blocks(ask: Ask, choice: Choice, sequence: Sequence[Choice], block_size: int) -> ListOf[int]:
    """The blocks of a prompt with its answer, which are cached, too: the next turn of a conversation begins with them."""
    text = choice.text.encode()
    whole = ask.prompts[choice.index // ask.choices] + (chat_line("assistant", text) if ask.chat else text)
    return block_keys(whole, block_size, known=sequence.blocks)


def _pauses(faults: Faults, tokens_per_chunk: int) -> dict[int, int]:
    pauses = {0: faults.slow_first_ns} if faults.slow_first_ns else {}
    if faults.stall_after is not None and faults.stall_ns:
        pauses[faults.stall_after * (faults.tokens_per_chunk or tokens_per_chunk)] = faults.stall_ns
    return pauses
