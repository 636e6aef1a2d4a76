"""The companions of a run: called in turn, isolated from the run and from each other."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from aiperf.errors import AiperfError
from aiperf.registry.third_party import isolated, load
from aiperf.run.steps import Far, unknown
from aiperf.sdk.companion import Companion, CompanionContext
from aiperf.sdk.descriptor import PluginRef
from aiperf.sdk.plan import Plan, Secrets


def processes(plan: Plan) -> int:
    """How many processes the companions of the plan will start at its begin."""
    counts = [0]
    for ref in plan.plugins.companions:
        with isolated(ref, lambda sentence: None):  # told when it is made
            counts.append(int(load(ref).processes(plan, plan.plugins.options_of(ref))))
    return sum(counts)


class Companions:
    """Each companion that fails is closed and left out.

    warn: what companions say.  blame: hears of each that fails.
    """

    def __init__(
        self, plan: Plan, secrets: Secrets, log_file: Path, warn: Callable[[str], None], blame: Callable[[str], None]
    ) -> None:
        self._blame = blame
        self._running: dict[PluginRef, Companion] = {}
        self._far = unknown()
        context = CompanionContext(plan, secrets, log_file, warn)
        for ref in plan.plugins.companions:
            with isolated(ref, blame, "can't be used"):
                self._running[ref] = load(ref)(plan.plugins.options_of(ref), context)

    def each(self, call: Callable[[Companion], object], *, passing: type[AiperfError] | tuple[()] = ()) -> None:
        """Call each companion; an error *passing* passes."""
        for ref, companion in [*self._running.items()]:
            failures: list[str] = []
            with isolated(ref, failures.append, passing=passing):
                call(companion)
            if failures:
                del self._running[ref]
                self._blame(failures[0])
                with isolated(ref, failures.append):
                    companion.close()

    def waiting(self) -> str:
        """What the first that isn't ready waits for; "" once the load may begin.

        Raises:
            AiperfError: It may not.
        """
        found: list[tuple[str, Far]] = []

        def ask(companion: Companion) -> None:
            if (waiting := companion.waiting()) is not None:
                found.append((waiting.what, (waiting.done, waiting.total, waiting.unit)))

        self.each(ask, passing=AiperfError)
        what, self._far = found[0] if found else ("", unknown())
        return what

    def far(self) -> Far:
        """How far that is."""
        return self._far

    def close(self, meanwhile: Callable[[], object] = lambda: None) -> None:
        """End all of them.  *meanwhile*: what can be done beside the last work of their processes, where there are any."""
        if self._running:
            meanwhile()
        self.each(lambda companion: companion.close())
        self._running.clear()
