"""How fast a finished run becomes a report: ``aiperf report`` over made-up columns, and over made-up segments.

usage: reduce.py [columns] [report] [segments] [plain] [--requests N] [--chunks N] [--profile FILE]

columns: 1,000,000 requests of 128 chunks that are reduced already, summarised at the summary level.  report: 100,000 of them
with the per-request files.  segments: raw answers in the chat dialect, decoded and counted.  plain: answers without
streaming, a word for each chunk.  The numbers are those of the whole program, start included: wall and CPU time, and its
largest resident size.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from array import array
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
from aiperf import Conversation, Turn
from aiperf.registry.registry import Registry
from aiperf.registry.third_party import load
from aiperf.rundir import journal
from aiperf.rundir.journal import RunClock, RunEnd, save_run
from aiperf.rundir.store_writer import StoreWriter
from aiperf.sdk.columns import NUMBERS, Ints
from aiperf.sdk.options import EncodedOptions
from aiperf.sdk.plan import PhasePlan, Plan
from aiperf.sdk.transport import STREAMED
from aiperf_reducer_columns.reduce.batches import StoredBatch
from aiperf_testing.journals import plan_for

CLOCK = RunClock(5_000_000_000_007, 1_700_000_000_000_000_123)
MS = 1_000_000
_BATCH = 2048
_STREAMS = 64
_FRAME = 512
_COLUMNS_BYTES = 64 << 20
_EXTRA = "aiperf-exporter-parquet"
WORDS = (" the", " of", " load", " server", " time", " token", ",", " first", " and", " answer", ".", " a", " wait")


class Cost(NamedTuple):
    wall_s: float
    cpu_s: float
    peak_mb: float


def plan(directory: Path, requests: int, level: str, shards: int = 1) -> Plan:
    """A streamed chat run with the metrics and exporters of a default install; as many workers and reducers as *shards*."""
    registry = Registry.discover()
    extra = [f"exporters:{one.name}" for one in registry.all("exporters") if one.distribution == _EXTRA]
    registry = registry.choosing(pins={}, disabled=extra)

    def one(category: str, name: str) -> Any:
        return registry.ref(category, name)

    metrics, exporters = (tuple(one.ref for one in registry.all(category)) for category in ("metrics", "exporters"))
    plain = [one for category in ("metrics", "exporters") for one in registry.all(category) if one.options_model]
    options = {each.key: EncodedOptions.of(registry.load_options_model(each)()) for each in plain}
    return plan_for(
        directory, endpoint=one("endpoints", "chat"), tokenizer=one("tokenizers", "builtin"), tokenizer_name="builtin",
        transport=one("transports", "kernel"), dataset=one("datasets", "synthetic"), metrics=metrics, exporters=exporters,
        phases=(PhasePlan("profiling", "profiling", 0, "burst", request_count=requests, concurrency=_STREAMS, entries=1),),
        export_level=level, options=options, urls=("http://127.0.0.1:8000",), workers=shards, reducers=shards,
    )  # fmt: skip


def begun(directory: Path, requests: int, level: str, shards: int = 1) -> Plan:
    """A run's directory with its plan and data set; *requests* in all."""
    made = plan(directory, requests, level, shards)
    Path(made.output.journal).mkdir(parents=True)
    sent = {shard: len(range(shard, requests, shards)) for shard in range(shards)}
    save_run(Path(made.output.journal), made, CLOCK, RunEnd(requests=sent))
    endpoint = load(made.plugins.endpoint)(made.plugins.options_of(made.plugins.endpoint))
    conversation = Conversation("session_000000", (Turn(("word " * 64,), max_tokens=128),))
    with StoreWriter(Path(made.output.journal)) as store:
        store.add(conversation, [[endpoint.encode(turn)] for turn in conversation.turns], [64])
    return made


def columns(directory: Path, requests: int, chunks: int, level: str = "summary", *, rated: bool = False) -> None:
    """A run that is reduced: columns alone.  *rated*: arrivals were due, prompts differ, and a thousandth failed."""
    folder = Path(begun(directory, requests, level).output.journal)
    draw = np.random.default_rng(1)
    file, number = journal.columns_path(folder, 0, 0).open("wb"), 0
    end = {"phase": 0, "event": "end", "at_ns": 0}
    for first in range(0, requests, _BATCH):
        stored, last_ns = batch(np.arange(first, min(requests, first + _BATCH)), chunks, draw, rated=rated)
        if first == 0:
            stored.events.append((0, journal.PHASE, {"phase": 0, "event": "begin", "at_ns": CLOCK.started_mono_ns}))
        if first + stored.count == requests:
            stored.events.append((0, journal.PHASE, {**end, "at_ns": CLOCK.started_mono_ns + last_ns}))
        file.write(journal.pack(journal.COLUMNS, msgspec.msgpack.encode(stored), 0, 0, stored.count))
        if file.tell() > _COLUMNS_BYTES:
            file.close()
            number += 1
            file = journal.columns_path(folder, 0, number).open("wb")
    file.close()


