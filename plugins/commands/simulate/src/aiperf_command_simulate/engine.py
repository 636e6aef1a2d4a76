"""The model of an inference engine: one device, continuous batching, a queue.  No I/O and no clock of its own.

The device works in steps.  A step computes up to ``prefill_chunk`` prompt tokens of sequences that are new, oldest first,
and one token of each sequence that decodes; it costs

    prefill_ns x prompt tokens  +  decode_ns + decode_batch_ns x (sequences that decode - 1)

and everything it made is out when it ends.  Sequences join between steps, as many as ``max_running`` allows; the rest wait
in order of arrival.  The step that computes the last prompt token makes the first output token.

Step ends are added up from the model's costs, never from when somebody looked: a late caller loses nothing.
"""

from __future__ import annotations

import heapq
import random
from collections import deque
from collections.abc import Callable
from typing import Generic, TypeVar

from msgspec import Struct

from aiperf_command_simulate.prefix import PrefixCache
from aiperf_command_simulate.slowdown import NEVER, Slowdown

Owner = TypeVar("Owner")

STEPS_AT_ONCE = 256
"""Steps computed before the caller gets to run: an engine that costs nothing must not keep the loop for itself."""


class EngineModel(Struct, frozen=True):
    """Costs in ns, limits in sequences or tokens.

    max_queue: sequences that may wait; None is any number.  cache_blocks: 0 switches the prefix cache off.
    first_token_ns: time from joining to the first token, whatever the prompt; None takes it from the prefill.
    jitter: 0 to below 1; each duration is multiplied by a uniform factor from 1 - jitter to 1 + jitter.
    freeze_every_ns, freeze_for_ns: the device stands still for the latter at the start of each period but the first.
    slowdown: what begins in its time takes longer.
    """

    prefill_ns: int = 20_000
    prefill_chunk: int = 2048
    decode_ns: int = 8_000_000
    decode_batch_ns: int = 50_000
    max_running: int = 256
    max_queue: int | None = None
    block_size: int = 16
    cache_blocks: int = 8192
    first_token_ns: int | None = None
    jitter: float = 0.0
    freeze_every_ns: int = 0
    freeze_for_ns: int = 0
    slowdown: Slowdown = NEVER


