"""Many finished requests as columns: what metrics are computed from.

Times are float64 nanoseconds since the run's start (exact for 104 days); NaN is absent.  A column has one value per
request of the batch, or is :class:`Ragged`: a list per request.

Columns the kernel gives (``batch["started_ns"]``):

======================  ===============================================================================================
``n``                   number of the arrival in its phase
``session`` ``turn``    number of the session, index of the turn in it
``entry``               number of the data set's entry
``phase``               index of the phase
``shard``               number of the shard (worker) that sent it
``outcome``             what became of it: index into :data:`aiperf.journal.OUTCOMES`
``due_ns``              when the arrival was due; absent where nothing was scheduled (burst)
``held_ns``             how long it waited behind that for a slot or for the answer before it; absent in burst
``started_ns``          request time zero: before pool wait, name lookup and connect
``connected_ns``        a connection was ready
``sent_ns``             first byte handed to the kernel
``sent_end_ns``         last byte handed to the kernel
``ack_ns``              status line and headers were in
``first_byte_ns``       first body bytes
``last_byte_ns``        last bytes of the answer
``ended_ns``            when the request was over, answered or not
``first_token_ns``      first piece that shows something, of any kind
``second_token_ns``     second such instant
``first_output_ns``     first piece that is not reasoning
``last_token_ns``       last piece that shows something; trailing usage and ``[DONE]`` don't count
``status``              HTTP status; absent if none came
``input_tokens``        by the run's tokenizer, or the server's with ``--use-server-token-count``
``output_tokens``       answer, without reasoning
``reasoning_tokens``    reasoning; absent if there was none
``requested_tokens``    the max tokens field sent
``usage_prompt_tokens`` ``usage_completion_tokens`` ``usage_total_tokens`` ``usage_reasoning_tokens``
``usage_cached_tokens`` ``usage_cache_write_tokens`` ``usage_cache_miss_tokens`` ``usage_prompt_audio_tokens``
``usage_completion_audio_tokens`` ``usage_accepted_tokens`` ``usage_rejected_tokens`` ``usage_tool_tokens``
``usage_audio_s`` what the server said of itself (:class:`aiperf.usage.Usage`); seconds the last, tokens the others
``bytes_sent`` ``bytes_received``  body bytes
``dns_ns`` ``connect_ns`` ``tls_ns``  time spent on each for this request; 0 on a reused connection
``reused``              1 when an open connection was used
``chunk_ns``            ragged: instants at which content arrived, one per distinct arrival
``gap_ns``              ragged: time between neighbouring instants that are both known (coalesced ones are left out)
``first_tokens``        tokens that came with the first content, where the server counts with every chunk and its count is used
``piece_count``         ragged: pieces of content at each of those instants
``fault``               of an outcome ``error``, how: 0 failed, 1 the answer began and was cut, 2 it was empty; absent otherwise
``coalesced``           content pieces whose instant is only known as an interval
``reads``               how often bytes of the answer's body were read
``events``              of a stream, events that say more than usage, one with a role alone included; 0 without a stream
``first_event_ns`` ``last_event_ns``  the first and the last of them; absent where there is none
``images``              pictures in the payload, those of earlier turns included
``graded``              1 where the answer was graded, 0 where there was none to grade; absent where nothing is expected
``correct`` ``unparsed`` ``score``  of graded answers, as :class:`aiperf.grader.Grade` says
======================  ===============================================================================================
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeAlias

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]


class Ragged(Struct, frozen=True):
    """A list per request: request i has ``values[offsets[i]:offsets[i + 1]]``.

    *at_ns* says when each element happened, in ns since the run's start: what a time slice needs.
    """

    values: Floats
    offsets: Ints
    at_ns: Floats

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def row(self, i: int) -> Floats:
        return self.values[self.offsets[i] : self.offsets[i + 1]]

    def take(self, rows: Ints) -> Ragged:
        """The lists of these requests, in this order."""
        lengths = (self.offsets[1:] - self.offsets[:-1])[rows]
        offsets = np.concatenate(([0], np.cumsum(lengths))).astype(np.int64)
        index = np.repeat(self.offsets[:-1][rows] - offsets[:-1], lengths) + np.arange(offsets[-1])
        return Ragged(self.values[index], offsets, self.at_ns[index])


Column: TypeAlias = Floats | Ragged


def ragged(rows: Iterable[Sequence[float]], at_ns: Iterable[Sequence[float]]) -> Ragged:
    """Lists as a :class:`Ragged`."""
    lists = [np.asarray(row, dtype=np.float64) for row in rows]
    stamps = [np.asarray(row, dtype=np.float64) for row in at_ns]
    empty = np.empty(0)
    return Ragged(
        np.concatenate(lists) if lists else empty,
        np.concatenate(([0], np.cumsum([len(row) for row in lists]))).astype(np.int64),
        np.concatenate(stamps) if stamps else empty,
    )


def integers(column: Floats, plus: int = 0) -> list[int | None]:
    """A column as integers, each *plus* more, exactly; None where it is absent (how a time becomes a wall-clock stamp)."""
    absent = np.isnan(column)
    known = np.where(absent, 0, column) if absent.any() else column
    found: list[int | None] = (np.rint(known).astype(np.int64) + plus).tolist()
    for i in np.flatnonzero(absent).tolist():
        found[i] = None
    return found


class RecordBatch:
    """Finished requests as columns, in completion order.

    *columns* are the kernel's; *texts* hold what is not a number, one string or None per request: ``conversation_id``,
    ``request_id``, ``session_id``, ``model``, ``url``, ``worker``, ``error`` (JSON of ErrorDetails); with
    ``--export-http-trace`` also ``trace`` (JSON of :class:`aiperf.trace.Trace`).
    *valid* marks requests that count for latency and throughput; the rest failed.
    """

    def __init__(
        self,
        columns: Mapping[str, Column],
        valid: NDArray[np.bool_],
        texts: Mapping[str, Sequence[str | None]] | None = None,
        *,
        resolve: Callable[[str], Column] | None = None,
    ) -> None:
        self.columns = dict(columns)
        self.valid = valid
        self.texts = dict(texts or {})
        self._resolve = resolve

    def __len__(self) -> int:
        return len(self.valid)

    def __getitem__(self, name: str) -> Floats:
        """A column with one value per request; for a list per request use :meth:`lists`."""
        column = self.column(name)
        if isinstance(column, Ragged):
            raise KeyError(f"{name!r} is a list per request: use batch.lists({name!r})")
        return column

    def lists(self, name: str) -> Ragged:
        """A column with a list per request."""
        column = self.column(name)
        if not isinstance(column, Ragged):
            raise KeyError(f"{name!r} has one value per request: use batch[{name!r}]")
        return column

    def column(self, name: str) -> Column:
        if name in self.columns:
            return self.columns[name]
        if self._resolve is not None:
            return self._resolve(name)
        raise KeyError(f"no column {name!r}; a metric may read the kernel's columns and the tags in its 'needs'")

    def viewed(self, resolve: Callable[[str], Column]) -> RecordBatch:
        """The same batch, which looks other names up with *resolve* (how a metric sees what it needs)."""
        return RecordBatch(self.columns, self.valid, self.texts, resolve=resolve)

    def take(self, rows: Ints) -> RecordBatch:
        """These requests, in this order."""
        columns = {
            name: column.take(rows) if isinstance(column, Ragged) else column[rows] for name, column in self.columns.items()
        }
        texts = {name: [values[i] for i in rows.tolist()] for name, values in self.texts.items()}
        return RecordBatch(columns, self.valid[rows], texts)

    def select(self, mask: NDArray[np.bool_]) -> RecordBatch:
        """The requests where *mask* is true."""
        return self.take(np.flatnonzero(mask).astype(np.int64))