def batch(rows: Ints, chunks: int, draw: np.random.Generator, *, rated: bool = False) -> tuple[StoredBatch, int]:
    """Requests with these numbers, *chunks* chunks each, and the last instant, in ns since the run's start.

    *rated*: as that of :func:`columns`; else all are good.
    """
    count = len(rows)
    started = (rows // _STREAMS) * 700 * MS + rows % _STREAMS * 1000
    gaps = np.rint(draw.gamma(8.0, 0.6 * MS, (count, chunks))).astype(np.int64)
    gaps[:, 0] += 50 * MS
    stamps = started[:, None] + np.cumsum(gaps, axis=1)
    last = stamps[:, -1]
    values: dict[str, Any] = dict.fromkeys(NUMBERS, 0.0)
    unsaid = [name for name in NUMBERS if name.startswith("usage_")]
    absent = ("due_ns", "held_ns", "reasoning_tokens", "fault", "first_tokens", "unreadable_ns")
    values |= dict.fromkeys((*absent, *unsaid), np.nan)
    values |= {
        "n": rows, "session": rows, "started_ns": started, "connected_ns": started, "sent_ns": started + 1000,
        "sent_end_ns": started + 2000, "ack_ns": stamps[:, 0], "first_byte_ns": stamps[:, 0], "last_byte_ns": last,
        "ended_ns": last, "first_token_ns": stamps[:, 0], "second_token_ns": stamps[:, 1], "first_output_ns": stamps[:, 0],
        "last_token_ns": last, "status": 200, "input_tokens": 64, "output_tokens": chunks, "requested_tokens": chunks,
        "usage_prompt_tokens": 64, "usage_completion_tokens": chunks, "usage_total_tokens": 64 + chunks,
        "bytes_sent": 600, "bytes_received": 180 * chunks, "reused": 1, "request": rows, "reads": chunks,
    }  # fmt: skip
    errors: dict[int, str] = {}
    if rated:
        failed = rows % 1000 == 7
        errors = dict.fromkeys(np.flatnonzero(failed).tolist(), '{"message":"busy","type":"Overloaded","code":503}')
        values |= {
            "due_ns": started - rows % 7 * MS, "held_ns": rows % 7 * MS, "input_tokens": 64 + rows % 900,
            "status": np.where(failed, 503, 200), "outcome": np.where(failed, journal.ERROR, journal.COMPLETED),
            "fault": np.where(failed, 0.0, np.nan),
        }  # fmt: skip
    table = np.array([np.broadcast_to(np.asarray(values[name], dtype=np.float64), count) for name in NUMBERS])
    kinds, lengths = b"\1" * (count * chunks), np.full(count, chunks)
    stored = StoredBatch(count, table.tobytes(), stamps.tobytes(), kinds, lengths.tobytes(), errors=errors, events=[])
    return stored, int(last.max())


def segments(directory: Path, requests: int, chunks: int, level: str = "summary") -> None:
    """A run of which nothing is reduced: 64 streams at a time, answers of *chunks* words, as vLLM writes them."""
    head = (
        'data: {"id":"chatcmpl-7f3d1b9e2a4c4f0e8f0a6f1d2c3b4a59","object":"chat.completion.chunk","created":1700000000,'
        '"model":"model","choices":[{"index":0,'
    )
    bodies = [
        f'{head}"delta":{{"content":"{WORDS[i % len(WORDS)]}"}},"logprobs":null,"finish_reason":null}}]}}\n\n'.encode()
        for i in range(chunks)
    ]
    bodies[0] = bodies[0].replace(b'"delta":{', b'"delta":{"role":"assistant",')
    bodies[-1] = bodies[-1].replace(b'"finish_reason":null', b'"finish_reason":"length"')
    bodies[-1] += (
        b'data: {"id":"chatcmpl-7f3d1b9e2a4c4f0e8f0a6f1d2c3b4a59","object":"chat.completion.chunk","created":1700000000,'
        b'"model":"model","choices":[],"usage":{"prompt_tokens":64,"total_tokens":192,"completion_tokens":128}}\n\n'
        b"data: [DONE]\n\n"
    )
    _write(Path(begun(directory, requests, level).output.journal), requests, bodies, STREAMED)


def plain(directory: Path, requests: int, chunks: int, level: str = "summary") -> None:
    """A run of which nothing is reduced: answers of *chunks* words without streaming, 64 at a time."""
    text = "".join(WORDS[i % len(WORDS)] for i in range(chunks))
    body = (
        '{"id":"chatcmpl-7f3d1b9e2a4c4f0e8f0a6f1d2c3b4a59","object":"chat.completion","created":1700000000,"model":"model",'
        f'"choices":[{{"index":0,"message":{{"role":"assistant","content":"{text}"}},"finish_reason":"length"}}],'
        f'"usage":{{"prompt_tokens":64,"total_tokens":{64 + chunks},"completion_tokens":{chunks}}}}}'
    )
    _write(Path(begun(directory, requests, level).output.journal), requests, [body.encode()], 0)


def _write(folder: Path, requests: int, bodies: list[bytes], flags: int) -> None:
    """Segments in which every request gets the pieces *bodies*."""
    zero, wall, chunks = CLOCK.started_mono_ns, CLOCK.started_wall_ns, len(bodies)
    sizes = np.array([len(body) for body in bodies])
    number, at, frames = 0, 0, 0
    file = journal.segment_path(folder, 0, 0).open("wb")

    def frame(kind: int, payload: bytes, count: int = 0) -> None:
        nonlocal frames
        file.write(journal.pack(kind, payload, at + zero, at + wall, count, frames))
        frames += 1

    frame(journal.PHASE, msgspec.msgpack.encode({"phase": 0, "event": "begin", "at_ns": zero}))
    for first in range(0, requests, _STREAMS):
        streams = np.arange(first, min(first + _STREAMS, requests))
        sent, done = array("q"), array("q")
        known = {"phase": 0, "entry": 0, "url": 0, "model": 0, "turn": 0, "due_ns": -1, "held_ns": 0, "after": -1}
        for request in streams.tolist():
            row = {**known, "request": request, "n": request, "session": request, "started_ns": zero + at}
            sent.extend(row.get(name, 0) for name in journal.SENT_FIELDS)
        frame(journal.SENT, sent.tobytes(), len(streams))
        for begin in range(0, chunks, max(1, _FRAME // len(streams))):
            some = range(begin, min(begin + max(1, _FRAME // len(streams)), chunks))
            rows = np.zeros((len(some), len(streams), len(journal.CHUNK_FIELDS)), dtype=np.int64)
            instants = at + (50 + 5 * np.array(some)[:, None]) * MS + np.arange(len(streams)) * 1000
            rows[..., 0], rows[..., 1], rows[..., 2] = streams, instants + wall, instants + zero + 2000
            rows[..., 3] = sizes[list(some)][:, None]
            frame(journal.CHUNKS, rows.tobytes() + b"".join(bodies[i] * len(streams) for i in some), rows[..., 0].size)
        at += (50 + 5 * chunks) * MS
        times = {"ack_ns": at - 5 * chunks * MS, "ended_ns": at, "connected_ns": at, "sent_ns": at, "sent_end_ns": at}
        for request in streams.tolist():
            row = {"request": request, "outcome": journal.COMPLETED, "status": 200, "flags": flags}
            row |= {name: zero + value for name, value in times.items()}
            done.extend(row.get(name, 0) for name in journal.DONE_FIELDS)
        frame(journal.DONE, done.tobytes(), len(streams))
        if file.tell() > journal.SEGMENT_BYTES:
            file.close()
            number += 1
            file = journal.segment_path(folder, 0, number).open("wb")
    frame(journal.PHASE, msgspec.msgpack.encode({"phase": 0, "event": "end", "at_ns": zero + at}))
    file.close()


def cost(directory: Path, *more: str, profile: str | None = None) -> Cost:
    """What ``aiperf report`` of the directory costs."""
    words = [sys.executable, *(["-m", "cProfile", "-o", profile] if profile else []), "-m", "aiperf", "report", str(directory)]
    began = time.monotonic()
    process = subprocess.Popen([*words, *more], stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, words)
    return Cost(time.monotonic() - began, used.ru_utime + used.ru_stime, used.ru_maxrss / 1e3)


KINDS: dict[str, tuple[Callable[..., None], int, str]] = {
    "columns": (columns, 1_000_000, "summary"),
    "report": (columns, 100_000, "records"),
    "segments": (segments, 40_000, "summary"),
    "plain": (plain, 200_000, "summary"),
}


def measured(kind: str, requests: int | None = None, chunks: int = 128, profile: str | None = None) -> Cost:
    """Make a directory of that kind and report it."""
    make, usual, level = KINDS[kind]
    with tempfile.TemporaryDirectory(prefix="aiperf-reduce-", dir=os.environ.get("BENCH_DIR")) as folder:
        directory = Path(folder) / "run"
        make(directory, requests or usual, chunks, level)
        return cost(directory, profile=profile)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("kinds", nargs="*", metavar="KIND", help=", ".join(KINDS))
    parser.add_argument("--requests", type=int, help="of each kind (its own number)")
    parser.add_argument("--chunks", type=int, default=128, help="of each request (128)")
    parser.add_argument("--profile", metavar="FILE", help="write what cProfile sees; the times are no measure then")
    options = parser.parse_args()
    for kind in options.kinds or KINDS:
        found = measured(kind, options.requests, options.chunks, options.profile)
        chunks = (options.requests or KINDS[kind][1]) * options.chunks
        print(
            f"{kind}: {found.wall_s:.1f} s wall, {found.cpu_s:.1f} s CPU, {found.peak_mb:.0f} MB,"
            f" {chunks / found.cpu_s:,.0f} chunks per CPU-second"
        )


if __name__ == "__main__":
    main()
