"""Turns that are encoded on a worker, because they repeat answers, carry a marker, or pass through hooks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import lru_cache, partial
from typing import Any

from msgspec.structs import replace

from aiperf import __version__, environment
from aiperf.errors import BadResponse
from aiperf.redaction import shown_headers
from aiperf.registry.hooks import Prepare
from aiperf.registry.third_party import endpoint_of
from aiperf.rundir.forks import forks_of
from aiperf.rundir.shapes import StoredShape, shape_of
from aiperf.rundir.store import Store
from aiperf.sdk.cache_bust import CacheBust, marked, marker
from aiperf.sdk.driver import Session
from aiperf.sdk.endpoint import Endpoint, Reader, completed, encoded, filled, prompt
from aiperf.sdk.framing import Framing, Whole, accept, is_stream
from aiperf.sdk.headers import merged
from aiperf.sdk.model import Answers, Delta, HttpRequest, Message, Turn, join_url, joined
from aiperf.sdk.plan import Plan, Secrets
from aiperf.sdk.sse import Event, Messages
from aiperf.sdk.transport import MESSAGES, STREAMED, Exchange, Shape
from aiperf.sdk.trees import said_before
from aiperf.worker.continuing import STORED, Continuing, Grown, Script, begun
from aiperf.worker.logbook import Logbook

_CHECKED = 4
"""So many bodies that continue another are compared with what the endpoint makes of the whole turn."""
_MARKED = 2
"""The first messages, one of which has the marker: a system message, and the user's first."""
_KEPT_OUTLINES = 256
"""Conversations that are kept, so that the streams of a tree share one."""


