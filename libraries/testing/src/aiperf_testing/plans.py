"""A ready-made plan and plugin reference for tests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from aiperf.sdk.descriptor import PluginRef
from aiperf.sdk.plan import DataPlan, LoadPlan, OutputPlan, PhasePlan, Plan, PluginPlan, RunPlan, TargetPlan


def sample_ref(category: str, value: str = "acme:Nothing", *, name: str | None = None) -> PluginRef:
    """A plugin of the distribution ``acme 1.2``.  *name*: None is the lower-case name of its object."""
    return PluginRef(category, name or value.rpartition(":")[2].lower(), value, "acme", "1.2")


def sample_plan(directory: Path, **changes: Any) -> Plan:
    """A run into *directory*: one burst phase, one worker, one reducer.  *changes*: fields of any section.

        """
    plan = Plan(
        RunPlan(run_id="0123456789ab", version="0", seed=7, seeded=True, command="aiperf profile"),
        TargetPlan(models=("m",), urls=("http://h",), path="/v1/x", streaming=False, timeout_ns=10**10),
        DataPlan(entries=1, sampling="sequential"),
        LoadPlan(phases=(PhasePlan("profiling", "profiling", 0, "burst"),)),
        OutputPlan(journal=str(directory / "journal"), artifacts=str(directory)),
        PluginPlan(
            endpoint=sample_ref("endpoints"), transport=sample_ref("transports"), dataset=sample_ref("datasets"),
            samplers={"sequential": PluginRef("samplers", "sequential", f"{__name__}:in_order", "aiperf-core", "")},
            drivers={name: sample_ref("drivers", name=name) for name in ("burst", "paced", "sessions")},
            facts={
                "samplers:sequential": {"in_order": True}, "schedules:burst": {"follows": "free_slots"},
                "drivers:burst": {"drives": "free_slots"}, "drivers:paced": {"drives": "due_times"},
                "drivers:sessions": {"drives": "session_starts"},
            },
        ),
    )
    return plan.replacing(**changes)


def in_order(seed: int, session: int, count: int) -> int:
    """A sampler: the entries in their order, wrapping around."""
    return session % count
