"""The kernel's own hooks: a phase gets the schedule that it names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiperf.registry.third_party import made
from aiperf.sdk.hooks import hookimpl

if TYPE_CHECKING:
    from aiperf.sdk.plan import PhasePlan, Plan
    from aiperf.sdk.schedule import Schedule, ScheduleContext


class NamedSchedules:
    """Makes the plugin of the category ``schedules`` that the phase names, unless another hook gives a schedule."""

    @hookimpl(trylast=True)
    def aiperf_make_schedule(self, plan: Plan, phase: PhasePlan, context: ScheduleContext) -> Schedule | None:
        ref = plan.plugins.schedules.get(phase.schedule)
        schedule: Schedule | None = None if ref is None else made(ref, context)
        return schedule