class Turns:
    """Encodes the turns that the store has no body for: later turns, which repeat answers, and all turns where hooks change
    requests.  Listens to answers, and keeps those that later turns repeat.

    shapes: by URL and by shape of the store.  secret_names: of headers whose values are shown nowhere.
    prepare: the chain of ``aiperf_request_prepared``, None without such hooks.
    warn: gets a sentence for the report.
    """

    def __init__(
        self, plan: Plan, secrets: Secrets, store: Store, logbook: Logbook, prepare: Prepare | None, warn: Callable[[str], None]
    ) -> None:  # fmt: skip
        self._plan, self._store, self._logbook, self._prepare, self._warn = plan, store, logbook, prepare, warn
        self._outline = lru_cache(_KEPT_OUTLINES)(store.outline)
        self._endpoint = endpoint_of(plan)
        self._accept = accept(self._endpoint.framing, asked=plan.target.streaming)
        self._secrets, self._session_headers = secrets, (plan.target.session_header, *environment.affinity_headers())
        self.shapes = [[self.new_shape(stored, url) for stored in store.shapes] for url in plan.target.urls]
        self.secret_names = tuple(secrets.headers)
        self._shown = {id(shape): self._show(shape) for row in self.shapes for shape in row}
        tokenized = plan.plugins.tokenizer is not None and not plan.target.use_server_token_count
        counts = tokenized and self._endpoint.capabilities.tokenizes_input
        self._counts, self._counts_bodies = counts and not plan.data.chat_template, counts and plan.data.chat_template
        self._continuing: Continuing | None = None
        self._unchecked = _CHECKED
        self._marks = plan.data.cache_bust is not CacheBust.NONE
        if self._endpoint.appends_messages and prepare is None:
            counts, adds_up = self._counts, store.counts_add_up
            self._continuing = Continuing(self._endpoint, plan.target.given_path, counts=counts, adds_up=adds_up)

    def encode(self, session: Session, request: int) -> tuple[bytes | bytearray, Shape, Any]:
        """Body and shape of the session's current turn, and what the journal has of the body; *request* is its number."""
        script = self._script(session)
        grown, script.grown = script.grown, None  # an exception leaves none
        if script.phase != session.phase:  # the journal tells of each phase by itself
            grown, script.phase = None, session.phase
        if self._continuing is not None and session.turn and not script.outline.alone:
            with suppress(Exception):  # code of a plugin; what is wrong with the turn shows when it is encoded whole
                continued = self._continued(self._continuing, grown, session, request)
                if continued is not None:
                    return continued
        return self._whole(session, script, request)

    def _script(self, session: Session) -> Script:
        script: Script | None = session.script
        if script is None:
            script = session.script = Script(self._outline(session.entry))
            if session.turn:
                self._begin_later(session, script)
        return script

    def _begin_later(self, session: Session, script: Script) -> None:
        """Let the script begin with what the data set has before the session's turn."""
        outline = script.outline
        places = said_before(outline.streams, session.turn) if outline.streams else range(session.turn)
        if outline.streams:
            script.line = list(places)
        script.answers = [()] * len(places)

    def _marker(self, session: Session, script: Script) -> str:
        """The session's marker, "" where ``--cache-bust`` gives none."""
        return _marker(self._plan, session, script.outline.id)

    def _continued(
        self, continuing: Continuing, grown: Grown | None, session: Session, request: int
    ) -> tuple[bytearray, Shape, Any] | None:  # fmt: skip
        """Encodes the turn by the new messages alone; None where that can't be."""
        script, target, store = session.script, self._plan.target, self._store
        model, text = target.models[session.model], self._marker(session, script)
        second = script.line == [0] if script.outline.streams else session.turn == 1
        if grown is None and second and self._prepare is None and not text:
            first = completed(store.part(script.outline, 0), 0, target, model)
            grown = continuing.begin(STORED, first, store.body(session.entry, 0, session.model))
        if grown is None:
            return None
        turn, kept = store.part(script.outline, session.turn).turns[0], None
        if text and turn.extra:  # it may have a marker of its own
            return None
        if turn.keeps is not None:
            kept = script.kept(turn, script.line if script.outline.streams else range(session.turn))
            if text and kept is not None and turn.keeps < _MARKED:
                return None
        tools = grown.frame.turn.tools if turn.tools is None else turn.tools
        turn = _limited(filled(turn, target, model, history=(), state=session.state, tools=tools), session)
        new = (*script.answers[-1], *turn.before, *turn.own)
        stored = store.body(session.entry, session.turn, session.model)
        continued = continuing.grow(grown, turn, new, request, stored, kept)
        if continued is None or not (self._unchecked == 0 or self._keeps_its_promise(session, grown.body)):
            return None
        script.grown, script.at = grown, session.turn
        if continued.prompt is not None:
            self._logbook.text(request, "prompt", continued.prompt)
        elif self._counts_bodies:
            self._logbook.text(request, "prompt", bytes(grown.body))
        return grown.body, self._shape(session, continued.request), {**continued.part, "last": session.last}

    def _keeps_its_promise(self, session: Session, body: bytearray) -> bool:
        """Whether the endpoint gives the body whole, too; asked for the first few, and one that differs is the last."""
        self._unchecked -= 1
        if encoded(self._endpoint, self._turn(session)[0], self._plan.target.given_path).body == body:
            return True
        self._continuing = None
        name = self._plan.plugins.endpoint.name
        self._warn(f"{name} promises appends_messages, and encodes a turn otherwise than behind the one before")
        return False

    def _turn(self, session: Session) -> tuple[Turn, str]:
        """The session's current turn with all of its history, and its marker."""
        script, index, target = session.script, session.turn, self._plan.target
        if script.outline.streams:  # of all that is in a tree, what this stream has said
            line = tuple(turn for at in (*script.line, index) for turn in self._store.part(script.outline, at).turns)
            conversation, index = script.outline.of(line), len(script.line)
        else:
            conversation = self._store.conversation(session.entry)
        if text := self._marker(session, script):
            conversation = marked(conversation, self._plan.data.cache_bust, text)
        history = script.history(conversation)
        turn = completed(conversation, index, target, target.models[session.model], history, session.state)
        return _limited(turn, session), text

    def _whole(self, session: Session, script: Script, request: int) -> tuple[bytes, Shape, Any]:
        """Encodes the turn with all of the history."""
        plan, counted = self._plan, None
        turn, text = self._turn(session)
        prepared = encoded(self._endpoint, turn, plan.target.given_path)
        goes_on = text or (session.turn and not script.outline.alone)
        if self._counts_bodies and goes_on:
            self._logbook.text(request, "prompt", prepared.body)
        elif self._counts and goes_on:
            counted = prompt(self._endpoint, turn, prepared)
            words = " ".join(counted.texts)
            self._logbook.text(request, "prompt", [words, len(counted.ids)] if counted.ids else words)
        shape = self._shape(session, prepared)
        if self._prepare is not None:
            changed = self._prepare(prepared, turn)
            if changed is not prepared:
                headers = merged({**shape.headers, "Content-Type": changed.content_type}, changed.headers)
                url = shape.url if changed.path == prepared.path else join_url(plan.target.urls[session.url], changed.path)
                body, cuts = joined(changed).body, shape_of(changed).parts
                return body, Shape(url, headers, shape.session_headers, changed.method, changed.drain, cuts), body
        elif self._continuing is not None and session.goes_on and not script.outline.alone and (
            goes_on or session.limit is None
        ):
            with suppress(Exception):  # code of a plugin; the next turn is encoded whole, too
                script.grown = self._continuing.begin(request, turn, prepared.body, counted)
                script.at = session.turn
        shown = prepared.body if script.grown is None else {**begun(prepared.body), "last": session.last}
        return prepared.body, shape, shown

    def _shape(self, session: Session, request: HttpRequest) -> Shape:
        number = self._store.shape(session.entry, session.turn, session.model)
        stored, shape = shape_of(request), self.shapes[session.url][number]
        if stored != self._store.shapes[number]:  # an answer changed more than the body
            shape = self.new_shape(stored, self._plan.target.urls[session.url])
        return shape

    def new_shape(self, stored: StoredShape, url: str) -> Shape:
        """The part of requests to a base URL that their bodies don't change."""
        headers = {"User-Agent": f"aiperf/{__version__}", "Content-Type": stored.content_type, "Accept": self._accept}
        headers = merged(merged(headers, stored.headers), self._secrets.headers)
        taken = {name.lower() for name in self._session_headers}
        headers = {name: value for name, value in headers.items() if name.lower() not in taken}
        whole = stored.path if "://" in stored.path[:8] else join_url(url, stored.path)
        return Shape(whole, headers, self._session_headers, stored.method, stored.drain, stored.parts)

    def log(self, exchange: Exchange, body: Any) -> None:
        """Journal the request, secrets redacted; *body* as :meth:`encode` says, None where the store has it."""
        shape = exchange.shape
        headers = {**(self._shown.get(id(shape)) or self._show(shape)), "X-Request-ID": exchange.request_id}
        headers |= dict.fromkeys(shape.session_headers, exchange.session_id)
        request: dict[str, Any] = {"headers": headers, "body": body}
        session: Any = exchange.owner
        if self._marks and (text := _marker(self._plan, session, self._store.id(session.entry))):
            request["marker"] = text
        self._logbook.text(exchange.request, "request", request)

    def _show(self, shape: Shape) -> dict[str, str]:
        return shown_headers(shape.headers, self.secret_names)

    def listen(self, session: Session, on_first_token: Callable[[Session], None], framing: type[Framing] | None = None) -> None:
        """Collect the answer where a later turn repeats it; call *on_first_token* if the session holds a prefill slot."""
        collect = session.collected.append if session.goes_on else None
        if session.prefilling:
            framing = framing or self._endpoint.framing
            session.listen = _FirstToken(self._endpoint, partial(on_first_token, session), collect, framing).feed
        else:
            session.listen = collect

    def append(self, session: Session, *, good: bool, flags: int) -> None:
        """Append the answer to the current turn to what was said; a failed turn has none.  *flags*: the exchange's."""
        script = self._script(session)
        messages: Sequence[Message] = ()
        pieces, session.collected, session.state = session.collected, [], {}
        if good and script.outline.answers == Answers.LIVE:
            messages, session.state = self._answered(pieces, flags)
        script.answers.append(messages)
        if script.outline.streams:
            script.line.append(session.turn)
        if session.last and session.turn not in forks_of(script.outline.streams).values():
            script.grown = None

    def _answered(self, pieces: list[bytes], flags: int) -> tuple[Sequence[Message], dict[str, Any]]:
        """The messages that repeat an answer, and its values for the next request."""
        own, asked = self._endpoint.framing, self._plan.target.streaming
        stream = flags & MESSAGES or is_stream(own, event_stream=bool(flags & STREAMED), asked=asked)
        try:
            framing = (Messages if flags & MESSAGES else own if stream else Whole)()
            events = [event for piece in pieces for event in framing.feed(piece)]
            events += framing.close()
            reader = self._endpoint.reader()
            deltas = _read_all(reader, events)
            if deltas is None:  # an event can't be read: a new reader reads the others
                reader = self._endpoint.reader()
                deltas = [delta for event in events for delta in _readable(reader, event)]
            deltas.append(reader.close())
            messages, state = reader.replay(), dict(reader.state())
            if messages is None:
                text = "".join(delta.text for delta in deltas if delta) or "".join(delta.reasoning for delta in deltas if delta)
                messages = [Message("assistant", (text,))] if text else []
            return tuple(messages), state
        except Exception:  # noqa: BLE001  # an error in the answer, or in a plugin: the reducer reads it again and reports it
            return (), {}