class Freeze(Struct, frozen=True):
    """Two clocks: the world's, and the device's, which stands still for *for_ns* every *every_ns*."""

    origin_ns: int
    every_ns: int
    for_ns: int

    def device_ns(self, world_ns: int) -> int:
        period, into = divmod(world_ns - self.origin_ns, self.every_ns)
        if period < 1:
            return world_ns
        frozen = (period - 1) * self.for_ns + min(into, self.for_ns)
        return world_ns - frozen

    def world_ns(self, device_ns: int) -> int:
        """The first instant at which the device's clock goes on from *device_ns*."""
        worked = device_ns - self.origin_ns - self.every_ns
        if worked < 0:
            return device_ns
        return device_ns + (1 + worked // (self.every_ns - self.for_ns)) * self.for_ns


class Clock:
    """The device's clock: what stops it and what makes its durations longer, both counted from *started_ns*."""

    def __init__(self, model: EngineModel, started_ns: int) -> None:
        self._freeze = Freeze(started_ns, model.freeze_every_ns, model.freeze_for_ns) if model.freeze_every_ns else None
        self._slowdown, self._started_ns = model.slowdown, started_ns

    def device_ns(self, world_ns: int) -> int:
        return self._freeze.device_ns(world_ns) if self._freeze else world_ns

    def world_ns(self, device_ns: int) -> int:
        return self._freeze.world_ns(device_ns) if self._freeze else device_ns

    def slower(self, device_ns: int) -> float:
        """What a duration that begins then is multiplied by."""
        return self._slowdown.factor(self.world_ns(device_ns) - self._started_ns)

    def slow(self) -> dict[str, float]:
        """Between which instants the device is slow, and by what factor; empty where it never is."""
        if not self._slowdown.for_ns:
            return {}
        begin, end = (self._started_ns + ns for ns in (self._slowdown.from_ns, self._slowdown.until_ns))
        return {"from_mono_ns": begin, "until_mono_ns": end, "by": self._slowdown.by}


class Sequence(Generic[Owner]):
    """One answer to be made: *want* tokens after *prompt_tokens*.

    pauses: (tokens made, ns): when so many are made, stand aside so long; at 0 the first token is held back.
    admitted_ns: when it left the queue, None while it waits.  cached_tokens: prompt tokens found in the prefix cache.
    """

    __slots__ = (
        "admitted_ns", "blocks", "cached_tokens", "gone", "left", "owner", "pauses", "prompt_tokens", "submitted_ns",
        "tokens_done",
        "want",
    )  # fmt: skip

    def __init__(
        self, owner: Owner, prompt_tokens: int, want: int, blocks: tuple[int, ...] = (), pauses: dict[int, int] | None = None
    ) -> None:
        self.owner = owner
        self.prompt_tokens = prompt_tokens
        self.want = want
        self.blocks = blocks
        self.pauses = pauses or {}
        self.tokens_done = 0
        self.left = prompt_tokens
        self.cached_tokens = 0
        self.submitted_ns = 0
        self.admitted_ns: int | None = None
        self.gone = False


class Engine(Generic[Owner]):
    """Sequences in, tokens out, at instants that the model's costs give.

    An instant before the last given one counts as the last.  *started_ns* is where the periods of a freeze begin, and what a
    slowdown counts from.
    worked: is told of each step, when it begins, with its begin and end.
    """

    def __init__(
        self, model: EngineModel, seed: int = 0, started_ns: int = 0, worked: Callable[[int, int], object] | None = None
    ) -> None:
        self.model = model
        self._worked = worked
        self.cache = PrefixCache(model.cache_blocks)
        self.steps = 0
        self.waiting_count = 0
        self.waiting_max = 0
        self.running_max = 0
        self.running: dict[Sequence[Owner], None] = {}
        self._random = random.Random(seed)
        self._clock = Clock(model, started_ns)
        self._waiting: deque[Sequence[Owner]] = deque()
        self._prefilling: deque[Sequence[Owner]] = deque()
        self._decoding: dict[Sequence[Owner], None] = {}
        self._paused: list[tuple[int, int, Sequence[Owner]]] = []
        self._pauses = 0
        self._now = started_ns
        self._step_end: int | None = None
        self._step_decodes: list[Sequence[Owner]] = []
        self._step_prefills: list[tuple[Sequence[Owner], int]] = []
        self._made: list[tuple[Sequence[Owner], int]] = []

    @property
    def next_ns(self) -> int | None:
        """The next instant at which ``advance`` gives something; None while the engine is idle."""
        if self._made:
            return self._made[0][1]
        event = self._next_event()
        return None if event is None else self._to_world(event)

    def waiting(self) -> list[Sequence[Owner]]:
        """Waiting sequences in order of arrival."""
        return [sequence for sequence in self._waiting if not sequence.gone]

    def slow(self) -> dict[str, float]:
        """When it is slow: ``from_mono_ns``, ``until_mono_ns``, ``by``; empty where it never is."""
        return self._clock.slow()

    def submit(self, sequence: Sequence[Owner], now_ns: int) -> bool:
        """Take a sequence into the queue; False if the queue is full."""
        now = self._to_device(now_ns)
        self._run(now)
        limit = self.model.max_queue
        if limit is not None and len(self.running) + self.waiting_count >= self.model.max_running + limit:
            return False
        sequence.submitted_ns = now
        self._waiting.append(sequence)
        self.waiting_count += 1
        self._run(now)
        self.waiting_max = max(self.waiting_max, self.waiting_count)
        return True

    def cancel(self, sequence: Sequence[Owner], now_ns: int) -> None:
        """Forget a sequence; its place is free from the next step on.  An ended sequence stays as it is."""
        if sequence.gone:
            return
        now = self._to_device(now_ns)
        self._run(now)
        if sequence.gone:
            return
        if sequence.admitted_ns is None:
            sequence.gone = True  # the queue skips it when it gets there
            self.waiting_count -= 1
        else:
            self._leave(sequence)
        self._run(now)

    def advance(self, now_ns: int) -> list[tuple[Sequence[Owner], int]]:
        """Every token until *now_ns* that was not given yet, with its instant, in order."""
        self._run(self._to_device(now_ns))
        made, self._made = self._made, []
        return made

    # From here on, times are the device's.

    def _to_device(self, world_ns: int) -> int:
        self._now = max(self._now, self._clock.device_ns(world_ns))
        return self._now

    def _to_world(self, device_ns: int) -> int:
        return self._clock.world_ns(device_ns)

    def _next_event(self) -> int | None:
        while self._paused and self._paused[0][2].gone:
            heapq.heappop(self._paused)
        wake = self._paused[0][0] if self._paused else None
        if self._step_end is None or (wake is not None and wake <= self._step_end):
            return wake
        return self._step_end

    def _run(self, now: int) -> None:
        last = self.steps + STEPS_AT_ONCE
        while (event := self._next_event()) is not None and event <= now:
            if self.steps >= last:
                return
            if event == self._step_end:
                self._end_step(event)
            else:
                self._wake(heapq.heappop(self._paused)[2], event)
            if self._step_end is None:
                self._begin_step(event)
        if self._step_end is None:
            self._begin_step(now)

    def _begin_step(self, at: int) -> None:
        self._admit(at)
        model = self.model
        tokens = 0
        for sequence in self._prefilling:
            if sequence.gone:
                continue
            take = min(sequence.left, model.prefill_chunk - tokens)
            self._step_prefills.append((sequence, take))
            tokens += take
            if tokens >= model.prefill_chunk:
                break
        self._step_decodes = list(self._decoding)
        if not tokens and not self._step_decodes:
            return
        cost = tokens * model.prefill_ns
        if self._step_decodes:
            cost += model.decode_ns + model.decode_batch_ns * (len(self._step_decodes) - 1)
        self.steps += 1
        self._step_end = at + self._lasting(cost, at)
        if self._worked is not None:
            self._worked(self._to_world(at), self._to_world(self._step_end))

    def _admit(self, at: int) -> None:
        while self._waiting and len(self.running) < self.model.max_running:
            sequence = self._waiting[0]
            if not sequence.gone:
                if sequence.submitted_ns > at:
                    return
                self._join(sequence, at)
            self._waiting.popleft()

    def _join(self, sequence: Sequence[Owner], at: int) -> None:
        self.waiting_count -= 1
        self.running[sequence] = None
        self.running_max = max(self.running_max, len(self.running))
        sequence.admitted_ns = self._to_world(at)
        # The last token is computed even if its block is known: its result is the first output token.
        known = self.cache.hits(sequence.blocks) * self.model.block_size
        sequence.cached_tokens = min(known, sequence.prompt_tokens - 1)
        sequence.left = sequence.prompt_tokens - sequence.cached_tokens
        if self.model.first_token_ns is None:
            self._prefilling.append(sequence)
        else:
            self.cache.add(sequence.blocks)
            self._pause(sequence, at + self._lasting(self.model.first_token_ns, at) + sequence.pauses.get(0, 0))

    def _end_step(self, at: int) -> None:
        self._step_end = None
        prefills, self._step_prefills = self._step_prefills, []
        for sequence in self._step_decodes:
            if not sequence.gone:
                self._token(sequence, at)
        for sequence, tokens in prefills:
            sequence.left -= tokens
            if sequence.left or sequence.gone:
                continue
            self.cache.add(sequence.blocks)
            held = sequence.pauses.get(0, 0)
            if held:
                self._pause(sequence, at + held)
            else:
                self._token(sequence, at)
        while self._prefilling and (not self._prefilling[0].left or self._prefilling[0].gone):
            self._prefilling.popleft()

    def _wake(self, sequence: Sequence[Owner], at: int) -> None:
        if sequence.tokens_done:
            self._decoding[sequence] = None
        else:
            self._token(sequence, at)

    def _token(self, sequence: Sequence[Owner], at: int) -> None:
        sequence.tokens_done += 1
        self._made.append((sequence, self._to_world(at)))
        if sequence.tokens_done >= sequence.want:
            self._leave(sequence)
        elif pause := sequence.pauses.get(sequence.tokens_done, 0):
            self._decoding.pop(sequence, None)
            self._pause(sequence, at + pause)
        else:
            self._decoding[sequence] = None

    def _pause(self, sequence: Sequence[Owner], until: int) -> None:
        self._pauses += 1  # equal instants wake in order of arrival
        heapq.heappush(self._paused, (until, self._pauses, sequence))

    def _leave(self, sequence: Sequence[Owner]) -> None:
        sequence.gone = True
        self.running.pop(sequence, None)
        self._decoding.pop(sequence, None)

    def _lasting(self, cost: int, at: int) -> int:
        """How long it takes what begins at *at*."""
        slower = self._clock.slower(at)
        if slower != 1.0:
            cost = round(cost * slower)
        if not self.model.jitter:
            return cost
        return round(cost * (1 + self.model.jitter * (2 * self._random.random() - 1)))
