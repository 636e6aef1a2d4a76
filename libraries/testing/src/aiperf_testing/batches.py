"""Batches of made-up requests, for tests of metrics and exporters."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from aiperf.rundir import journal
from aiperf.sdk.columns import NUMBERS, Column, Ragged, RecordBatch, ragged
from aiperf.sdk.metric import Metric

_TEXTS = ("conversation_id", "request_id", "session_id", "model", "url", "worker", "finish_reason")
_MS = 1_000_000.0


def sample_batch(count: int = 24, seed: int = 7, numbers: Iterable[str] = ()) -> RecordBatch:
    """*count* requests: most valid, every fourth failed early, some without due time or reasoning.

    The batch has every column and text that the kernel promises.  *numbers*: names of an endpoint's ``numbers``, which some
    answers have.
    """
    draw = np.random.Generator(np.random.Philox(seed))
    rows = np.arange(count, dtype=np.float64)
    failed = rows % 4 == 3

    def after(base: Any, low_ms: float, high_ms: float) -> Any:
        return np.rint(base + draw.uniform(low_ms, high_ms, count) * _MS)

    def unless_failed(values: Any) -> Any:
        return np.where(failed, np.nan, values)

    started = np.rint(np.cumsum(draw.uniform(1, 5, count)) * _MS)
    connected, sent = after(started, 0.01, 1), after(started, 1, 2)
    sent_end, ack = after(sent, 0.01, 0.1), after(sent, 3, 5)
    first = after(ack, 5, 9)
    steps = [np.rint(np.cumsum(draw.uniform(1, 4, 2 + i % 5)) * _MS) for i in range(count)]
    instants = [[] if failed[i] else [float(first[i]), *(first[i] + steps[i]).tolist()] for i in range(count)]
    gaps = [np.diff(times).tolist() for times in instants]
    last = np.array([times[-1] if times else np.nan for times in instants])
    reasoning = np.where(rows % 3 == 0, 4.0, np.nan)
    output = np.rint(draw.uniform(5, 60, count))
    columns: dict[str, Column] = {name: np.full(count, np.nan) for name in NUMBERS}
    columns |= {
        "n": rows,
        "session": rows // 2,
        "turn": rows % 2,
        "entry": rows % 5,
        "phase": np.zeros(count),
        "outcome": np.where(failed, journal.ERROR, journal.COMPLETED).astype(np.float64),
        "due_ns": np.where(rows % 5 == 4, np.nan, after(started, -0.5, 0)),
        "held_ns": np.where(rows % 5 == 4, np.nan, 0.0),
        "started_ns": started,
        "connected_ns": connected,
        "sent_ns": sent,
        "sent_end_ns": sent_end,
        "ack_ns": unless_failed(ack),
        "first_byte_ns": unless_failed(first),
        "last_byte_ns": last,
        "ended_ns": np.where(failed, ack, last + 0.1 * _MS),
        "first_token_ns": unless_failed(first),
        "second_token_ns": np.array([times[1] if times else np.nan for times in instants]),
        "first_output_ns": unless_failed(first),
        "unreadable": np.zeros(count),
        "finish": unless_failed(np.full(count, 2.0)),
        "last_token_ns": last,
        "status": np.where(failed, 503.0, 200.0),
        "input_tokens": np.rint(draw.uniform(10, 500, count)),
        "output_tokens": unless_failed(output),
        "reasoning_tokens": unless_failed(reasoning),
        "requested_tokens": np.where(rows % 6 == 5, np.nan, 64.0),
        "usage_prompt_tokens": unless_failed(np.rint(draw.uniform(10, 500, count))),
        "usage_completion_tokens": unless_failed(output + np.nan_to_num(reasoning)),
        "usage_total_tokens": unless_failed(np.rint(draw.uniform(100, 900, count))),
        "usage_reasoning_tokens": unless_failed(reasoning),
        "usage_cached_tokens": unless_failed(np.where(rows % 2 == 0, 8.0, np.nan)),
        "usage_cache_write_tokens": unless_failed(np.where(rows % 2 == 0, 5.0, np.nan)),
        "usage_cache_miss_tokens": unless_failed(np.where(rows % 2 == 0, 3.0, np.nan)),
        "usage_prompt_audio_tokens": unless_failed(np.where(rows % 3 == 0, 11.0, np.nan)),
        "usage_completion_audio_tokens": unless_failed(np.where(rows % 3 == 1, 9.0, np.nan)),
        "usage_accepted_tokens": unless_failed(np.where(rows % 4 == 0, 6.0, np.nan)),
        "usage_rejected_tokens": unless_failed(np.where(rows % 4 == 0, 2.0, np.nan)),
        "usage_tool_tokens": unless_failed(np.where(rows % 5 == 0, 7.0, np.nan)),
        "usage_audio_s": unless_failed(np.where(rows % 3 == 0, 1.25, np.nan)),
        "bytes_sent": np.rint(draw.uniform(100, 900, count)),
        "bytes_received": np.where(failed, 40.0, np.rint(draw.uniform(900, 9000, count))),
        "dns_ns": np.zeros(count),
        "connect_ns": np.where(rows < 4, 90_000.0, 0.0),
        "tls_ns": np.zeros(count),
        "reused": (rows >= 4).astype(np.float64),
        "reconnected": (rows == 9).astype(np.float64), "resent": (rows == 8).astype(np.float64),
        "shard": rows % 2,
        "request": rows // 2,
        "url": np.zeros(count),
        "model": np.zeros(count),
        "chunk_ns": ragged(instants, instants),
        "gap_ns": ragged(gaps, [times[1:] for times in instants]),
        "piece_count": ragged([[1.0] * len(times) for times in instants], instants),
        "first_tokens": unless_failed(np.where(rows % 4 == 1, 3.0, np.nan)),
        "fault": np.where(failed, rows % 3, np.nan),
        "coalesced": np.zeros(count),
        "turnaround_ns": np.full(count, np.nan),
        "reads": np.where(failed, 1.0, np.array([float(len(times)) for times in instants])),
        "images": np.where(rows % 3 == 1, 2.0, 0.0),
        "prefix_blocks": np.where(rows % 4 == 3, np.nan, 3.0 + rows % 5),
        "prefix_hits": np.where(rows % 4 == 3, np.nan, 1.0 + rows % 3),
        "audio_s": np.where(rows % 3 == 2, 2.5 + rows, np.nan),
        "events": np.where(failed, 0.0, np.array([len(times) + 2.0 for times in instants])),
        "first_event_ns": unless_failed(first - 0.5 * _MS),
        "last_event_ns": unless_failed(last),
        "graded": np.where(failed, 0.0, np.where(rows % 7 == 6, np.nan, 1.0)),
        "correct": unless_failed(np.where(rows % 7 == 6, np.nan, rows % 3 != 0)),
        "unparsed": unless_failed(np.where(rows % 7 == 6, np.nan, rows % 6 == 0)),
        "score": unless_failed(np.where(rows % 7 == 6, np.nan, np.where(rows % 3 != 0, 1.0, 0.5))),
    }
    columns |= {name: unless_failed(np.where(rows % 5 == 1, np.nan, 1.5 + rows)) for name in numbers}
    error = '{"message":"busy","type":"Service Unavailable","code":503}'
    texts: dict[str, list[str | None]] = {name: [f"{name}-{i}" for i in range(count)] for name in _TEXTS}
    texts["error"] = [error if fault else None for fault in failed]
    return RecordBatch(columns, ~failed, texts)


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
    known = ("n", "session", "turn", "entry", "phase", "outcome", "shard", "request", "url", "model")
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
