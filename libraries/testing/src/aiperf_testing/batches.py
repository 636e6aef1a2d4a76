"""Batches of made-up requests, for tests of metrics and exporters."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from aiperf.rundir import journal
from aiperf.sdk.columns import NUMBERS, TREE_COLUMNS, Column, Ragged, RecordBatch, ragged
from aiperf.sdk.metric import Metric

_TEXTS = ("conversation_id", "request_id", "session_id", "model", "url", "worker", "finish_reason")
_NS_PER_MS = 1_000_000.0


class _Draws:
    """What is drawn for *count* made-up requests: every fourth failed."""

    def __init__(self, count: int, seed: int) -> None:
        self.count, self.rows = count, np.arange(count, dtype=np.float64)
        self.failed = self.rows % 4 == 3
        self._generator = np.random.Generator(np.random.Philox(seed))

    def uniform(self, low: float, high: float, count: int | None = None) -> Any:
        return self._generator.uniform(low, high, self.count if count is None else count)

    def after(self, base: Any, low_ms: float, high_ms: float) -> Any:
        return np.rint(base + self.uniform(low_ms, high_ms) * _NS_PER_MS)

    def unless_failed(self, values: Any) -> Any:
        return np.where(self.failed, np.nan, values)


def sample_batch(count: int = 24, seed: int = 7, numbers: Iterable[str] = ()) -> RecordBatch:
    """*count* requests: most valid, every fourth failed early, some without due time or reasoning.

    The batch has every column and text that the kernel promises.  *numbers*: names of an endpoint's ``numbers``, which some
    answers have.
    """
    draws = _Draws(count, seed)
    rows, failed = draws.rows, draws.failed
    columns: dict[str, Column] = {name: np.full(count, np.nan) for name in NUMBERS}
    columns |= _identities(draws)
    columns |= _times(draws)
    output = np.rint(draws.uniform(5, 60))
    columns |= _due(draws, columns["started_ns"])
    columns |= _tokens(draws, output)
    columns |= _usage(draws, output)
    columns |= _connections(draws)
    columns |= _media_and_prefixes(draws)
    columns |= _grades(draws)
    columns |= {name: draws.unless_failed(np.where(rows % 5 == 1, np.nan, 1.5 + rows)) for name in numbers}
    error = '{"message":"busy","type":"Service Unavailable","code":503}'
    texts: dict[str, list[str | None]] = {name: [f"{name}-{i}" for i in range(count)] for name in _TEXTS}
    texts["error"] = [error if fault else None for fault in failed]
    texts["task"] = [f"task-{i % 3}" if i % 5 else None for i in range(count)]
    return RecordBatch(columns, ~failed, texts)


def _identities(draws: _Draws) -> dict[str, Column]:
    """Which requests they are, where they went, and how they ended."""
    rows, failed, none = draws.rows, draws.failed, np.zeros(draws.count)
    return {
        "n": rows,
        "session": rows // 2,
        "turn": rows % 2,
        "entry": rows % 5,
        "phase": none,
        "shard": rows % 2,
        "request": rows // 2,
        "url": none,
        "model": none,
        "outcome": np.where(failed, journal.ERROR, journal.COMPLETED).astype(np.float64),
        "status": np.where(failed, 503.0, 200.0),
        "fault": np.where(failed, rows % 3, np.nan),
        "finish": draws.unless_failed(np.full(draws.count, 2.0)),
    }


def _times(draws: _Draws) -> dict[str, Column]:
    """The stamps of the requests, and the instants of their content."""
    count, failed = draws.count, draws.failed
    started = np.rint(np.cumsum(draws.uniform(1, 5)) * _NS_PER_MS)
    connected, sent = draws.after(started, 0.01, 1), draws.after(started, 1, 2)
    sent_end, ack = draws.after(sent, 0.01, 0.1), draws.after(sent, 3, 5)
    first = draws.after(ack, 5, 9)
    steps = [np.rint(np.cumsum(draws.uniform(1, 4, 2 + i % 5)) * _NS_PER_MS) for i in range(count)]
    instants = [[] if failed[i] else [float(first[i]), *(first[i] + steps[i]).tolist()] for i in range(count)]
    gaps = [np.diff(times).tolist() for times in instants]
    last = np.array([times[-1] if times else np.nan for times in instants])
    shown = draws.unless_failed(first)
    return {
        "started_ns": started,
        "connected_ns": connected,
        "sent_ns": sent,
        "sent_end_ns": sent_end,
        "ack_ns": draws.unless_failed(ack),
        "first_byte_ns": shown,
        "last_byte_ns": last,
        "ended_ns": np.where(failed, ack, last + 0.1 * _NS_PER_MS),
        "first_token_ns": shown,
        "second_token_ns": np.array([times[1] if times else np.nan for times in instants]),
        "first_output_ns": shown,
        "last_token_ns": last,
        "first_event_ns": draws.unless_failed(first - 0.5 * _NS_PER_MS),
        "last_event_ns": draws.unless_failed(last),
        "events": np.where(failed, 0.0, np.array([len(times) + 2.0 for times in instants])),
        "reads": np.where(failed, 1.0, np.array([float(len(times)) for times in instants])),
        "unreadable": np.zeros(count),
        "coalesced": np.zeros(count),
        "turnaround_ns": np.full(count, np.nan),
        "chunk_ns": ragged(instants, instants),
        "gap_ns": ragged(gaps, [times[1:] for times in instants]),
        "piece_count": ragged([[1.0] * len(times) for times in instants], instants),
    }


def _due(draws: _Draws, started: Any) -> dict[str, Column]:
    """When the requests were due, and how long a limit held them; some belong to a closed loop."""
    closed = draws.rows % 5 == 4
    return {
        "due_ns": np.where(closed, np.nan, draws.after(started, -0.5, 0)),
        "held_ns": np.where(closed, np.nan, 0.0),
    }


def _tokens(draws: _Draws, output: Any) -> dict[str, Column]:
    """Tokens as we count them."""
    rows = draws.rows
    return {
        "input_tokens": np.rint(draws.uniform(10, 500)),
        "output_tokens": draws.unless_failed(output),
        "reasoning_tokens": draws.unless_failed(_reasoning(draws)),
        "requested_tokens": np.where(rows % 6 == 5, np.nan, 64.0),
        "first_tokens": draws.unless_failed(np.where(rows % 4 == 1, 3.0, np.nan)),
    }


def _reasoning(draws: _Draws) -> Any:
    return np.where(draws.rows % 3 == 0, 4.0, np.nan)


def _usage(draws: _Draws, output: Any) -> dict[str, Column]:
    """Tokens as the server counts them; some answers lack some counts."""
    rows, reasoning = draws.rows, _reasoning(draws)
    columns = {
        "usage_prompt_tokens": np.rint(draws.uniform(10, 500)),
        "usage_completion_tokens": output + np.nan_to_num(reasoning),
        "usage_total_tokens": np.rint(draws.uniform(100, 900)),
        "usage_reasoning_tokens": reasoning,
        "usage_cached_tokens": np.where(rows % 2 == 0, 8.0, np.nan),
        "usage_cache_write_tokens": np.where(rows % 2 == 0, 5.0, np.nan),
        "usage_cache_miss_tokens": np.where(rows % 2 == 0, 3.0, np.nan),
        "usage_prompt_audio_tokens": np.where(rows % 3 == 0, 11.0, np.nan),
        "usage_completion_audio_tokens": np.where(rows % 3 == 1, 9.0, np.nan),
        "usage_accepted_tokens": np.where(rows % 4 == 0, 6.0, np.nan),
        "usage_rejected_tokens": np.where(rows % 4 == 0, 2.0, np.nan),
        "usage_tool_tokens": np.where(rows % 5 == 0, 7.0, np.nan),
        "usage_audio_s": np.where(rows % 3 == 0, 1.25, np.nan),
    }
    return {name: draws.unless_failed(column) for name, column in columns.items()}


def _connections(draws: _Draws) -> dict[str, Column]:
    """Bytes, and the connections that carried them."""
    rows = draws.rows
    return {
        "bytes_sent": np.rint(draws.uniform(100, 900)),
        "bytes_received": np.where(draws.failed, 40.0, np.rint(draws.uniform(900, 9000))),
        "dns_ns": np.zeros(draws.count),
        "connect_ns": np.where(rows < 4, 90_000.0, 0.0),
        "tls_ns": np.zeros(draws.count),
        "reused": (rows >= 4).astype(np.float64),
        "reconnected": (rows == 9).astype(np.float64),
        "resent": (rows == 8).astype(np.float64),
    }


def _media_and_prefixes(draws: _Draws) -> dict[str, Column]:
    """What the data set says of the requests."""
    rows = draws.rows
    return {
        "images": np.where(rows % 3 == 1, 2.0, 0.0),
        "audio_s": np.where(rows % 3 == 2, 2.5 + rows, np.nan),
        "prefix_blocks": np.where(rows % 4 == 3, np.nan, 3.0 + rows % 5),
        "prefix_hits": np.where(rows % 4 == 3, np.nan, 1.0 + rows % 3),
    }


def _grades(draws: _Draws) -> dict[str, Column]:
    """What a grader says of the answers."""
    rows, ungraded = draws.rows, draws.rows % 7 == 6
    return {
        "graded": np.where(draws.failed, 0.0, np.where(ungraded, np.nan, 1.0)),
        "correct": draws.unless_failed(np.where(ungraded, np.nan, rows % 3 != 0)),
        "unparsed": draws.unless_failed(np.where(ungraded, np.nan, rows % 6 == 0)),
        "score": draws.unless_failed(np.where(ungraded, np.nan, np.where(rows % 3 != 0, 1.0, 0.5))),
    }


def busy_batch(count: int = 60) -> RecordBatch:
    """Requests of every outcome, to three URLs; some never ended."""
    batch = sample_batch(count, seed=3)
    rows = batch["n"]
    outcome = batch["outcome"].copy()
    outcome[rows % 7 == 2], outcome[rows % 11 == 5] = journal.ABORTED, journal.UNFINISHED
    columns = {**batch.columns, "outcome": outcome, "url": rows % 3}
    columns["ended_ns"] = np.where(rows % 22 == 5, np.nan, batch["ended_ns"])
    columns["first_token_ns"] = np.where(rows % 14 == 2, np.nan, batch["first_token_ns"])
    columns["fault"] = np.where(outcome == journal.ERROR, rows // 4 % 3, np.nan)
    return RecordBatch(columns, outcome == journal.COMPLETED, batch.texts)


def absent(batch: RecordBatch) -> RecordBatch:
    """The same requests with only their identities known."""
    known = ("n", "session", "turn", "entry", "phase", "outcome", "shard", "request", "url", "model", *TREE_COLUMNS)
    none: list[list[float]] = [[] for _ in range(len(batch))]
    columns: dict[str, Column] = {
        name: column if name in known else ragged(none, none) if isinstance(column, Ragged) else np.full(len(batch), np.nan)
        for name, column in batch.columns.items()
    }
    return RecordBatch(columns, batch.valid, batch.texts)


def columns_of(metrics: Iterable[Metric], batch: RecordBatch) -> dict[str, Column]:
    """The columns of *metrics*, unmasked; a metric comes after the metrics that it needs."""
    values: dict[str, Column] = {}
    for metric in metrics:
        allowed = {tag: values[tag] for tag in metric.needs if tag not in batch.columns}
        values[metric.tag] = metric.column(batch.viewed(allowed.__getitem__))
    return values


def scored(metrics: Iterable[Metric], batch: RecordBatch) -> RecordBatch:
    """The batch with its metrics' values, as an exporter gets it."""
    metrics = tuple(metrics)
    return batch.with_metrics(columns_of(metrics, batch), {metric.tag: metric for metric in metrics})


