"""Sessions as they begin: the entry, model and URL of each, by its number alone."""

from __future__ import annotations

from aiperf.registry.samplers import sampler_of
from aiperf.rundir import journal
from aiperf.rundir.store import Store
from aiperf.sdk.draws import uniform
from aiperf.sdk.driver import Session
from aiperf.sdk.plan import ModelStrategy, PhasePlan, Plan
from aiperf.worker.url_balance import UrlBalance


class NewSessions:
    """Begins the sessions of a worker.  *balance*: None where there is one URL."""

    def __init__(self, plan: Plan, store: Store, balance: UrlBalance | None) -> None:
        self._plan, self._store, self._balance, self._models = plan, store, balance, len(plan.target.models)
        self._prefixes = [journal.session_prefix(plan.run.run_id, phase.index) for phase in plan.load.phases]
        self._sampler = sampler_of(plan)

    def session(self, phase: PhasePlan, number: int, entry: int | None = None, turns: int | None = None) -> Session:
        if entry is None:
            entry = phase.first_entry + self._sampler(self._plan.run.seed, number, phase.entries)
        model = self._model(phase, number)
        url = 0 if self._balance is None else self._balance.choose(number)
        identity = f"{self._prefixes[phase.index]}{number:012x}"
        return Session(phase.index, number, entry, turns or self._store.turns(entry), model, url, identity)

    def _model(self, phase: PhasePlan, number: int) -> int:
        """The model of a session."""
        if self._models == 1 or self._plan.target.model_strategy == ModelStrategy.ROUND_ROBIN:
            return number % self._models
        return int(uniform(self._plan.run.seed, f"model:{phase.name}", number) * self._models)
