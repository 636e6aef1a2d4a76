"""Many finished requests as columns: what metrics are computed from.

Times are float64 nanoseconds since the run's start (exact for 104 days); NaN is absent.  A column has one value per
request of the batch, or is :class:`Ragged`: a list per request.

The kernel's columns (``batch["started_ns"]``): every field of :class:`Row`, :data:`LIST_COLUMNS` and :data:`GRADE_COLUMNS`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping, Sequence
from functools import cache, partial
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import numpy as np
from msgspec import Struct
from msgspec.structs import astuple

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from aiperf.sdk.metric import MetricDeclaration

    Floats: TypeAlias = NDArray[np.float64]
    Ints: TypeAlias = NDArray[np.int64]
else:  # the names alone must not load numpy
    Floats = Ints = Any

ABSENT = float("nan")


class JournalColumns(Struct):
    """Numbers as the journal has them, in its order (:mod:`aiperf.rundir.journal`)."""

    n: Annotated[float, "", "number of the arrival in its phase"] = ABSENT
    phase: Annotated[float, "", "index of the phase"] = ABSENT
    session: Annotated[float, "", "number of the session"] = ABSENT
    turn: Annotated[float, "", "index of the turn in its session"] = ABSENT
    entry: Annotated[float, "", "number of the data set's entry"] = ABSENT
    url: Annotated[float, "", "index of the URL"] = ABSENT
    model: Annotated[float, "", "index of the model"] = ABSENT
    bytes_sent: Annotated[float, "B", "body bytes sent"] = ABSENT
    bytes_received: Annotated[float, "B", "body bytes received"] = ABSENT
    dns_ns: Annotated[float, "ns", "time spent on name lookup for this request; 0 on a reused connection"] = ABSENT
    connect_ns: Annotated[float, "ns", "likewise on connecting"] = ABSENT
    tls_ns: Annotated[float, "ns", "likewise on the TLS handshake"] = ABSENT


class UsageColumns(Struct):
    """The server's own counts."""

    usage_prompt_tokens: Annotated[float, "tokens", "input"] = ABSENT
    usage_completion_tokens: Annotated[float, "tokens", "output, reasoning included"] = ABSENT
    usage_total_tokens: Annotated[float, "tokens", "input and output"] = ABSENT
    usage_reasoning_tokens: Annotated[float, "tokens", "reasoning"] = ABSENT
    usage_cached_tokens: Annotated[float, "tokens", "input found in the prefix cache"] = ABSENT
    usage_cache_write_tokens: Annotated[float, "tokens", "input written to the prefix cache"] = ABSENT
    usage_cache_miss_tokens: Annotated[float, "tokens", "input not found in the prefix cache"] = ABSENT
    usage_prompt_audio_tokens: Annotated[float, "tokens", "audio of the input"] = ABSENT
    usage_completion_audio_tokens: Annotated[float, "tokens", "audio of the output"] = ABSENT
    usage_accepted_tokens: Annotated[float, "tokens", "accepted tokens of a predicted output"] = ABSENT
    usage_rejected_tokens: Annotated[float, "tokens", "rejected tokens of a predicted output"] = ABSENT
    usage_tool_tokens: Annotated[float, "tokens", "results of tools that the server called"] = ABSENT
    usage_audio_s: Annotated[float, "s", "audio of the input"] = ABSENT