def assert_same(left: Mapping[str, Column] | Column, right: Mapping[str, Column] | Column, about: str) -> None:
    """Equal columns, absent where absent."""
    if isinstance(left, Mapping) or isinstance(right, Mapping):
        assert isinstance(left, Mapping) and isinstance(right, Mapping) and left.keys() == right.keys(), (
            f"{about}: the results have other keys"
        )
        for tag in left:
            assert_same(left[tag], right[tag], f"{tag}: {about}")
    elif isinstance(left, Ragged) or isinstance(right, Ragged):
        assert isinstance(left, Ragged) and isinstance(right, Ragged), f"{about}: a list here, a value there"
        _check_equal(left.offsets - left.offsets[0], right.offsets - right.offsets[0], f"{about}: offsets of lists")
        _check_equal(left.values, right.values, about)
        _check_equal(left.at_ns, right.at_ns, f"{about}: times of lists")
    else:
        _check_equal(left, right, about)


def _check_equal(left: Any, right: Any, about: str) -> None:
    assert len(left) == len(right), f"{about}: {len(left)} values came where {len(right)} were expected"
    other = np.flatnonzero(~((left == right) | ((left != left) & (right != right))))  # NaN equals NaN
    first = other[0] if len(other) else 0
    assert not len(other), (
        f"{about}: value {first} is {left[first]} where {right[first]} was expected, as in the whole batch"
    )


def taken(column: Column, rows: Any) -> Column:
    """The column of these requests, in this order."""
    return column.take(rows) if isinstance(column, Ragged) else column[rows]
