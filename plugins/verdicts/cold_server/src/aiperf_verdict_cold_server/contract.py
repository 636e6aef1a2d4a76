"""The contract of the category with material for this verdict."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from aiperf import Evidence
from aiperf.sdk.columns import Floats
from aiperf.sdk.plan import PhasePlan
from aiperf.sdk.series import Window
from aiperf.testing import VerdictContract, sample_evidence

from aiperf_verdict_cold_server import ColdServer

S = 1_000_000_000
_FIRST_S, _BETWEEN_S, _TOKENS = 0.1, 0.01, 11.0
_WAVES = (0.0, 0.02, 0.04, 0.01, 0.03)
"""How much longer one request after the other takes: no two are alike."""


def timed(slower: Callable[[float], float], count: int = 240, rate: float = 4.0, *, warmed: bool = False) -> Evidence:
    """A run of *count* requests at a rate; that begun at second t takes slower(t) times as long."""
    begun = np.arange(count) / rate
    factor = np.array([slower(at_s) * (1 + _WAVES[place % len(_WAVES)]) for place, at_s in enumerate(begun.tolist())])
    first = begun + _FIRST_S * factor
    last = first + _BETWEEN_S * (_TOKENS - 1) * factor
    instants = {"sent_ns": begun, "started_ns": begun, "first_token_ns": first, "last_token_ns": last, "ended_ns": last}
    columns = {name: at_s * S for name, at_s in instants.items()}
    columns |= {"output_tokens": np.full(count, _TOKENS), "entry": np.arange(count, dtype=np.float64)}

    def column(name: str) -> Floats:
        return columns.get(name, np.zeros(count))

    index = 1 if warmed else 0
    phase = PhasePlan("profiling", "profiling", index, "burst", rate=rate)
    phases = (PhasePlan("warmup", "warmup", 0, "burst"), phase) if warmed else (phase,)
    return sample_evidence(
        plan=sample_evidence().plan.replacing(phases=phases), read_column=column, windows=(Window(index, 0, round(count /
        rate * S)),), valid=count,
    )  # fmt: skip


class ColdServerContract(VerdictContract):
    """A slow beginning, a slow end, a slow first request, an even run, and few requests."""

    verdict = ColdServer
    cases = (
        (timed(lambda at_s: 1.5 if at_s < 10 else 1.0), ("cold_server",)),
        (timed(lambda at_s: 1.5 if at_s < 10 else 1.0, warmed=True), ("cold_server",)),
        (timed(lambda at_s: 1.0), ()), (timed(lambda at_s: 1.5 if at_s > 50 else 1.0), ()),
        (timed(lambda at_s: 9.0 if not at_s else 1.0, 30), ("cold_server",)),
        (timed(lambda at_s: 9.0 if not at_s else 1.0, 30, warmed=True), ()), (timed(lambda at_s: 9.0 if not at_s else 1.0,
        10), ()), (sample_evidence(), ()),
    )  # fmt: skip