class Row(JournalColumns):
    """The numbers of one finished request, beside :class:`UsageColumns`: name, unit and meaning of each column.

    The only declaration of these columns: a batch is stored as the float64 values of the fields of both, in this order.
    """

    shard: Annotated[float, "", "number of the shard (worker) that sent it"] = ABSENT
    request: Annotated[float, "", "number of the request in its shard"] = ABSENT
    outcome: Annotated[float, "", "index into :data:`aiperf.parts.journal.OUTCOMES`"] = ABSENT
    fault: Annotated[float, "", "how an ``error`` failed: 0 failed, 1 the answer began and was cut, 2 it was empty"] = ABSENT
    status: Annotated[float, "", "HTTP status; absent if none came"] = ABSENT
    due_ns: Annotated[float, "ns", "when the arrival was due; absent where nothing was scheduled (burst)"] = ABSENT
    held_ns: Annotated[float, "ns", "how long it waited, once due, for a slot or the previous answer; absent in burst"] = ABSENT
    turnaround_ns: Annotated[float, "ns", "from the answer whose slot it took to its first byte, without connecting"] = ABSENT
    started_ns: Annotated[float, "ns", "request time zero: before pool wait, name lookup and connect"] = ABSENT
    connected_ns: Annotated[float, "ns", "a connection was ready"] = ABSENT
    sent_ns: Annotated[float, "ns", "first byte handed to the operating system"] = ABSENT
    sent_end_ns: Annotated[float, "ns", "last byte handed to the operating system"] = ABSENT
    ack_ns: Annotated[float, "ns", "status line and headers were in"] = ABSENT
    first_byte_ns: Annotated[float, "ns", "first body bytes"] = ABSENT
    last_byte_ns: Annotated[float, "ns", "last bytes of the answer"] = ABSENT
    ended_ns: Annotated[float, "ns", "when the request was over, answered or not"] = ABSENT
    first_token_ns: Annotated[float, "ns", "first content of any kind"] = ABSENT
    second_token_ns: Annotated[float, "ns", "second distinct instant of content; absent where reads were merged"] = ABSENT
    first_output_ns: Annotated[float, "ns", "first content that is not reasoning"] = ABSENT
    unreadable_ns: Annotated[float, "ns", "first of the *unreadable* events, where it came before all content"] = ABSENT
    last_token_ns: Annotated[float, "ns", "last content; trailing usage and ``[DONE]`` don't count"] = ABSENT
    first_event_ns: Annotated[float, "ns", "first of a stream's *events*; absent where there is none"] = ABSENT
    last_event_ns: Annotated[float, "ns", "last of them"] = ABSENT
    input_tokens: Annotated[float, "tokens", "by the run's tokenizer, or the server with --use-server-token-count"] = ABSENT
    output_tokens: Annotated[float, "tokens", "answer, without reasoning"] = ABSENT
    reasoning_tokens: Annotated[float, "tokens", "reasoning; absent if there was none"] = ABSENT
    requested_tokens: Annotated[float, "tokens", "the max tokens field sent"] = ABSENT
    first_tokens: Annotated[float, "tokens", "with the first content, where the server counts per chunk and is asked"] = ABSENT
    reused: Annotated[float, "", "1 when an open connection was used"] = ABSENT
    reconnected: Annotated[float, "", "1 when an open connection had closed before the request was written to it"] = ABSENT
    resent: Annotated[float, "", "1 when it was written twice: the server had closed, and acknowledged nothing of it"] = ABSENT
    coalesced: Annotated[float, "", "pieces of content whose instant is only known as an interval"] = ABSENT
    reads: Annotated[float, "", "how often bytes of the answer's body were read"] = ABSENT
    unreadable: Annotated[float, "", "events of a stream that could not be read"] = ABSENT
    finish: Annotated[float, "", "end of a whole stream: 2 with a reason, 1 with an end marker alone, 0 with neither"] = ABSENT
    images: Annotated[float, "", "pictures in the payload, those of earlier turns included"] = ABSENT
    audio_s: Annotated[float, "s", "sound in the turn, by the data set or the header of the file; absent without"] = ABSENT
    events: Annotated[float, "", "events of a stream that say more than usage, a role alone included; 0 otherwise"] = ABSENT
    prefix_blocks: Annotated[float, "", "blocks of the recorded prompt of a trace with hash ids; absent without"] = ABSENT
    prefix_hits: Annotated[float, "", "those of them that lead it and stood in an earlier prompt of the trace"] = ABSENT
    unread_usage: Annotated[float, "", "1 where counts of the server can't be read, or told apart by answer"] = ABSENT
    lane: Annotated[float, "", "the lane of its tree; absent where the driver has none"] = ABSENT
    held_by: Annotated[float, "", "place in the tree of the turn of another stream for whose end it waited"] = ABSENT