def _marker(plan: Plan, session: Session, conversation: str) -> str:
    if session.lane < 0:
        return marker(plan, session.phase, session.number, conversation)
    return marker(plan, session.phase, session.lane, conversation, session.lap)


def _limited(turn: Turn, session: Session) -> Turn:
    """The turn with the session's own limit of the output, where it has one."""
    return turn if session.limit is None else replace(turn, max_tokens=session.limit)


def _read_all(reader: Reader, events: Sequence[Event]) -> list[Delta | None] | None:
    """What *reader* gives for the events; None where it fails, which the reducer reports."""
    try:
        deltas = list(reader.feed([event.data for event in events], [event.name for event in events]))
        return deltas if all(delta is None or isinstance(delta, Delta) for delta in deltas) else None
    except Exception:  # noqa: BLE001  # code of a plugin
        return None


def _readable(reader: Reader, event: Event) -> Sequence[Delta | None]:
    """What *reader* gives for an event; nothing for one that can't be read.

    Raises:
        BadResponse: The event says that the request failed.
    """
    try:
        return list(reader.feed([event.data], [event.name]))
    except BadResponse as error:
        if not error.unreadable:
            raise
        return ()


class _FirstToken:
    """Looks through an answer for the first event with content, and then calls *on_found*.

    *collect* gets all bytes of the answer; None drops them.
    """

    def __init__(
        self, endpoint: Endpoint, on_found: Callable[[], None], collect: Callable[[bytes], None] | None,
        framing: type[Framing],
    ) -> None:  # fmt: skip
        self._on_found, self._collect = on_found, collect
        self._new_reader, self._new_framing = endpoint.reader, framing
        self._parts: tuple[Framing, Reader] | None = None
        self._found = False

    def feed(self, body: bytes) -> None:
        if self._collect is not None:
            self._collect(body)
        if self._found:
            return
        try:
            framing, reader = self._parts = self._parts or (self._new_framing(), self._new_reader())
            deltas = (delta for event in framing.feed(body) for delta in _read_all(reader, [event]) or ())
            self._found = any(delta is not None and delta.content for delta in deltas)
        except Exception:  # noqa: BLE001  # code of a plugin; the reducer reports the error
            return
        if self._found:
            self._parts = None
            self._on_found()
