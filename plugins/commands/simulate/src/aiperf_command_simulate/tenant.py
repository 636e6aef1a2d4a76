"""Another tenant of the engine: requests that reach it by no connection, and that only its pages of metrics show."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping
from typing import Any

from aiperf_command_simulate.engine import Engine, Sequence
from aiperf_command_simulate.meters import Meters
from aiperf_command_simulate.scenario import ServerScenario

PROMPT_TOKENS = 512
"""Tokens of each prompt; no two prompts begin alike, so they take blocks of the cache and find none."""
_NS = 1_000_000_000


class TenantRequest:
    """One request of the tenant.  submitted_ns, first_ns, last_ns: when it came, and its first and latest token; 0 before."""

    def __init__(self, tenant: Tenant, submitted_ns: int) -> None:
        self.tenant = tenant
        self.sequence: Sequence[Any] | None = None
        self.submitted_ns, self.first_ns, self.last_ns = submitted_ns, 0, 0
        self.tokens_done = 0

    @property
    def model(self) -> str:
        return self.tenant.model

    def token(self, at_ns: int) -> None:
        """The engine made one more token."""
        self.tenant.token(self, at_ns)


class Tenant:
    """Sends the requests of a scenario's tenant to its engine, at random instants (Poisson) from *started_ns* on.

    Each has PROMPT_TOKENS of prompt and an answer of the scenario's length, for the first of the models that *meters* has.
    """

    def __init__(self, scenario: ServerScenario, engine: Engine[Any], meters: Mapping[str, Meters], started_ns: int) -> None:
        self.model, self._meters = next(iter(meters.items()))
        self._engine, self._rate, self._tokens = engine, scenario.tenant_rate, scenario.tokens
        self._dice = random.Random(f"tenant {scenario.seed}")
        self._counts: Counter[str] = Counter()
        self._numbers = self._open = 0
        self._next_ns = self._after(started_ns) if self._rate else None

    def next_ns(self, other_ns: int | None) -> int | None:
        """When the next request is due, or *other_ns* if that is earlier; None: never."""
        return min((each for each in (self._next_ns, other_ns) if each is not None), default=None)

    def submit(self, now_ns: int) -> None:
        """Give the engine what is due until now, each at its own instant."""
        while self._next_ns is not None and self._next_ns <= now_ns:
            due_ns, self._next_ns = self._next_ns, self._after(self._next_ns)
            request = TenantRequest(self, due_ns)
            self._numbers += 1
            size = self._engine.model.block_size
            blocks = tuple(hash(("tenant", self._numbers, block)) for block in range(PROMPT_TOKENS // size))
            request.sequence = Sequence(request, PROMPT_TOKENS, self._tokens, blocks if self._engine.cache.capacity else ())
            taken = self._engine.submit(request.sequence, due_ns)
            self._counts["requests"] += 1
            self._counts["refused"] += not taken
            self._open += taken
            if not taken:
                self._meters.count("failed")

    def token(self, request: TenantRequest, at_ns: int) -> None:
        """The engine made one more token of a request."""
        sequence, meters = request.sequence, self._meters
        assert sequence is not None
        meters.count("generated")
        self._counts["completion_tokens"] += 1
        if request.last_ns:
            meters.observe("between_tokens", at_ns - request.last_ns)
        else:
            self._began(request, sequence, at_ns)
        request.last_ns = at_ns
        request.tokens_done += 1
        if request.tokens_done == sequence.want:
            self._ended(request, at_ns)

    def reset(self) -> None:
        """Forget what was counted."""
        self._counts.clear()

    def truth(self) -> dict[str, int]:
        """What the tenant has asked for and got since the last reset; empty without a tenant."""
        if not self._rate:
            return {}
        names = ("requests", "completed", "refused", "prompt_tokens", "cached_tokens", "completion_tokens")
        return {name: self._counts[name] for name in names} | {"in_flight": self._open}

    def _began(self, request: TenantRequest, sequence: Sequence[Any], at_ns: int) -> None:
        request.first_ns = at_ns
        self._counts["prompt_tokens"] += sequence.prompt_tokens
        self._counts["cached_tokens"] += sequence.cached_tokens
        meters = self._meters
        meters.admitted(sequence.prompt_tokens, sequence.cached_tokens, self._engine.model.block_size)
        admitted_ns = at_ns if sequence.admitted_ns is None else sequence.admitted_ns
        meters.observe("queued", max(0, admitted_ns - request.submitted_ns))
        meters.observe("prefill", max(0, at_ns - admitted_ns))
        meters.observe("first_token", at_ns - request.submitted_ns)

    def _ended(self, request: TenantRequest, at_ns: int) -> None:
        self._open -= 1
        self._counts["completed"] += 1
        meters, decode_ns = self._meters, at_ns - request.first_ns
        meters.finished("length")
        meters.count("completed")
        meters.observe("latency", at_ns - request.submitted_ns)
        meters.observe("output_tokens", request.tokens_done)
        meters.observe("decode", decode_ns)
        if request.tokens_done > 1:
            meters.observe("per_token", decode_ns // (request.tokens_done - 1))

    def _after(self, ns: int) -> int:
        return ns + max(1, round(self._dice.expovariate(self._rate) * _NS))