NUMBERS: tuple[str, ...] = (*UsageColumns.__struct_fields__, *Row.__struct_fields__)
"""Columns with one number per request, as a batch is stored."""
LIST_COLUMNS = ("chunk_ns", "gap_ns", "piece_count")
"""Columns with a list per request: distinct instants at which content arrived (ns); times between neighbouring arrivals (ns);
pieces of content at each instant.  A merged read is one instant, and around it the times are estimates whose sum is right."""
BOUND_COLUMNS = (
    "gap_low_ns", "gap_high_ns", "gap_slack_ns", "second_low_ns", "second_high_ns", "first_low_ns", "first_high_ns",
    "output_low_ns", "output_high_ns", "decode_low_ns", "decode_high_ns",
)  # fmt: skip
"""Columns of batches with merged reads alone: ``low``, ``high`` and ``slack`` of :class:`Bounds` for ``gap_ns``; and, one
number per request, the least and the greatest of the time that the content after the first may have taken, of the instants of
the first content and of the first output, and of the time from the first content to the last."""
INTERVALS = {"first_token_ns": ("first_low_ns", "first_high_ns"), "first_output_ns": ("output_low_ns", "output_high_ns")}
"""Columns that are estimates in batches with merged reads, and the columns of their earliest and their latest instants; in any
other batch, reading these gives the known instants."""
_KNOWN = {end: name for name, ends in INTERVALS.items() for end in ends}
GRADE_COLUMNS = ("graded", "correct", "unparsed", "score")
"""1 where the answer was graded, 0 where grading failed, absent where nothing is expected; and, of graded answers, the fields
of :class:`aiperf.sdk.grader.Grade`."""
POLL_GAP = "poll_gap_ns"
"""A column of batches of endpoints with ``follow`` alone: time between the starts of the last two exchanges of a polled request
(ns), by which its latency may be too long.  Such batches have the text ``legs``: JSON of :class:`Leg`."""
REPEAT = "repeat"
"""A column of every batch: how often the request's problem was asked before (``Turn.repeat``); absent where each comes once."""
TREE_COLUMNS = ("stream", "depth", "parent", "held_turn")
"""Columns of batches of a data set with trees alone: the number of the request's stream, 0 for the root's; how deep it is, 0
for the root; the number of the stream that started it, -1 for none; the turn ``held_by`` in its own stream.  ``turn`` is
counted in the stream there, and
``conversation_id`` and ``session_id`` are the stream's."""
TREE_TEXTS = ("parent_id", "root_id", "depth", "position", "held_id")
"""Texts of such batches: the ``session_id`` of the stream that started it, None for the root and for what began before its
parent's first turn; that of the root; the depth; and ``root first``, ``root later``, ``child first`` or ``child later``: whose
turn it is, and whether it is the stream's first; the ``session_id`` of the stream of ``held_by``, None where there is none."""
TEXTS = ("conversation_id", "request_id", "session_id", "model", "url", "worker", "error", "finish_reason", "task")
"""Texts of every batch; ``error`` is the JSON of ErrorDetails; ``finish_reason`` as the server sent it, the different ones of
several answers to a request joined with ``", "``; ``task`` that of the turn, None where the data set gives none."""
SITE = "site"
"""A text of batches of a run with sites alone: the name of the one whose worker sent the request; None where that is not
known."""
RECONNECTS = ("closed_before_write", "unacknowledged")
"""Why a request went to a new connection: the open one had closed before the request was written to it; or the server had
closed it and acknowledged nothing of the request, which was written a second time."""
ANSWER_TEXTS = ("reasoning", "answer")
"""Texts of the answers, of batches of a run with an exporter that wants them; None where a request has none."""


class Leg(Struct, frozen=True, omit_defaults=True):
    """One of several exchanges of a request; a list of them, as JSON, is the text ``legs`` of a batch.

    Instants are in ns since the run's start, None where it never came that far.
    polled: it began after a wait, to ask again.
    """

    started_ns: int
    ended_ns: int
    first_byte_ns: int | None = None
    status: int | None = None
    polled: bool = False


class WireTrace(Struct, frozen=True, omit_defaults=True):
    """One exchange as it was on the wire: the text ``trace`` of a batch, as JSON.

    request_headers, response_headers, trailers: secrets redacted.  reads: (ns since the run's start, body bytes) of each.
    """

    request_headers: dict[str, str] = {}
    reason: str | None = None
    response_headers: dict[str, str] = {}
    reads: tuple[tuple[int, int], ...] = ()
    trailers: dict[str, str] = {}


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
        """The lists of the requests *rows*, in this order."""
        lengths = (self.offsets[1:] - self.offsets[:-1])[rows]
        offsets = np.concatenate(([0], np.cumsum(lengths))).astype(np.int64)
        index = np.repeat(self.offsets[:-1][rows] - offsets[:-1], lengths) + np.arange(offsets[-1])
        return Ragged(self.values[index], offsets, self.at_ns[index])


Column: TypeAlias = Floats | Ragged


