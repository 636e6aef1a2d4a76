"""Runs made up by seed, without a wire: the simulator's engine answers, and its counts and clocks are sampled as in a run.

The engine is a physical model with a queue, batches and a prefix cache.  Its noise (uniform, with pauses), that of the network
(log-normal, with a heavy tail) and that of clocks (wandering, in steps, with glitches) is not the one that verdicts assume.
"""

from __future__ import annotations

import heapq
import math
import random
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from aiperf.sdk.columns import NUMBERS, Floats
from aiperf.sdk.descriptor import PluginRef
from aiperf.sdk.plan import PhasePlan
from aiperf.sdk.series import Line, Moment, Sample, SeriesHeader, SourceHeader, TargetHeader, Value, Window
from aiperf.sdk.summary import Result, SourceSummary
from aiperf.sdk.telemetry import SeriesKind
from aiperf.sdk.verdict import AnswerCounts, Evidence
from aiperf_command_simulate.engine import Engine, EngineModel, Sequence
from aiperf_command_simulate.prefix import block_keys, token_count
from aiperf_command_simulate.slowdown import NEVER, Slowdown
from aiperf_series_by_time import ByTime
from aiperf_testing.plans import sample_plan
from aiperf_testing.verdicts import sample_evidence
from msgspec import Struct, field

S, MS = 1_000_000_000, 1_000_000
TARGET = "http://127.0.0.1:8000/metrics"
ZERO_NS = 777 * S
"""The run's start in the monotonic clock; the engine's clock begins there."""
BEGIN_NS = 2 * S
"""The begin of the phase, after the run's start."""
_INTERVAL_NS = S // 3
_BOUNDS = (0.01, 0.05, 0.1, 0.5, 1.0, 5.0)
_WORDS = [f"w{number:03x}" for number in range(4096)]
_TEMPLATE_TOKENS = 9
_CODES = (0, 1, 4)
"""Reasons of the driver: none, idle, the limit of power."""


class MadeLoad(Struct, frozen=True):
    """rate: requests/s at due times, with *burst* in the shape of gaps (1 is Poisson, more is burstier); else *users* in a
    closed loop.  requests: None sends for *seconds*.  ramp: the load rises to its height over this share of the time.
    turns: of a conversation; system: tokens of a prompt that all share.  sweep: the load doubles half-way.
    """

    seconds: float = 60.0
    rate: float | None = 4.0
    burst: float = 1.0
    users: int = 8
    requests: int | None = None
    ramp: float = 0.0
    sweep: bool = False
    turns: int = 1
    system: int = 0
    prompt: int = 300
    answer: int = 32
    streaming: bool = True
    usage: bool = True
    failing: float = 0.0


class MadeServer(Struct, frozen=True):
    """warm: share of the prompt tokens that another run left in the cache.  tenant: requests/s of others.
    slow: begin, length (s after the begin of the phase) and factor of a slow time.  engine: whose families; "" for none.
    throttled: begin, length and share of a drop of the clock of GPU 0.  gpus: GPUs with samples.
    """

    model: EngineModel = EngineModel(
        prefill_ns=40_000, decode_ns=40 * MS, decode_batch_ns=MS // 2, jitter=0.1, cache_blocks=100_000
    )
    warm: float = 0.0
    tenant: float = 0.0
    slow: tuple[float, float, float] | None = None
    engine: str = "vllm"
    gpus: int = 0
    throttled: tuple[float, float, float] | None = None
    reasons: bool = True


class _Made(Struct):
    """A request of the run; instants in the engine's clock."""

    session: int
    turn: int
    entry: int
    prompt: bytes
    due_ns: int
    mine: bool = True
    first_ns: int = 0
    last_ns: int = 0
    fails: bool = False
    tokens: int = 0


class _Counts(Struct):
    """What the server's page has."""

    requests: int = 0
    prompt: int = 0
    cached: int = 0
    generated: int = 0
    waits: list[float] = field(default_factory=list)
    firsts: list[float] = field(default_factory=list)
    gaps: list[float] = field(default_factory=list)


def made_run(seed: int, load: MadeLoad | None = None, server: MadeServer | None = None) -> Evidence:
    """The evidence of a run with this load on this server."""
    return _Run(seed, load or MadeLoad(), server or MadeServer()).evidence()


