"""Sessions as they begin: the entry, model and URL of each, by its number alone."""

from __future__ import annotations

from collections.abc import Sequence

from aiperf.registry.samplers import sampler_of
from aiperf.rundir import journal
from aiperf.rundir.store import Store
from aiperf.sdk.draws import uniform
from aiperf.sdk.driver import Session
from aiperf.sdk.plan import ModelStrategy, PhasePlan, Plan
from aiperf.sdk.trees import Stream, fork_of
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
        session = Session(phase.index, number, entry, self.turns(entry, turns), model, url, identity)
        if streams := self._streams(entry):
            session.forks = _forks(streams[0])
        return session

    def turns(self, entry: int, most: int | None = None) -> int:
        """How many turns a session of the entry makes, at most *most*: of a tree its first stream's."""
        streams = self._streams(entry)
        turns = streams[0].turns if streams else self._store.turns(entry)
        return min(turns, most) if most and turns else most or turns

    def _streams(self, entry: int) -> Sequence[Stream]:
        return self._store.streams(entry) if self._store.trees else ()

    def child(self, parent: Session, stream: int) -> Session:
        streams = self._store.streams(parent.entry)
        one, forked = streams[stream], fork_of(streams, stream)
        identity = journal.stream_id(self._prefixes[parent.phase], parent.number, stream)
        child = Session(parent.phase, parent.number, parent.entry, one.end, parent.model, parent.url, identity)
        child.turn, child.stream, child.forks, child.first = one.first, stream, _forks(one), parent.first
        if forked is not None and parent.script is not None:
            child.script = parent.script.forked()
        return child

    def _model(self, phase: PhasePlan, number: int) -> int:
        """The model of a session."""
        if self._models == 1 or self._plan.target.model_strategy == ModelStrategy.ROUND_ROBIN:
            return number % self._models
        return int(uniform(self._plan.run.seed, f"model:{phase.name}", number) * self._models)


def _forks(stream: Stream) -> bool:
    """Whether another stream goes on from what this one says."""
    return any(branch.forks for branch in stream.branches)
