"""Sessions as they begin: the entry, model and URL of each, by its number alone."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from aiperf.registry.samplers import sampler_of
from aiperf.rundir import journal
from aiperf.rundir.store import Store
from aiperf.sdk.draws import uniform
from aiperf.sdk.driver import Session
from aiperf.sdk.plan import ModelStrategy, PhasePlan, Plan
from aiperf.sdk.trees import Stream, fork_of
from aiperf.worker.url_balance import UrlBalance

_KEPT_TREES = 1024
"""Trees whose streams are kept, so that none is read twice while it is under way."""


class NewSessions:
    """Begins the sessions of a worker.  *balance*: None where there is one URL."""

    def __init__(self, plan: Plan, store: Store, balance: UrlBalance | None) -> None:
        self._plan, self._store, self._balance, self._models = plan, store, balance, len(plan.target.models)
        self._prefixes = [journal.session_prefix(plan.run.run_id, phase.home) for phase in plan.load.phases]
        self._sampler = sampler_of(plan)
        self._streams = lru_cache(_KEPT_TREES)(store.streams)  # each start of a child asks

    def entry(self, phase: PhasePlan, number: int) -> int:
        """The entry that the sampler chooses for a session."""
        return phase.first_entry + self._sampler(self._plan.run.seed, number, phase.entries)

    def session(self, phase: PhasePlan, number: int, entry: int | None = None, turns: int | None = None) -> Session:
        if entry is None:
            entry = self.entry(phase, number)
        model = self._model(phase, number)
        url = 0 if self._balance is None else self._balance.choose(number)
        identity = f"{self._prefixes[phase.index]}{number:012x}"
        if not (streams := self.streams(entry)):
            return Session(phase.index, number, entry, turns or self._store.turns(entry), model, url, identity)
        root = streams[0]
        made = root.turns if turns is None else min(root.turns, turns)
        session = Session(phase.index, number, entry, made, model, url, identity)
        session.forks = _forks(root)
        return session

    def streams(self, entry: int) -> Sequence[Stream]:
        """The streams of the entry's tree; () for a conversation that starts no others."""
        return self._streams(entry) if self._store.trees else ()

    def child(self, parent: Session, stream: int) -> Session:
        streams = self.streams(parent.entry)
        one, forked = streams[stream], fork_of(streams, stream)
        identity = journal.stream_id(self._prefixes[parent.phase], parent.number, stream)
        child = Session(parent.phase, parent.number, parent.entry, one.end, parent.model, parent.url, identity)
        child.turn, child.stream, child.forks, child.first = one.first, stream, _forks(one), parent.first
        child.lane, child.lap, child.limit = parent.lane, parent.lap, parent.limit
        if forked is not None and parent.script is not None:
            child.script = parent.script.forked(forked)
        return child

    def _model(self, phase: PhasePlan, number: int) -> int:
        """The model of a session."""
        if self._models == 1 or self._plan.target.model_strategy == ModelStrategy.ROUND_ROBIN:
            return number % self._models
        return int(uniform(self._plan.run.seed, f"model:{phase.name}", number) * self._models)


def _forks(stream: Stream) -> bool:
    """Whether another stream goes on from what this one says."""
    return any(branch.forks for branch in stream.branches)
