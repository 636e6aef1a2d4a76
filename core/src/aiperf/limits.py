"""Limits that rise through a phase, from their ramp to files that workers map."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from msgspec.structs import replace

from aiperf import intfile
from aiperf.errors import PluginError
from aiperf.ramps import levels_ns
from aiperf.strangers import blamed, load, who

if TYPE_CHECKING:
    from aiperf.columns import Floats
    from aiperf.plan import PhasePlan, Plan
    from aiperf.schedule import Ramp

_NEAR = 1e-9


def with_limits(plan: Plan, phase: PhasePlan) -> PhasePlan:
    """The phase with a file for each of its limits that rises: when it reaches each level, ns after the phase's start.

    Raises:
        PluginError: The ramp breaks its contract.
    """
    return replace(
        phase,
        limits_file=_limits(plan, phase, "limits", phase.concurrency, phase.concurrency_ramp_ns),
        prefill_limits_file=_limits(plan, phase, "prefill-limits", phase.prefill_concurrency, phase.prefill_ramp_ns),
    )


def _limits(plan: Plan, phase: PhasePlan, name: str, target: int | None, ramp_ns: int | None) -> str | None:
    if target is None or target == 1 or not ramp_ns:
        return None
    levels = levels_ns(ramp_of(plan, phase), ramp_ns, target)
    return intfile.write(Path(plan.journal) / f"{name}-{phase.index}.bin", levels)


def ramp_of(plan: Plan, phase: PhasePlan) -> Ramp:
    """The curve that the phase names, held to its contract.

    Raises:
        PluginError: It can't be had; and when it is called, that it failed, or isn't a rise from 0 to 1.
    """
    ref = plan.ramps[phase.ramp]
    maker, curve = who(ref), load(ref)

    def shares(x: Floats) -> Floats:
        with blamed(maker, "failed"):
            found = np.asarray(curve(x), dtype=np.float64)
        if found.shape != x.shape:
            raise PluginError(f"{maker} gave shares of shape {found.shape} for {x.shape}")
        begins, ends = found[x <= 0], found[x >= 1]
        if not ((np.abs(begins) < _NEAR).all() and (np.abs(ends - 1) < _NEAR).all() and (np.diff(found) >= 0).all()):
            raise PluginError(f"{maker} doesn't rise from 0 at 0 to 1 at 1")
        return np.clip(found, 0.0, 1.0)

    return shares
