"""A model of coding agents: sessions whose prompts share layers, grow turn by turn, and end by a reset or at a limit.

Lengths and delays are log-normal, of a mean and a median: mu = ln(median), sigma = sqrt(2 ln(mean / median)).  Every draw is
keyed by (seed, what it is for, session, turn), so that a session does not depend on how many there are.
"""

from __future__ import annotations

import hashlib
import math
from bisect import bisect
from collections.abc import Iterator
from itertools import accumulate
from typing import Any

from aiperf.sdk.draws import normal, uniform
from msgspec import Struct

_MOST_TURNS = 1 << 20
"""Turns of a session that draws keep apart."""


class LogNormal(Struct, frozen=True, forbid_unknown_fields=True):
    """min: nothing smaller is drawn; None for no limit."""

    mean: float
    median: float
    min: float | None = None

    def drawn(self, seed: int, what: str, index: int) -> float:
        sigma = math.sqrt(2 * math.log(self.mean / self.median))
        value = self.median * math.exp(sigma * normal(seed, what, index))
        return value if self.min is None else max(self.min, value)


class Model(Struct, frozen=True, forbid_unknown_fields=True):
    """Lengths in tokens, delays in ms.

    layer_1: common to all sessions.  layer_1_5: to a group, of which rank r has the weight r to the power of -zipf.
    layer_2: of a session.  fast: the share of delays that are a tool's and not a person's.  A delay is multiplied by
    max(0.2, 1 - 0.8 ratio), where ratio is the context as a share of max_prompt; behind each turn a session is reset with the
    probability reset * (1 + (reset_scaling - 1) * ratio).
    """

    new_tokens: LogNormal = LogNormal(3500, 1800)
    output: LogNormal = LogNormal(500, 300, 30)
    fast: float = 0.7
    fast_delay: LogNormal = LogNormal(2500, 1800)
    slow_delay: LogNormal = LogNormal(40000, 25000)
    reset: float = 0.02
    reset_scaling: float = 2.0
    max_prompt: int = 200_000
    block: int = 512
    layer_1: int = 32_000
    layer_1_5: int = 20_000
    layer_2: LogNormal = LogNormal(10_000, 5000)
    groups: int = 50
    zipf: float = 1.2

    def problem(self) -> str | None:
        """Why no session can be made; None where some can."""
        for name in self.__struct_fields__:
            value = getattr(self, name)
            if isinstance(value, LogNormal) and not 0 < value.median <= value.mean:
                return f"{name} has the mean {value.mean:g} and the median {value.median:g}; 0 < median <= mean"
        for name in ("max_prompt", "block", "groups"):
            if getattr(self, name) < 1:
                return f"{name} is {getattr(self, name)}; it must be at least 1"
        for name in ("layer_1", "layer_1_5", "zipf", "reset", "reset_scaling"):
            if getattr(self, name) < 0:
                return f"{name} is {getattr(self, name)}; it must be 0 or more"
        if not 0 <= self.fast <= 1:
            return f"fast is {self.fast:g}; it must be a share from 0 to 1"
        if self.layer_1 + self.layer_1_5 >= self.max_prompt:
            both = self.layer_1 + self.layer_1_5
            return f"the common layers have {both:,} tokens, and a prompt at most {self.max_prompt:,}"
        return None


class AgenticSession(Struct, frozen=True):
    """full: it ended because its next turn would not have fitted; else by a reset.  layers: blocks of layers 1, 1.5 and 2."""

    rows: list[dict[str, Any]]
    layers: tuple[int, int, int]
    full: bool


class Sessions:
    """The sessions of a model, in their order.  max_osl: the longest answer; None for no limit."""

    def __init__(self, model: Model, seed: int, max_osl: int | None) -> None:
        self._model, self._seed, self._max_osl = model, seed, max_osl
        self._first, self._group = (math.ceil(layer / model.block) for layer in (model.layer_1, model.layer_1_5))
        self._next = self._first + model.groups * self._group
        weights = [rank**-model.zipf for rank in range(1, model.groups + 1)]
        self._until = [each / sum(weights) for each in accumulate(weights)]

    def take(self, count: int) -> Iterator[AgenticSession]:
        return (self._session(number) for number in range(count))

    def _session(self, number: int) -> AgenticSession:
        model, seed = self._model, self._seed
        group = min(bisect(self._until, uniform(seed, "agentic.group", number)), model.groups - 1)
        own = max(1, round(model.layer_2.drawn(seed, "agentic.layer_2", number)))
        tokens = min(model.layer_1 + model.layer_1_5 + own, model.max_prompt)
        begin = self._first + group * self._group
        shared = [*range(self._first), *range(begin, begin + self._group)][: math.ceil(tokens / model.block)]
        ids = shared + self._fresh(math.ceil(tokens / model.block) - len(shared))
        name = f"sess-{hashlib.sha256(f'{seed}:{number}'.encode()).hexdigest()[:12]}"
        rows = [self._row(name, group, tokens, ids, number, 0) | {"timestamp": 0.0}]
        context = tokens + rows[0]["output_length"]
        for turn in range(1, _MOST_TURNS):
            draw, ratio = number * _MOST_TURNS + turn, min(1.0, context / model.max_prompt)
            if uniform(seed, "agentic.reset", draw) < model.reset * (1 + (model.reset_scaling - 1) * ratio):
                break
            new = max(1, round(model.new_tokens.drawn(seed, "agentic.new", draw)))
            if context + new > model.max_prompt:
                return AgenticSession(rows, self._layers(len(ids)), full=True)
            row = self._row(name, group, new, self._fresh(math.ceil(new / model.block)), number, turn)
            rows.append(row | {"delay": self._delay(draw, ratio)})
            context += new + row["output_length"]
        return AgenticSession(rows, self._layers(len(ids)), full=False)

    def _layers(self, blocks: int) -> tuple[int, int, int]:
        first = min(self._first, blocks)
        group = min(self._group, blocks - first)
        return first, group, blocks - first - group

    def _row(self, name: str, group: int, tokens: int, ids: list[int], number: int, turn: int) -> dict[str, Any]:
        output = max(1, round(self._model.output.drawn(self._seed, "agentic.output", number * _MOST_TURNS + turn)))
        length = output if self._max_osl is None else min(output, self._max_osl)
        return {"session_id": name, "input_length": tokens, "output_length": length, "hash_ids": ids, "group_id": group}

    def _delay(self, draw: int, ratio: float) -> float:
        fast = uniform(self._seed, "agentic.kind", draw) < self._model.fast
        kind = self._model.fast_delay if fast else self._model.slow_delay
        return round(kind.drawn(self._seed, "agentic.delay", draw) * max(0.2, 1 - 0.8 * ratio), 1)

    def _fresh(self, count: int) -> list[int]:
        self._next += count
        return list(range(self._next - count, self._next))
