"""A run's first and longest request, made as a worker makes them, and given to nobody.

The worker's own code picks, encodes and addresses them: the driver of the first phase, hooks that change requests, and the
headers of the plan's transport.  The transport is made and never opened.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from time import monotonic, monotonic_ns
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from aiperf.errors import AiperfError
from aiperf.redaction import shown_headers, without_secrets
from aiperf.registry.hooks import REQUEST_PREPARED, Hooks
from aiperf.registry.third_party import load
from aiperf.rundir.store import Store
from aiperf.sdk.driver import Session
from aiperf.sdk.model import ErrorDetails
from aiperf.sdk.plan import Plan, Secrets
from aiperf.sdk.transport import Exchange, HeaderSource, Transport
from aiperf.worker.request_sink import RequestSink
from aiperf.worker.requests import Requests
from aiperf.worker.share import Share, WorkerPlace, make_share

_POLL_S = 0.005
_WHOLE_S, _PATIENCE_S = 0.1, 60.0
"""A driver has its first arrival due, so that it sends at once."""


class RehearsedRequest(Struct, frozen=True):
    """A request as it would be written.

    url, headers: secrets are redacted; *exact*: the transport says the headers, and Host and Content-Length are among them.
    body: as it would be sent.  input_tokens, max_tokens: None where they are not known, or not asked for.
    """

    entry: int
    turn: int
    method: str
    url: str
    headers: tuple[tuple[str, str], ...]
    exact: bool
    body: bytes
    input_tokens: int | None
    max_tokens: int | None


class Rehearsal(Struct, frozen=True):
    """The first request of the run, and the longest one among *made* entries."""

    first: RehearsedRequest
    longest: RehearsedRequest
    made: int


def rehearse(
    plan: Plan, secrets: Secrets, directory: Path, warn: Callable[[str], None], check: Callable[[], None]
) -> Rehearsal:
    """Rehearse the built *plan*, whose data set is in *directory* or grows there.  *check*: called often, may raise.

    Raises:
        AiperfError: A plugin can't be used, or the first request can't be made.
    """
    return asyncio.run(_rehearse(plan, secrets, directory, warn, check))


async def _rehearse(
    plan: Plan, secrets: Secrets, directory: Path, warn: Callable[[str], None], check: Callable[[], None]
) -> Rehearsal:
    hooks = Hooks.load(plan.plugins.hooked("aiperf_make_transport", REQUEST_PREPARED), warn)
    silent = _Silent()
    share = make_share(plan, secrets, directory, WorkerPlace(0, 1), hooks, warn, kind=_RehearsedSink, through=silent.around)
    requests = share.requests
    try:
        first = await _first(share, silent, check)
        store = requests.store
        await _complete(store, plan.data.entries)
        entry, turn = _longest(store, check)
        longest = first
        if (entry, turn) != (first.entry, first.turn):
            phase = next(phase for phase in plan.load.phases if phase.kind == "profiling")
            session = requests.session(phase, max(0, entry - phase.first_entry), entry)
            session.turn = turn
            requests.send(session, 0, -1)
            longest = _shown(requests, silent, await silent.sent(requests, check))
        made = sum(1 for _ in store.readable())
        return Rehearsal(first, longest, made)
    finally:
        requests.stop()
        share.logbook.close()
        await silent.transport.close()


async def _complete(store: Store, entries: int) -> None:
    """Wait a moment for a small data set to be whole: the processes of a load take as long to start."""
    until_s = monotonic() + _WHOLE_S
    while not store.complete and sum(1 for _ in store.readable()) < entries and monotonic() < until_s:
        await asyncio.sleep(_POLL_S)
        store.grow()


async def _first(share: Share, silent: _Silent, check: Callable[[], None]) -> RehearsedRequest:
    requests = share.requests
    phase = share.plan.load.phases[0]
    # The first session is the same in one slot, and no others are encoded for nothing.
    phase = replace(phase, concurrency=None if phase.concurrency is None else 1)
    driver = share.driver(phase)
    requests.begin(phase, driver)
    due = driver.context.due
    driver.begin(monotonic_ns() - (max(0, due[0]) if len(due) else 0))
    first = _shown(requests, silent, await silent.sent(requests, check))
    driver.stop()
    return first


class _RehearsedSink(RequestSink):
    """The sink of requests of which none ends.  failure: of one that could not be made."""

    failure: ErrorDetails | None = None

    def done(self, exchange: Exchange, error: ErrorDetails | None) -> None:
        self.failure = self.failure or error


class _Silent:
    """The transport of the plan, through which nothing is sent.  *transport* is set by :meth:`around`."""

    transport: Transport

    def __init__(self) -> None:
        self._sent: list[Exchange] = []

    def around(self, transport: Transport) -> Transport:
        self.transport = transport
        return self

    async def sent(self, requests: Requests, check: Callable[[], None]) -> Exchange:
        """The first request since the last call.

        Raises:
            AiperfError: It can't be made, or there is none.
        """
        until_s = monotonic() + _PATIENCE_S
        while not self._sent:
            check()
            if isinstance(requests.sink, _RehearsedSink) and requests.sink.failure is not None:
                raise AiperfError(requests.sink.failure.message)
            if monotonic() > until_s:
                ref = requests.plan.plugins.drivers[requests.phase.driver]
                raise AiperfError(f"{ref} has sent nothing within {_PATIENCE_S:g} s of its first due time")
            await asyncio.sleep(_POLL_S)
        exchange = self._sent[0]
        self._sent.clear()
        return exchange

    # Transport

    @property
    def changing_bodies(self) -> bool:
        return False

    @property
    def statistics(self) -> dict[str, int]:
        return {}

    async def open(self) -> None:
        pass

    async def warm(self, connections: int) -> None:
        pass

    async def close(self) -> None:
        pass

    def send(self, exchange: Exchange) -> None:
        self._sent.append(exchange)

    def abort(self, exchange: Exchange, error: ErrorDetails | None) -> None:
        pass


def _shown(requests: Requests, silent: _Silent, exchange: Exchange) -> RehearsedRequest:
    session: Any = exchange.owner
    assert isinstance(session, Session)
    shape, store, transport = exchange.shape, requests.store, silent.transport
    exact = isinstance(transport, HeaderSource)
    headers: Sequence[tuple[str, str]]
    if isinstance(transport, HeaderSource):
        headers = transport.request_headers(exchange)
    else:
        headers = [*shape.headers.items(), ("X-Request-ID", exchange.request_id)]
        headers = [*headers, *((name, exchange.session_id) for name in shape.session_headers)]
    tokens = store.input_tokens(session.entry, session.turn)
    asks = load(requests.plan.plugins.endpoint).capabilities.produces_tokens
    most = store.max_tokens(session.entry, session.turn) if asks else -1
    hidden = tuple(requests.secret_headers)
    return RehearsedRequest(
        session.entry, session.turn, shape.method, without_secrets(shape.url),
        tuple((name, shown_headers({name: value}, hidden)[name]) for name, value in headers), exact, bytes(exchange.body),
        None if tokens < 0 else tokens, None if most < 0 else most,
    )  # fmt: skip


def _longest(store: Store, check: Callable[[], None]) -> tuple[int, int]:
    """Entry and turn of the longest body that is known before the run: later turns repeat answers, unless they stand alone."""
    longest = (-1, 0, 0)
    for number, entry in enumerate(store.readable()):
        if number % 10_000 == 0:
            check()
        turns = store.turns(entry)
        for turn in range(turns if turns > 1 and store.outline(entry).alone else 1):
            length = store.body_bytes(entry, turn)
            if length > longest[0]:
                longest = (length, entry, turn)
    return longest[1:]
