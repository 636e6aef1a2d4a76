"""Requests as lines of a log: one each at trace level, failures and second attempts at debug level."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

import numpy as np
from aiperf.parts.journal import COMPLETED, OUTCOMES
from aiperf.sdk.columns import RecordBatch

TRACE, DEBUG = 5, 10
"""Levels of logging."""
_MOST = 20
"""Lines of a batch at debug level: where all requests fail, the first ones tell as much."""
_INSTANTS = (("ack_ns", "headers"), ("first_byte_ns", "first byte"), ("first_token_ns", "first content"))


class RequestLines:
    """Tells *say* of the requests of each batch, as far as a log of *level* shows them."""

    def __init__(self, level: int, say: Callable[[int, list[str]], None]) -> None:
        self._all, self._say = level <= TRACE, say

    def tell(self, batch: RecordBatch) -> None:
        """Say the lines of a batch, if it has any."""
        if self._all:
            self._say(TRACE, [_line(batch, row) for row in range(len(batch))])
            return
        rows = np.flatnonzero(~batch.valid | (batch["resent"] == 1))
        lines = [_line(batch, row) for row in rows[:_MOST].tolist()]
        if len(rows) > _MOST:
            lines.append(f"… and {len(rows) - _MOST:,} more requests that failed or were sent again")
        if lines:
            self._say(DEBUG, lines)


def _line(batch: RecordBatch, row: int) -> str:
    """Which request it was, how it ended, and where its time went."""
    error = batch.texts["error"][row]
    return ", ".join(_parts(batch, row)) + (f": {json.loads(error)['message']}" if error else "")


def _parts(batch: RecordBatch, row: int) -> Iterator[str]:
    def known(name: str) -> float | None:
        value = float(batch[name][row])
        return None if np.isnan(value) else value

    def whole(name: str) -> int:
        return int(known(name) or 0)

    texts, started, status, due = batch.texts, known("started_ns") or 0.0, known("status"), known("due_ns")
    place = f"{texts['worker'][row]}, session {whole('session')}, turn {whole('turn')}"
    yield f"request {whole('n')} {texts['request_id'][row]} ({place})"
    outcome = "ok" if whole("outcome") == COMPLETED else OUTCOMES[whole("outcome")]
    ended = known("ended_ns")
    after = "" if ended is None else f" after {_ms(ended - started)}"
    yield f"{outcome}{'' if status is None else f' {status:.0f}'}{after}"
    if due is not None:
        yield f"begun {_ms(started - due)} behind its time"
    yield _connection(batch, row)
    for name, what in _INSTANTS:
        if (instant := known(name)) is not None:
            yield f"{what} at {_ms(instant - started)}"
    yield f"{whole('bytes_received'):,} bytes in {whole('reads'):,} {'read' if whole('reads') == 1 else 'reads'}"


def _connection(batch: RecordBatch, row: int) -> str:
    if batch["resent"][row] == 1:
        return "sent again, because the server had closed the open connection, or refused the request, and read nothing of it"
    if batch["reused"][row] == 1:
        return "on an open connection"
    if not np.isfinite(batch["sent_ns"][row]):
        return "not sent"
    parts = ((name, float(batch[f"{name}_ns"][row])) for name in ("dns", "connect", "tls"))
    steps = ", ".join(f"{name} {_ms(ns)}" for name, ns in parts if ns > 0)
    why = ", because the server had closed the open one" if batch["reconnected"][row] == 1 else ""
    return f"on a new connection ({steps}){why}" if steps else f"on a new connection{why}"


def _ms(ns: float) -> str:
    return f"{ns / 1e6:,.2f} ms"