class Bounds(Struct, frozen=True):
    """Bounds of a metric's column, in columns of the same shape.

    Every percentile of the true values lies between those of *low* and *high*.  Where low is high, the value is known; else it
    is an estimate.  slack: by how much each estimate may be wrong in a sum.
    """

    low: Column
    high: Column
    slack: Column

    @classmethod
    def around(cls, column: Column, low: Column, high: Column) -> Bounds:
        """Bounds of one value per request: absent where *column* is, and with it between them.

        Raises:
            TypeError: There are lists.
        """
        if isinstance(column, Ragged) or isinstance(low, Ragged) or isinstance(high, Ragged):
            raise TypeError("bounds of a list per request must be made one by one")
        absent = np.isnan(column)
        low = np.where(absent, np.nan, np.fmin(low, column))
        high = np.where(absent, np.nan, np.fmax(high, column))
        return cls(low, high, np.maximum(column - low, high - column))


def _taken(column: Column, rows: Ints) -> Column:
    return column.take(rows) if isinstance(column, Ragged) else column[rows]


def ragged(rows: Iterable[Sequence[float]], at_ns: Iterable[Sequence[float]]) -> Ragged:
    """Lists as a :class:`Ragged`."""
    lists = [np.asarray(row, dtype=np.float64) for row in rows]
    stamps = [np.asarray(row, dtype=np.float64) for row in at_ns]
    offsets = np.concatenate(([0], np.cumsum([len(row) for row in lists]))).astype(np.int64)
    return Ragged(np.concatenate([np.empty(0), *lists]), offsets, np.concatenate([np.empty(0), *stamps]))


def integers(column: Floats, plus: int = 0) -> list[int | None]:
    """A column as exact integers plus *plus*; None where it is absent.  Turns a time into a wall-clock stamp."""
    absent = np.isnan(column)
    known = np.where(absent, 0, column) if absent.any() else column
    values: list[int | None] = (np.rint(known).astype(np.int64) + plus).tolist()
    for i in np.flatnonzero(absent).tolist():
        values[i] = None
    return values


def reconnects(batch: RecordBatch) -> list[str | None]:
    """One of :data:`RECONNECTS` for each request, the second where both apply.

    None where neither does, or where a journal of an earlier version doesn't tell them apart.
    """
    resent = batch["resent"]
    causes = np.where(resent == 1, 2, (batch["reconnected"] == 1) & (resent == 0))
    return [(None, *RECONNECTS)[cause] for cause in causes.tolist()] if causes.any() else [None] * len(causes)


class BatchTexts(MutableMapping[str, Sequence["str | None"]]):
    """Texts of a batch by name, a string or None per request.  Those given as a function are made when they are first read."""

    def __init__(self, texts: Mapping[str, Sequence[str | None] | Callable[[], Sequence[str | None]]]) -> None:
        self._texts: dict[str, Sequence[str | None] | Callable[[], Sequence[str | None]]]
        if isinstance(texts, BatchTexts):
            self._texts = dict(texts._texts)
        else:
            self._texts = {name: cache(given) if callable(given) else given for name, given in texts.items()}

    def __getitem__(self, name: str) -> Sequence[str | None]:
        texts = self._texts[name]
        return texts() if callable(texts) else texts

    def __setitem__(self, name: str, texts: Sequence[str | None]) -> None:
        self._texts[name] = texts

    def __delitem__(self, name: str) -> None:
        del self._texts[name]

    def __contains__(self, name: object) -> bool:
        return name in self._texts

    def __iter__(self) -> Iterator[str]:
        return iter(self._texts)

    def __len__(self) -> int:
        return len(self._texts)

    def __or__(self, others: Mapping[str, Sequence[str | None]]) -> BatchTexts:
        return BatchTexts({**self._texts, **others})

    def take(self, rows: Ints) -> BatchTexts:
        """The texts of the requests *rows*, in this order."""
        return BatchTexts({name: partial(self._taken, name, rows) for name in self})

    def _taken(self, name: str, rows: Ints) -> list[str | None]:
        return list(map(self[name].__getitem__, rows.tolist()))


