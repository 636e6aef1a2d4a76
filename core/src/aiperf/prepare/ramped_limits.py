"""Rising limits: from a ramp to the files of their levels."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from msgspec.structs import replace

from aiperf.errors import PluginError
from aiperf.registry.third_party import blamed, load
from aiperf.rundir.int_files import write_ints
from aiperf.sdk.columns import Floats, Ints
from aiperf.sdk.plan import PhasePlan, Plan, PluginPlan
from aiperf.sdk.ramp import Ramp, ramp_points

_TOLERANCE = 1e-9
"""By which a ramp, whose values go from 0 to 1, may miss its ends."""


def with_limits(plan: Plan, phase: PhasePlan) -> PhasePlan:
    """The phase with a file for each rising limit: the time of each level, in ns after the phase's start.

    Raises:
        PluginError: The ramp breaks its contract.
    """

    def limits(name: str, target: int | None, ramp_ns: int | None) -> str | None:
        if target is None or target == 1 or not ramp_ns:
            return None
        levels = levels_ns(ramp_of(plan.plugins, phase), ramp_ns, target)
        return write_ints(Path(plan.output.journal) / f"{name}-{phase.index}.bin", levels)

    concurrency = limits("limits", phase.concurrency, phase.concurrency_ramp_ns)
    prefill = limits("prefill-limits", phase.prefill_concurrency, phase.prefill_ramp_ns)
    return replace(phase, limits_file=concurrency, prefill_limits_file=prefill)


def levels_ns(ramp: Ramp, ramp_ns: int, target: int) -> Ints:
    """Times at which a limit that begins at 1 reaches 2, 3, … *target*, in ns after the phase's start."""
    x, share = ramp_points(ramp, ramp_ns)
    wanted = np.arange(1, target) / max(1, target - 1)
    after = np.searchsorted(share, wanted, side="left")
    part = (wanted - share[after - 1]) / (share[after] - share[after - 1])
    reached: Ints = np.rint((x[after - 1] + part * (x[after] - x[after - 1])) * ramp_ns).astype(np.int64)
    return reached


def ramp_of(plugins: PluginPlan, phase: PhasePlan) -> Ramp:
    """The curve that the phase names; each call checks its contract.

    Raises:
        PluginError: The curve can't be loaded.  Calls raise it where the curve fails or doesn't rise from 0 to 1.
    """
    ref = plugins.ramps[phase.ramp]
    maker, curve = str(ref), load(ref)

    def shares(x: Floats) -> Floats:
        with blamed(maker, "failed"):
            y = np.asarray(curve(x), dtype=np.float64)
        if y.shape != x.shape:
            raise PluginError(f"{maker} gave shares of shape {y.shape} for {x.shape}")
        begins, ends = y[x <= 0], y[x >= 1]
        if not ((np.abs(begins) < _TOLERANCE).all() and (np.abs(ends - 1) < _TOLERANCE).all() and (np.diff(y) >= 0).all()):
            raise PluginError(f"{maker} doesn't rise from 0 at 0 to 1 at 1")
        return np.clip(y, 0.0, 1.0)

    return shares