class _Run:
    def __init__(self, seed: int, load: MadeLoad, server: MadeServer) -> None:
        self._random, self._load, self._server = random.Random(seed), load, server
        slow = server.slow
        slowdown = NEVER if slow is None else Slowdown(round(slow[0] * S) + BEGIN_NS, round(slow[1] * S), slow[2])
        model = server.model
        model = EngineModel(**{name: getattr(model, name) for name in model.__struct_fields__} | {"slowdown": slowdown})
        self._engine: Engine[_Made] = Engine(model, seed, ZERO_NS)
        self._bodies: dict[int, bytes] = {}
        self._system = self._text(load.system)
        self._begin = ZERO_NS + BEGIN_NS
        self._end = self._begin + round(load.seconds * S)
        self._events: list[tuple[int, int, Callable[[int], None]]] = []
        self._number = self._entries = 0
        self._done: list[tuple[_Made, Sequence[_Made]]] = []
        self._counts, self._submitted = _Counts(), dict[Sequence[_Made], int]()
        self._rows: list[tuple[int, dict[str, float | list[float]]]] = []
        self._sent: dict[int, int] = {}

    def evidence(self) -> Evidence:
        self._schedule()
        self._go()
        return self._made_evidence()

    # The load.

    def _schedule(self) -> None:
        load, at = self._load, float(self._begin)
        if load.rate is None:
            for user in range(load.users):
                delay = load.ramp * load.seconds * user / load.users if load.ramp else 0.002 * user
                self._at(self._begin + round(delay * S), self._session)
        else:
            count = 0
            while at < self._end and (load.requests is None or count < load.requests):
                at += self._gap_s(at) * S
                self._at(round(at), self._session)
                count += 1
        at = float(self._begin - S)
        while self._server.tenant and at < self._end:
            at += self._random.expovariate(self._server.tenant) * S
            self._at(round(at), self._foreign)

    def _gap_s(self, at: float) -> float:
        load, into = self._load, (at - self._begin) / S / self._load.seconds
        rate = (load.rate or 1.0) * (2 if load.sweep and into > 0.5 else 1)
        rate *= min(1.0, 0.1 + into / load.ramp) if load.ramp else 1.0
        return self._random.gammavariate(1 / load.burst, load.burst) / rate

    def _session(self, now: int) -> None:
        number, self._entries = self._entries, self._entries + 1
        if self._load.requests is not None and number >= self._load.requests:
            return
        self._send(_Made(number, 0, number, self._system + self._text(self._length()), now), now)

    def _foreign(self, now: int) -> None:
        self._send(_Made(-1, 0, -1, self._text(self._length()), now, mine=False), now)

    def _length(self) -> int:
        return max(20, round(self._random.gauss(self._load.prompt, self._load.prompt / 10)))

    def _text(self, tokens: int) -> bytes:
        return " ".join(self._random.choices(_WORDS, k=max(0, round(tokens * 4 / 5)))).encode() + b" " if tokens else b""

    def _send(self, made: _Made, now: int) -> None:
        if made.mine and not made.turn:
            self._bodies[made.entry] = b'{"messages":[{"role":"user","content":"%b"}],"model":"m"}' % made.prompt
        made.fails = made.mine and self._random.random() < self._load.failing
        blocks = block_keys(made.prompt, 16)
        if made.mine and self._server.warm:
            self._engine.cache.add(blocks[: self._warm_blocks(len(blocks))])
        sequence = Sequence(made, token_count(made.prompt), max(1, round(self._random.gauss(self._load.answer, 3))), blocks)
        self._submitted[sequence] = now
        self._sent[id(made)] = now
        self._engine.submit(sequence, now)

    def _warm_blocks(self, blocks: int) -> int:
        """Either the beginning of every prompt is in the cache, or all of some."""
        whole = (self._bodies[0][50] & 1) == 0
        if whole:
            return blocks if self._random.random() < self._server.warm else 0
        return math.ceil(blocks * self._server.warm)

    # Time.

    def _at(self, at: int, what: Callable[[int], None]) -> None:
        self._number += 1
        heapq.heappush(self._events, (at, self._number, what))

    def _go(self) -> None:
        for tick in range(-3, round(self._load.seconds * 3) + 1):
            self._at(self._begin + tick * _INTERVAL_NS + self._random.randrange(5 * MS), self._sample)
        self._at(self._begin - 1, self._sample)
        while self._events or self._submitted:
            soon, event = self._engine.next_ns, self._events[0][0] if self._events else None
            if soon is not None and (event is None or soon <= event):
                self._take(soon)
            elif event is not None:
                at, _, what = heapq.heappop(self._events)
                self._take(at)
                what(at)
        self._end = max(self._begin + 1, max((made.last_ns for made, _ in self._done if made.mine), default=self._end))
        self._sample(self._end + 100 * MS)
        self._take(self._end + 200 * MS)
        self._sample(self._end + 200 * MS)

    def _take(self, until: int) -> None:
        for sequence, at in self._engine.advance(until):
            made = sequence.owner
            made.tokens, made.last_ns = made.tokens + 1, at
            self._counts.generated += 1
            if made.tokens == 1:
                made.first_ns = at
                self._admitted(sequence, at)
            if made.tokens >= sequence.want:
                self._ended(sequence, at)

    def _admitted(self, sequence: Sequence[_Made], at: int) -> None:
        submitted = self._submitted[sequence]
        self._counts.waits.append(((sequence.admitted_ns or at) - submitted) / S)
        self._counts.firsts.append((at - submitted) / S)
        self._counts.prompt += sequence.prompt_tokens
        self._counts.cached += sequence.cached_tokens

    def _ended(self, sequence: Sequence[_Made], at: int) -> None:
        made = sequence.owner
        del self._submitted[sequence]
        if made.tokens > 1:
            self._counts.gaps.append((at - made.first_ns) / S / (made.tokens - 1))
        self._counts.requests += 1
        self._done.append((made, sequence))
        if not made.mine:
            return
        if made.turn + 1 < self._load.turns:
            more = made.prompt + self._text(sequence.want) + self._text(self._load.prompt // 4)
            turn = _Made(made.session, made.turn + 1, made.entry, more, at)
            self._at(at + round(self._random.expovariate(2.0) * S), lambda now: self._send(turn, now))
        elif self._load.rate is None and at < self._end:
            self._at(at + 2 * MS, self._session)

    # What is sampled, and what the client sees.

    def _sample(self, now: int) -> None:
        counts, engine = self._counts, self._engine
        rows: dict[str, float | list[float]] = {
            "num_requests_running": len(engine.running), "num_requests_waiting": engine.waiting_count,
            "request_success_total": counts.requests, "prompt_tokens_total": counts.prompt,
            "generation_tokens_total": counts.generated, "prefix_cache_queries_total": counts.prompt,
            "prefix_cache_hits_total": counts.cached, "request_queue_time_seconds": _histogram(counts.waits),
            "inter_token_latency_seconds": _histogram(counts.gaps),
            "time_to_first_token_seconds": _histogram(counts.firsts),
        }  # fmt: skip
        self._rows.append((now, rows))

    def _server_lines(self) -> list[Line]:
        """The page of the engine at each sample."""
        called = _CALLED[self._server.engine]
        names = [name for name in self._rows[0][1] if name in called]
        lines: list[Line] = [_source("server_metrics", TARGET)]
        for number, name in enumerate(names):
            kind = _kind(name)
            lines.append(SeriesHeader(number, called[name], kind, bounds=_BOUNDS if kind is SeriesKind.HISTOGRAM else ()))
        lines += [Sample(self._moment(at), {number: row[name] for number, name in enumerate(names)}) for at, row in self._rows]
        return lines

    def _moment(self, at: int) -> Moment:
        return Moment(at, at, 2 * MS, 0)

    def _gpu_lines(self) -> list[Line]:
        """Clocks that wander in steps of 15 MHz, with glitches; use; and the driver's reasons."""
        draw, lines = np.random.default_rng(self._random.randrange(1 << 30)), list[Line]((_source("gpu_dcgm", "http://gpus"),))
        busy = np.array([row["num_requests_running"] != 0 for _, row in self._rows])
        for gpu in range(self._server.gpus):
            labels = {"gpu": str(gpu), "uuid": f"GPU-{gpu}", "model": "NVIDIA H100", "platform": "nvidia"}
            lines.append(SeriesHeader(5 * gpu, "nvidia_sm_clock", SeriesKind.GAUGE, "MHz", labels))
            lines.append(SeriesHeader(5 * gpu + 1, "nvidia_gpu_utilization", SeriesKind.GAUGE, "%", labels))
            for code in _CODES:
                named = labels | {"code": str(code)}
                number = 5 * gpu + 2 + _CODES.index(code)
                lines.append(SeriesHeader(number, "nvidia_throttle_reasons", SeriesKind.INFO, "", named))
        wander = np.zeros((len(self._rows), self._server.gpus))
        noise = draw.normal(0, 0.004, wander.shape)
        for place in range(1, len(wander)):
            wander[place] = 0.9 * wander[place - 1] + noise[place]
        wild = draw.random() < 0.3
        codes: list[int | None] = [None] * self._server.gpus
        for place, (at, _) in enumerate(self._rows):
            values, ended = dict[int, Value](), list[int]()
            for gpu in range(self._server.gpus):
                low = self._throttled(gpu, at)
                clock = 1980 * (1 + wander[place, gpu]) * (1 - low) * (1 + (draw.uniform(-0.1, 0.1) if wild else 0.0))
                clock = clock * 0.7 if draw.random() < 0.005 else clock
                clock = clock if busy[place] else 345.0
                values |= {5 * gpu: 15.0 * round(clock / 15), 5 * gpu + 1: 97.0 if busy[place] else 0.0}
                code = 4 if low else 0 if busy[place] else 1
                if self._server.reasons and code != codes[gpu]:
                    ended += [] if codes[gpu] is None else [5 * gpu + 2 + _CODES.index(codes[gpu] or 0)]
                    values[5 * gpu + 2 + _CODES.index(code)], codes[gpu] = 1.0, code
            lines.append(Sample(self._moment(at), values, ended=ended))
        return lines

    def _throttled(self, gpu: int, at: int) -> float:
        held = self._server.throttled
        if held is None or gpu:
            return 0.0
        return held[2] if held[0] * S <= at - self._begin < (held[0] + held[1]) * S else 0.0

    def _columns(self) -> dict[str, Floats]:
        done = [(made, sequence) for made, sequence in self._done if made.mine]
        count = len(done)
        draw = np.random.default_rng(self._random.randrange(1 << 30))
        columns = {name: np.full(count, np.nan) for name in NUMBERS}
        sent = np.array([float(self._sent[id(made)] - ZERO_NS) for made, _ in done])
        away = draw.lognormal(math.log(0.3e6), 0.5, count)  # the network, with a heavy tail
        away += np.where(draw.random(count) < 0.01, np.minimum(300e6, 20e6 * draw.pareto(1.5, count)), 0.0)
        first = np.array([float(made.first_ns - ZERO_NS) for made, _ in done]) + away
        last = np.array([float(made.last_ns - ZERO_NS) for made, _ in done]) + draw.lognormal(12.6, 0.5, count)
        last = np.maximum(first, last)
        failed = np.array([made.fails for made, _ in done])
        prompt = np.array([float(sequence.prompt_tokens) for _, sequence in done])
        columns |= {
            "phase": np.zeros(count), "session": np.array([float(made.session) for made, _ in done]), "url": np.zeros(count),
            "turn": np.array([float(made.turn) for made, _ in done]),
            "entry": np.array([float(made.entry) for made, _ in done]),
            "started_ns": sent, "sent_ns": sent, "ended_ns": last + 50e3, "outcome": np.where(failed, 1.0, 0.0),
            "input_tokens": prompt - _TEMPLATE_TOKENS, "output_tokens": np.array([float(made.tokens) for made, _ in done]),
        }  # fmt: skip
        if self._load.streaming:
            columns |= {"first_token_ns": np.where(failed, np.nan, first), "last_token_ns": np.where(failed, np.nan, last)}
        if self._load.usage:
            cached = np.array([float(sequence.cached_tokens) for _, sequence in done])
            counts = {"prompt": prompt, "cached": cached, "completion": columns["output_tokens"]}
            columns |= {f"usage_{name}_tokens": np.where(failed, np.nan, each) for name, each in counts.items()}
        return columns

    def _made_evidence(self) -> Evidence:
        load, columns = self._load, self._columns()
        phase = PhasePlan(
            "profiling", "profiling", 0, "burst", rate=load.rate, concurrency=None if load.rate is not None else load.users,
            entries=self._entries,
        )  # fmt: skip
        plan = sample_plan(Path("run"), phases=(phase,), urls=("http://127.0.0.1:8000",), streaming=load.streaming)
        window = Window(0, self._begin, self._end)
        lines = {"server_metrics": self._server_lines() if self._server.engine else [], "gpu_dcgm": []}
        lines["gpu_dcgm"] = self._gpu_lines() if self._server.gpus else []
        sources = [_summed(own, window) for own in lines.values() if own]
        good = columns["outcome"] == 0
        until = columns["first_token_ns"] if load.streaming else columns["ended_ns"]
        times = ((until - columns["sent_ns"]) / 1e6)[good]
        name = "time_to_first_token" if load.streaming else "request_latency"
        results = [Result(name, name, "ms", {"avg": float(times.mean()), "p50": float(np.median(times)), "count": len(times)})]
        if load.streaming:
            spans = (columns["last_token_ns"] - columns["first_token_ns"]) / 1e6
            gaps = (spans / np.maximum(1, columns["output_tokens"] - 1))[good]
            stats = {"avg": float(gaps.mean()), "p50": float(np.median(gaps)), "count": len(gaps)}
            results.append(Result("inter_token_latency", "inter_token_latency", "ms", stats))
        usage = bool(load.usage)
        answers = AnswerCounts(
            valid=int(good.sum()), prompt_tokens=int(np.nansum(columns["usage_prompt_tokens"])) if usage else 0,
            cached_tokens=int(np.nansum(columns["usage_cached_tokens"])) if usage else 0,
        )  # fmt: skip

        def column(name: str) -> Floats:
            return columns[name]

        return sample_evidence(
            *results, plan=plan, telemetry=tuple(sources), windows=(window,), zero_ns=ZERO_NS, read_column=column,
            read_samples=lambda source: iter(lines.get(source, ())), read_body=lambda entry: self._bodies.get(entry, b""),
            valid=int(good.sum()), failed=int((~good).sum()), observation_window_s=(self._end - self._begin) / S,
            answers=answers, single_turn=load.turns == 1, phases=(),
        )  # fmt: skip


_CALLED: dict[str, dict[str, str]] = {
    "vllm": {name: f"vllm:{name}" for name in (
        "num_requests_running", "num_requests_waiting", "request_success_total", "prompt_tokens_total",
        "generation_tokens_total",
        "prefix_cache_queries_total", "prefix_cache_hits_total", "request_queue_time_seconds", "time_to_first_token_seconds",
        "inter_token_latency_seconds",
    )},
    "sglang": {
        "num_requests_running": "sglang:num_running_reqs", "num_requests_waiting": "sglang:num_queue_reqs",
        "request_success_total": "sglang:num_requests_total", "prompt_tokens_total": "sglang:prompt_tokens_total",
        "generation_tokens_total": "sglang:generation_tokens_total", "prefix_cache_hits_total": "sglang:cached_tokens_total",
        "request_queue_time_seconds": "sglang:queue_time_seconds",
        "time_to_first_token_seconds": "sglang:time_to_first_token_seconds",
    },
    "dynamo": {
        "num_requests_running": "dynamo_frontend_inflight_requests", "num_requests_waiting": "dynamo_frontend_queued_requests",
        "request_success_total": "dynamo_frontend_requests_total",
        "time_to_first_token_seconds": "dynamo_frontend_time_to_first_token_seconds",
    },
    "levels": {
        "num_requests_running": "vllm:num_requests_running", "num_requests_waiting": "vllm:num_requests_waiting",
    },
    "": {},
}  # fmt: skip
"""By engine, the names of vLLM's families; ``levels`` has nothing but gauges."""


def _kind(name: str) -> SeriesKind:
    if name.endswith("_seconds"):
        return SeriesKind.HISTOGRAM
    return SeriesKind.COUNTER if name.endswith("_total") else SeriesKind.GAUGE


def _source(name: str, target: str) -> SourceHeader:
    every_s = _INTERVAL_NS / S
    return SourceHeader(PluginRef("telemetry", name, "m:S", "acme", "1"), every_s, (TargetHeader(target, every_s),))


def _histogram(values: list[float]) -> list[float]:
    """The sum, and how many are up to each bound."""
    return [sum(values), *(float(sum(value <= bound for value in values)) for bound in _BOUNDS), float(len(values))]


def _summed(lines: list[Line], window: Window) -> SourceSummary:
    found = ByTime(None).summary(Path("nowhere"), lambda: _iterated(lines), (window,), ())
    assert found is not None
    return found


def _iterated(lines: list[Line]) -> Iterator[Line]:
    return iter(lines)
