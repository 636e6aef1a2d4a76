"""The companions of a run: called in turn, isolated from the run and from each other."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from aiperf.errors import AiperfError
from aiperf.registry.third_party import isolated, load
from aiperf.run.children import POLL_MS
from aiperf.run.steps import Far, step, unknown
from aiperf.sdk.companion import Companion, CompanionContext
from aiperf.sdk.descriptor import PluginRef
from aiperf.sdk.plan import Plan, Secrets

if TYPE_CHECKING:
    from aiperf.run.display import Display


def processes(plan: Plan) -> int:
    """How many processes the companions of the plan will start at its begin."""
    counts = [0]
    for ref in plan.plugins.companions:
        with isolated(ref, lambda sentence: None):  # told when it is made
            counts.append(int(load(ref).processes(plan, plan.plugins.options_of(ref))))
    return sum(counts)


class Resting:
    """Companions of a plan that is over, which may take part in the next one."""

    def __init__(self) -> None:
        self._companions: dict[tuple[PluginRef, bytes], Companion] = {}

    def __bool__(self) -> bool:
        return bool(self._companions)

    def put(self, ref: PluginRef, options: bytes, companion: Companion) -> None:
        self._companions[ref, options] = companion

    def taken(self, ref: PluginRef, options: bytes, context: CompanionContext) -> Companion | None:
        """The companion, which takes part in another plan; None where there is none, or it can't."""
        companion = self._companions.pop((ref, options), None)
        if companion is None:
            return None
        again: list[bool] = []
        with isolated(ref, context.report):
            again.append(companion.again(context))
        if again == [True]:
            return companion
        _close(ref, companion)
        return None

    def queued(self) -> float | None:
        """How many requests the servers have, by all companions that know it; None where none does."""
        known: list[float] = []
        for (ref, _), companion in self._companions.items():
            with isolated(ref, lambda sentence: None):
                if (queued := companion.queued()) is not None:
                    known.append(float(queued))
        return max(known, default=None)

    def close(self) -> None:
        """End all of them."""
        for (ref, _), companion in self._companions.items():
            _close(ref, companion)
        self._companions.clear()


def _close(ref: PluginRef, companion: Companion) -> None:
    with isolated(ref, lambda sentence: None):  # its plan is over
        companion.close()


class Companions:
    """Each companion that fails is closed and left out.

    warn: what companions say.  blame: hears of each that fails.  resting: those of the plan before, and those that this plan
    leaves; None where no other plan follows.
    """

    def __init__(
        self, plan: Plan, secrets: Secrets, log_file: Path, warn: Callable[[str], None], blame: Callable[[str], None],
        resting: Resting | None = None,
    ) -> None:  # fmt: skip
        self._plan, self._blame, self._resting = plan, blame, resting
        self._running: dict[PluginRef, Companion] = {}
        self._far = unknown()
        context = CompanionContext(plan, secrets, log_file, warn, kept=resting is not None)
        for ref in plan.plugins.companions:
            kept = None if resting is None else resting.taken(ref, self._options(ref), context)
            if kept is not None:
                self._running[ref] = kept
                continue
            with isolated(ref, blame, "can't be used"):
                self._running[ref] = load(ref)(plan.plugins.options_of(ref), context)
        if resting is not None:
            resting.close()  # what this plan has no use for

    def __bool__(self) -> bool:
        """Whether any takes part still."""
        return bool(self._running)

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

    def await_all(self, display: Display, receive: Callable[[int], None]) -> None:
        """Wait until none waits any more, and show for what.  *receive*: hears of the run's processes for so many ms.

        Raises:
            AiperfError: The load may not begin.
        """
        now = self.waiting()
        while what := now:
            with step(display, what, self.far, logged=True) as tell:
                while now == what:
                    receive(POLL_MS)
                    tell()
                    now = self.waiting()

    def rest(self, meanwhile: Callable[[], object] = lambda: None) -> None:
        """The plan's samples are taken: keep what may take part in the next plan, and close the others.

        *meanwhile*: what can be done beside the last work of their processes, where there are any.
        """
        if self._running:
            meanwhile()
        if (resting := self._resting) is not None:
            kept: list[Companion] = []
            self.each(lambda companion: kept.append(companion) if companion.rest() else None)
            for ref, companion in [*self._running.items()]:
                if companion in kept:
                    resting.put(ref, self._options(ref), self._running.pop(ref))
        self.close()

    def close(self) -> None:
        self.each(lambda companion: companion.close())
        self._running.clear()

    def _options(self, ref: PluginRef) -> bytes:
        return msgspec.json.encode(self._plan.plugins.options.get(ref.key))
