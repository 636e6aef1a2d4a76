"""Turns that the loop looks into: requests that only the run can encode, and answers that a worker reads at once.

Both are rare.  A body that repeats answers, or that a hook changes, is encoded during the run.  Only sessions with several
turns repeat their answers, and only a prefill limit asks for first tokens.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import msgspec

from aiperf import __version__, environment
from aiperf.redaction import shown_headers
from aiperf.registry.hooks import Prepare
from aiperf.registry.third_party import made
from aiperf.rundir.store import Store
from aiperf.sdk.driver import Session
from aiperf.sdk.endpoint import Endpoint, encoded
from aiperf.sdk.headers import merged
from aiperf.sdk.model import Message, join_url
from aiperf.sdk.plan import Plan, Secrets
from aiperf.sdk.sse import Splitter
from aiperf.sdk.transport import Exchange, Shape
from aiperf.worker.logbook import Logbook


class Turns:
    """Encodes the turns that the store has no body for: later turns, which repeat answers, and all turns where hooks change
    requests.  Listens to answers, and appends turns and their answers to the sessions' histories.

    shapes: by URL and by shape of the store.  prepare: the chain of ``aiperf_request_prepared``, None without such hooks.
    """

    def __init__(self, plan: Plan, secrets: Secrets, store: Store, logbook: Logbook, prepare: Prepare | None) -> None:
        self._plan, self._store, self._logbook, self._prepare = plan, store, logbook, prepare
        self._endpoint: Endpoint = made(plan.plugins.endpoint, plan.plugins.options_of(plan.plugins.endpoint))
        self.shapes = _make_shapes(plan, secrets, store)
        self._secret_names = tuple(secrets.headers)
        self._shown = {id(shape): self._show(shape) for row in self.shapes for shape in row}

    def encode(self, session: Session, request: int) -> tuple[bytes, Shape]:
        """Body and shape of the session's current turn; *request* is the number it will have."""
        plan = self._plan
        conversation = self._store.conversation(session.entry)
        authored = conversation.turns[session.turn]
        turn = msgspec.structs.replace(
            authored, model=authored.model or plan.target.models[session.model],
            stream=plan.target.streaming, per_chunk_usage=plan.target.per_chunk_usage,
            history=(*conversation.prelude, *(() if conversation.alone else session.history)),
            extra={**plan.target.extra, **authored.extra},
        )  # fmt: skip
        prepared = encoded(self._endpoint, turn)
        if session.turn and not conversation.alone:
            self._logbook.text(request, "prompt", " ".join(text for message in turn.messages for text in message.texts))
        shape = self.shapes[session.url][self._store.shape(session.entry, session.turn)]
        if self._prepare is not None:
            changed = self._prepare(prepared, turn)
            if changed is not prepared:
                headers = merged({**shape.headers, "Content-Type": changed.content_type}, changed.headers)
                url = shape.url if changed.path == prepared.path else join_url(plan.target.urls[session.url], changed.path)
                return changed.body, Shape(url, headers, shape.session_headers, changed.method)
        return prepared.body, shape

    def log(self, exchange: Exchange, *, stored: bool) -> None:
        """Journal the request, secrets redacted; a body of the store is not repeated."""
        shape = exchange.shape
        headers = {**(self._shown.get(id(shape)) or self._show(shape)), "X-Request-ID": exchange.request_id}
        headers |= dict.fromkeys(shape.session_headers, exchange.session_id)
        self._logbook.text(exchange.request, "request", {"headers": headers, "body": None if stored else exchange.body})

    def _show(self, shape: Shape) -> dict[str, str]:
        return shown_headers(shape.headers, self._secret_names)

    def listen(self, session: Session, on_first_token: Callable[[Session], None]) -> None:
        """Collect the answer where a later turn repeats it; call *on_first_token* if the session holds a prefill slot."""
        collect = None if session.last else session.collected.append
        if session.prefilling:
            session.listen = _FirstToken(self._endpoint, partial(on_first_token, session), collect).feed
        else:
            session.listen = collect

    def append(self, session: Session, *, good: bool, streamed: bool) -> None:
        """Append the current turn and its collected answer; a failed turn adds no answer."""
        authored = self._store.conversation(session.entry).turns[session.turn]
        session.history.append(Message(authored.role, authored.texts, authored.media))
        pieces, session.collected = session.collected, []
        if good:
            answer = self._text(pieces, streamed=streamed)
            if answer:
                session.history.append(Message("assistant", (answer,)))

    def _text(self, pieces: list[bytes], *, streamed: bool) -> str:
        """The text of an answer; its reasoning only where there is no text."""
        if streamed:
            splitter = Splitter()
            events = [event.data for piece in pieces for event in splitter.feed(piece)]
            events += [event.data for event in splitter.close()]
        else:
            events = [b"".join(pieces)]
        pieces_read = [piece for event in events if (piece := _read(self._endpoint, event)) is not None]
        return "".join(text for text, _, _ in pieces_read) or "".join(reasoning for _, reasoning, _ in pieces_read)


def _make_shapes(plan: Plan, secrets: Secrets, store: Store) -> list[list[Shape]]:
    """Per URL, per shape of the store: the part of a request that does not change."""
    accept = "text/event-stream" if plan.target.streaming else "application/json"
    session_headers = (plan.target.session_header, *environment.affinity_headers())
    taken = {name.lower() for name in session_headers}
    rows: list[list[Shape]] = [[] for _ in plan.target.urls]
    for stored in store.shapes:
        headers = {"User-Agent": f"aiperf/{__version__}", "Content-Type": stored.content_type, "Accept": accept}
        headers = merged(merged(headers, stored.headers), secrets.headers)
        headers = {name: value for name, value in headers.items() if name.lower() not in taken}
        for url, row in zip(plan.target.urls, rows, strict=True):
            row.append(Shape(join_url(url, plan.target.path), headers, session_headers, stored.method))
    return rows


def _read(endpoint: Endpoint, event: bytes) -> tuple[str, str, bool] | None:
    """Text, reasoning and whether there is content, as the endpoint reads an event; None where it fails or reads nothing."""
    try:
        delta = endpoint.decode(event)
        return None if delta is None else ("" + delta.text, "" + delta.reasoning, delta.content)
    except Exception:  # noqa: BLE001  # code of a plugin; the reducer decodes the event again and reports the error
        return None


class _FirstToken:
    """Looks through an answer for the first event with content, and then calls *on_found*.

    *collect* gets all bytes of the answer; None drops them.
    """

    def __init__(self, endpoint: Endpoint, on_found: Callable[[], None], collect: Callable[[bytes], None] | None) -> None:
        self._endpoint, self._on_found, self._collect = endpoint, on_found, collect
        self._splitter: Splitter | None = Splitter()

    def feed(self, body: bytes) -> None:
        if self._collect is not None:
            self._collect(body)
        if self._splitter is None:
            return
        pieces = (_read(self._endpoint, event.data) for event in self._splitter.feed(body))
        if any(piece is not None and piece[2] for piece in pieces):
            self._splitter = None
            self._on_found()
