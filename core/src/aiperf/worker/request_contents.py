"""What a request carries: its stored body, or one that is encoded when it is sent."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic_ns
from typing import Any

from aiperf.errors import ENDPOINT_ERROR
from aiperf.registry.third_party import why
from aiperf.rundir.shapes import shape_of
from aiperf.rundir.store import Store
from aiperf.sdk.driver import Session
from aiperf.sdk.model import ErrorDetails, HttpRequest
from aiperf.sdk.plan import PhasePlan, Plan
from aiperf.sdk.transport import Shape
from aiperf.worker.turns import Turns


class RequestContents:
    """Chooses body and shape of each request.

    encode_ns: time that endpoint and hooks took for requests that were not encoded before the load.
    """

    def __init__(self, plan: Plan, store: Store, turns: Turns, *, prepares: bool) -> None:
        self.turns = turns
        self._plan, self._store, self._shapes, self._prepares = plan, store, turns.shapes, prepares
        self._changes_bodies, self._first_turns_stored = False, not prepares
        self._stored: Callable[[int, int, int], bytes | memoryview] = store.body
        self.encode_ns = 0
        store.on_shapes = self._add_shapes

    def begin(self, phase: PhasePlan, *, changes_bodies: bool) -> None:
        """Serve *phase*.  changes_bodies: the transport takes bodies that change behind the exchange."""
        self._changes_bodies = changes_bodies
        # Files in forms are long, and stand in the store as they are sent.
        views = changes_bodies and any(shape.content_type.startswith("multipart/") for shape in self._store.shapes)
        self._stored = self._store.view if views else self._store.body
        self._first_turns_stored = not (self._prepares or self._plan.data.cache_bust.marks(phase.kind))

    def of(self, session: Session, request: int) -> tuple[Any, Shape, Any, ErrorDetails | None]:
        """Body and shape of the session's current turn, what the journal has of the body, and why it can't be made.

        *request* is its number.
        """
        if session.turn == 0 and self._first_turns_stored and session.limit is None:
            entry, model = session.entry, session.model
            return self._stored(entry, 0, model), self._shapes[session.url][self._store.shape(entry, 0, model)], None, None
        began_ns = monotonic_ns()
        try:
            whole, shape, shown = self.turns.encode(session, request)
            return whole if self._changes_bodies else bytes(whole), shape, shown, None
        except Exception as error:  # noqa: BLE001  # code of a plugin, per request: cheaper than isolated()
            fault = ErrorDetails(f"the endpoint can't make the request: {why(error)}", type=ENDPOINT_ERROR)
            return b"", self._shapes[session.url][0], b"", fault
        finally:
            self.encode_ns += monotonic_ns() - began_ns

    def shape_of(self, session: Session, request: HttpRequest) -> Shape:
        """The shape of a further exchange of a session's request."""
        return self.turns.new_shape(shape_of(request), self._plan.target.urls[session.url])

    def _add_shapes(self) -> None:
        for row, url in zip(self._shapes, self._plan.target.urls, strict=True):
            row += [self.turns.new_shape(stored, url) for stored in self._store.shapes[len(row) :]]
