"""The reducer of a run, and the report that it makes of the run's directory."""

from __future__ import annotations

import logging
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from aiperf.errors import PluginError
from aiperf.registry.guides import INSTALL_SUITE, install
from aiperf.registry.third_party import blamed, load
from aiperf.rundir.journal import RunClock, load_run
from aiperf.rundir.previous_results import recover
from aiperf.sdk.plan import Plan
from aiperf.sdk.reducer import Reducer

if TYPE_CHECKING:
    from aiperf.sdk.summary import Summary

log = logging.getLogger(__name__)


def reducer_of(plan: Plan) -> Reducer[Any]:
    """The plan's reducer; for a plan of a version that named none, the installed one.

    Raises:
        PluginError: None is installed, or it can't be made.
    """
    ref = plan.plugins.reducer
    if ref is None:
        from aiperf.registry.registry import Registry

        registry = Registry.discover()
        best = max(registry.all("reducers"), key=registry.rank, default=None)
        if best is None:
            message = "no plugin of the category reducers is installed, and nothing can be read of a journal"
            raise PluginError(message, INSTALL_SUITE)
        ref = best.ref
    absent = find_spec(ref.value.partition(":")[0].partition(".")[0]) is None
    factory = load(ref, *([install(ref.distribution)] if absent else []))
    with blamed(ref, "can't be used"):
        reducer: Reducer[Any] = factory(plan.plugins.options_of(ref))
    return reducer


def report(directory: Path, change: Callable[[Plan], Plan] | None = None) -> tuple[Summary, Plan, RunClock]:
    """Reduce a run's directory again and summarise it; the parts of batch exporters are written again.

    *change* turns the run's plan into the plan of the report: other metrics, options of metrics, or slices.

    Raises:
        BadJournal: The directory holds no run.
        OSError: The directory can't be read or written.
    """
    if recover(directory):
        log.warning("%s: a start that was killed had set the results of an earlier run aside; they are back", directory)
    summary, plan, clock = reducer_of(load_run(directory / "journal")[0]).report(directory, change)
    return replace(summary, directory=str(directory.absolute()), study_id=plan.run.study_id), plan, clock
