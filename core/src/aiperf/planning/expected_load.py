"""The load that phases are expected to bring, and how many workers and reducers keep pace with it.

Constants are costs that ``benchmarks/scaling.py`` and ``benchmarks/bench.py`` measure on a core of a server of today
(docs/scale.md); a faster machine has cores to spare, and a slower one is told by the verdict on its workers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from aiperf.sdk.plan import PhasePlan

REQUEST_US, CHUNK_US = 35.0, 20.0
"""A worker's processor time for a request without streaming, and for a chunk that has a read of its own."""
WORKER_SHARE = 0.7
"""Of a core that a worker uses at most: beyond it, arrivals wait for each other.  It is 20,000 requests/s."""
SESSIONS_PER_WORKER = 5_000
"""Sessions that one worker holds at a time: what belongs to one is looked for every quarter of a second."""
STREAM_CHUNKS_PER_S = 50.0
"""Chunks that a server sends on each of many streams, where no rate says it: 20 ms between tokens."""
ANSWER_TOKENS = 256.0
"""Length of an answer that nobody has asked for."""
REDUCED_REQUEST_US, REDUCED_CHUNK_US = 28.0, 2.5
"""A reducer's processor time for a request with its rows in files, and for a chunk."""
REDUCER_SHARE = 0.9
"""Of a core that a reducer uses at most.  What it leaves is read behind the load."""
BUSY_WORKER = 1.0, 0.45
"""Of a core that the reducing of a busy worker's journal takes: requests without streaming, and chunks, of which a busy
worker reads several at once."""
_US = 1e-6


class ExpectedLoad(NamedTuple):
    """A phase's load at its highest: requests and chunks per second of all workers together, and sessions at a time.

    chunks_s: 0 without streaming.  sessions: 0 where nothing limits them.
    """

    requests_s: float
    chunks_s: float
    sessions: int

    @property
    def worker_cores(self) -> float:
        """Cores that sending and receiving take."""
        return (self.requests_s * REQUEST_US + self.chunks_s * CHUNK_US) * _US

    @property
    def reducer_cores(self) -> float:
        """Cores that reducing takes."""
        return (self.requests_s * REDUCED_REQUEST_US + self.chunks_s * REDUCED_CHUNK_US) * _US

    @property
    def workers(self) -> int:
        """Workers that keep pace."""
        return max(1, math.ceil(self.worker_cores / WORKER_SHARE - 1e-9), math.ceil(self.sessions / SESSIONS_PER_WORKER))

    def __str__(self) -> str:
        """What is expected, without what is 0."""
        rates = f"{self.requests_s:,.0f} requests/s" + (f" with {self.chunks_s:,.0f} chunks/s" if self.chunks_s else "")
        return f"{rates}, {self.sessions:,} sessions at a time" if self.sessions else rates


def expected_load(phase: PhasePlan, *, streaming: bool, answer_tokens: float | None) -> ExpectedLoad:
    """The load of *phase*.  *answer_tokens*: mean length of the answers asked for; None where the model decides.

    A fixed schedule has none: its rate is unknown until the trace is read.  Sessions without a rate send as their server
    answers, which is unknown, too: each is taken for a stream of STREAM_CHUNKS_PER_S.
    """
    tokens = ANSWER_TOKENS if answer_tokens is None else max(1.0, answer_tokens)
    rate = phase.rate or max((rate for _, rate in phase.rate_series or ()), default=0.0)
    if not rate and phase.replay is not None:
        return ExpectedLoad(0.0, 0.0, phase.concurrency or 0)
    sessions = max(phase.concurrency or 0, phase.users or 0)
    served = (phase.concurrency or math.inf) * STREAM_CHUNKS_PER_S / tokens
    requests_s = (min(rate, served) if streaming else rate) if rate else (served if math.isfinite(served) else 0.0)
    return ExpectedLoad(requests_s, requests_s * tokens if streaming else 0.0, sessions)


def highest(loads: Sequence[ExpectedLoad]) -> ExpectedLoad:
    """The load of which workers have most to do."""
    return max(loads, key=lambda load: (load.workers, load.worker_cores))


def reducers_for(load: ExpectedLoad, workers: int, cpus: int | None, *, forced: bool = False) -> int:
    """Reducers that keep pace, each with the same number of workers' journals, or one less.

    *cpus*: of this machine; reducers take half of what workers leave, since servers and the run itself need some, too.
    None where workers are on machines with an unknown number.  *forced*: somebody asked for so many workers, and expects
    that they are busy; that counts only where reducers are bounded.
    """
    each = load.reducer_cores / workers
    if forced and workers > 1 and cpus is not None:
        each = max(each, BUSY_WORKER[1 if load.chunks_s else 0])
    together = max(1, math.floor(REDUCER_SHARE / each + 1e-9)) if each else workers
    bound = workers if cpus is None else (cpus - workers) // 2
    return max(1, min(math.ceil(workers / together), workers, bound))