class RecordBatch:
    """Finished requests as columns, in completion order.

    *columns* are the kernel's.  *texts* have a string or None per request: those of :data:`TEXTS`; with ``--export-http-trace``
    also ``trace`` (JSON of :class:`WireTrace`), with a grader also ``grade``, :data:`ANSWER_TEXTS` where an exporter has
    ``answers``, where the data set has settings that yield ``settings``: as they were sent, as JSON, secrets redacted, and
    where it has sources ``source``: ``Turn.source`` as JSON; with sites :data:`SITE`.
    *valid* marks requests that count for latency and throughput; the rest failed.

    A batch that exporters and hooks get has its metrics, too: *values* by tag in base units (NaN absent), *metrics* their
    declarations, *cut_off* by tag of a duration the time so far of requests that were cut off in flight (not in *values*),
    *bounds* by tag those of values that are estimates.
    """

    def __init__(
        self, columns: Mapping[str, Column], valid: NDArray[np.bool_], texts: Mapping[str, Sequence[str | None]] | None = None,
        values: Mapping[str, Column] | None = None, metrics: Mapping[str, MetricDeclaration] | None = None,
        cut_off: Mapping[str, Floats] | None = None, *, resolve: Callable[[str], Column] | None = None,
        bounds: Mapping[str, Bounds] | None = None,
    ) -> None:  # fmt: skip
        self.columns, self.valid, self.texts = dict(columns), valid, BatchTexts(texts or {})
        self.values, self.metrics, self.cut_off, self.bounds = values or {}, metrics or {}, cut_off or {}, bounds or {}
        self._resolve = resolve

    def with_metrics(
        self, values: Mapping[str, Column], metrics: Mapping[str, MetricDeclaration],
        cut_off: Mapping[str, Floats] | None = None, bounds: Mapping[str, Bounds] | None = None,
    ) -> RecordBatch:  # fmt: skip
        """The same requests with their metrics."""
        return RecordBatch(self.columns, self.valid, self.texts, values, metrics, cut_off, bounds=bounds)

    @property
    def batch(self) -> RecordBatch:
        """The batch itself, for exporters written when ``Scored`` held it apart from its metrics."""
        return self

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
        if name in _KNOWN:
            return self.columns[_KNOWN[name]]
        if self._resolve is not None:
            return self._resolve(name)
        raise KeyError(f"no column {name!r}; a metric may read the kernel's columns and the tags in its 'needs'")

    def viewed(self, resolve: Callable[[str], Column], bounds: Mapping[str, Bounds] | None = None) -> RecordBatch:
        """The same batch, with *resolve* for names that are no columns: the metrics that a metric needs, and their *bounds*."""
        return RecordBatch(self.columns, self.valid, self.texts, resolve=resolve, bounds=bounds)

    def ends(self, name: str) -> tuple[Column, Column] | None:
        """The least and the greatest that a column, or a needed metric, may be; None where all its values are known."""
        if name in self.bounds:
            return self.bounds[name].low, self.bounds[name].high
        low, high = INTERVALS.get(name, ("", ""))
        return (self.columns[low], self.columns[high]) if low in self.columns else None

    def replaced(self, columns: Mapping[str, Column]) -> RecordBatch:
        """The same requests with other values of these columns, or needed metrics."""
        return RecordBatch({**self.columns, **columns}, self.valid, self.texts, resolve=self._resolve)

    def take(self, rows: Ints) -> RecordBatch:
        """The requests *rows*, in this order."""
        columns = {name: _taken(column, rows) for name, column in self.columns.items()}
        values = {tag: _taken(column, rows) for tag, column in self.values.items()}
        cut_off = {tag: column[rows] for tag, column in self.cut_off.items()}
        bounds = {tag: Bounds(*(_taken(part, rows) for part in astuple(column))) for tag, column in self.bounds.items()}
        return RecordBatch(columns, self.valid[rows], self.texts.take(rows), values, self.metrics, cut_off, bounds=bounds)

    def select(self, mask: NDArray[np.bool_]) -> RecordBatch:
        """The requests where *mask* is true."""
        return self.take(np.flatnonzero(mask).astype(np.int64))


class Scored(RecordBatch):
    """A batch with its metrics under its former name: a :class:`RecordBatch` has both now."""

    def __init__(
        self, batch: RecordBatch, values: Mapping[str, Column], metrics: Mapping[str, MetricDeclaration],
        cut_off: Mapping[str, Floats] | None = None,
    ) -> None:  # fmt: skip
        super().__init__(batch.columns, batch.valid, batch.texts, values, metrics, cut_off)


__all__ = [
    "ABSENT", "ANSWER_TEXTS", "BOUND_COLUMNS", "GRADE_COLUMNS", "LIST_COLUMNS", "NUMBERS", "POLL_GAP", "RECONNECTS", "REPEAT",
    "SITE", "TEXTS", "TREE_COLUMNS", "TREE_TEXTS",
    "BatchTexts", "Bounds", "Column", "Floats", "Ints", "JournalColumns", "Leg", "Ragged", "RecordBatch", "Row", "WireTrace",
    "integers", "ragged", "reconnects",
]  # fmt: skip
