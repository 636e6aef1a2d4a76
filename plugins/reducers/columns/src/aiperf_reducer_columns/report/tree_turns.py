"""Turns that trees have not sent, by what drivers told of the trees: for the ledger."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from aiperf.parts.journal import NODES, OUTCOMES, PHASE, RELEASED, TRUNCATED, UNKNOWN, Store
from aiperf.parts.segments import ShardEvent
from aiperf.sdk.columns import GRADE_COLUMNS, LIST_COLUMNS, NUMBERS, TEXTS, Column, Floats, Ints, RecordBatch, ragged
from aiperf.sdk.plan import PhasePlan, Plan
from aiperf.sdk.trees import Stream, TreeBegin, TreeEnd, told_trees

from aiperf_reducer_columns.reduce.batches import REST, stored_batches
from aiperf_reducer_columns.reduce.tree_rows import TreeRows
from aiperf_reducer_columns.report.evidence import planned
from aiperf_reducer_columns.report.planned_trees import PlannedTrees
from aiperf_reducer_columns.report.unsent import LEDGER_ROWS

_Key = tuple[int, int]
"""The phase that numbers a tree's session, and the number."""


class UnsentTurns(NamedTuple):
    """Turns of trees of a phase, row by row: the tree's session and entry, the turn's place in the entry, its outcome, and the
    lane of the tree, -1 where it has none."""

    session: Ints
    entry: Ints
    place: Ints
    outcome: Ints
    lane: Ints


class TreeTurns:
    """What became of the trees of a run that its drivers told of.

    *path*: of the journal.  *events*: of all shards.  *accounts_for*: whether every request of a phase is known.
    *again*: requests were reduced again, and their stored columns are stale.
    """

    def __init__(
        self, plan: Plan, path: Path, events: Iterable[ShardEvent], accounts_for: Callable[[PhasePlan], bool], *,
        again: bool = False,
    ) -> None:  # fmt: skip
        self._plan, self._planned, self._path, self._accounts_for = plan, PlannedTrees(path), path, accounts_for
        self._folders = (path / REST,) if again else (path, path / REST)
        self._homes = [phase.home for phase in plan.load.phases]
        events = tuple(events)
        self._begins, self._ends = dict[_Key, TreeBegin](), dict[_Key, TreeEnd]()
        for one in told_trees(value for _, kind, value in events if kind == NODES):
            if not 0 <= one.phase < len(self._homes):
                continue
            key = self._homes[one.phase], one.session
            if isinstance(one, TreeBegin):
                self._begins[key] = one
            else:
                self._ends[key] = one
        self._latest = max((value["phase"] for _, kind, value in events if kind == PHASE), default=0)
        begun = {one.phase for one in self._begins.values()} | {home for home, _ in self._begins}
        self._untold = {phase.index for phase in plan.load.phases if phase.index not in begun and self._whole(phase)}
        self._told = begun | self._untold

    def _whole(self, phase: PhasePlan) -> bool:
        """Whether the phase's driver begins trees at their first turns, and nothing plans how many."""
        trees = bool(self._plan.plugins.fact("drivers", phase.driver, "trees"))
        return trees and phase.session_count is None and phase.sessions_file is None and phase.home == phase.index

    def planned(self, phase: PhasePlan) -> int | None:
        """Number of the phase's planned arrivals; None where it depends on time or on the answers."""
        return planned(phase, told=phase.index in self._told)

    def counts(self, phase: int) -> Mapping[int, int] | None:
        """Unsent turns of the phase's trees by outcome; None where nobody told of trees."""
        if phase not in self._told:
            return None
        return Counter(self._unsent[phase].outcome.tolist()) if phase in self._unsent else {}

    def batches(self, phase: int) -> Iterator[RecordBatch]:
        """The unsent turns of the phase's trees, with nothing known but who they are."""
        turns = self._unsent.get(phase)
        for at in range(0, 0 if turns is None else len(turns.place), LEDGER_ROWS):
            part = UnsentTurns(*(column[at : at + LEDGER_ROWS] for column in turns or ()))
            yield _batch(part, phase, self._plan, Store(self._path))

    @cached_property
    def _unsent(self) -> dict[int, UnsentTurns]:
        """By phase, the turns that were not sent; phases without any are missing."""
        rows: defaultdict[int, list[tuple[Any, ...]]] = defaultdict(list)
        if not self._told:
            return {}
        sent = SentTurns.read(self._folders, self._homes)
        begins = self._begins | {(one.phase, one.session): one for one in sent.partial(self._untold, self._planned)}
        for key, begin in begins.items():
            end, streams = self._ends.get(key), self._planned.streams(begin.entry)
            phase = max(begin.phase, min(self._latest, key[0])) if end is None else end.phase
            places, outcomes = self._rest(begin, end, streams, sent.places(key), phase)
            if len(places):
                count = len(places)
                rows[phase].append(
                    (np.full(count, key[1]), np.full(count, begin.entry), places, outcomes, np.full(count, begin.lane))
                )
        return {phase: UnsentTurns(*map(np.concatenate, zip(*parts, strict=True))) for phase, parts in rows.items()}

    def _rest(
        self, begin: TreeBegin, end: TreeEnd | None, streams: Sequence[Stream], sent: Ints, phase: int
    ) -> tuple[Ints, Ints]:
        """The places of a tree's unsent turns, and their outcomes."""
        unsent = np.zeros(streams[-1].end if streams else 0, dtype=bool)
        outcomes = np.full(len(unsent), TRUNCATED if self._accounts_for(self._plan.load.phases[phase]) else UNKNOWN)
        for stream, first in ((at, 0) for at in range(len(streams))) if begin.ahead is None else begin.ahead:
            if 0 <= stream < len(streams):
                unsent[max(first, streams[stream].first) : streams[stream].end] = True
        for stream, first, why in () if end is None else end.fates:
            if 0 <= stream < len(streams):
                outcome = TRUNCATED if why == OUTCOMES[TRUNCATED] else RELEASED
                outcomes[max(first, streams[stream].first) : streams[stream].end] = outcome
        unsent[sent[sent < len(unsent)]] = False
        places = np.flatnonzero(unsent)
        return places, outcomes[places]


class SentTurns(NamedTuple):
    """Turns of trees that were sent, in the order of the trees: the phase that numbers the tree's session, the number, the
    entry and the place of each."""

    home: Ints
    session: Ints
    entry: Ints
    place: Ints

    @classmethod
    def read(cls, folders: Sequence[Path], homes: Sequence[int]) -> SentTurns:
        """Read the stored requests.  *homes*: of each phase, the one that numbers its sessions."""
        parts: list[list[Ints]] = [[np.empty(0, dtype=np.int64)] for _ in cls._fields]
        for batch in chain.from_iterable(map(stored_batches, folders)):
            if batch.count:
                columns = batch.columns()
                for part, name in zip(parts, ("phase", "session", "entry", "turn"), strict=True):
                    part.append(columns[name].astype(np.int64))
        phase, session, entry, place = map(np.concatenate, parts)
        home = np.array(homes, dtype=np.int64)[phase]
        order = np.lexsort((session, home))
        return cls(home[order], session[order], entry[order], place[order])

    def places(self, key: _Key) -> Ints:
        """The places of a tree's turns."""
        begin, end = np.searchsorted(self.home, key[0], "left"), np.searchsorted(self.home, key[0], "right")
        of = self.session[begin:end]
        first, last = np.searchsorted(of, key[1], "left"), np.searchsorted(of, key[1], "right")
        return self.place[begin + first : begin + last]

    def partial(self, phases: Collection[int], planned: PlannedTrees) -> Iterator[TreeBegin]:
        """The trees of these phases of which turns are missing."""
        rows = np.flatnonzero(np.isin(self.home, list(phases)))
        keys = np.stack([self.home[rows], self.session[rows], self.entry[rows]])
        trees, counts = np.unique(keys, axis=1, return_counts=True)
        turns = {entry: streams[-1].end for entry in set(trees[2].tolist()) if (streams := planned.streams(entry))}
        for (home, session, entry), count in zip(trees.T.tolist(), counts.tolist(), strict=True):
            if count < turns.get(entry, 0):
                yield TreeBegin(home, session, entry)


def _batch(turns: UnsentTurns, phase: int, plan: Plan, store: Store) -> RecordBatch:
    count = len(turns.place)
    own: dict[str, Floats] = {
        "phase": np.full(count, float(phase)), "session": turns.session.astype(np.float64),
        "turn": turns.place.astype(np.float64), "entry": turns.entry.astype(np.float64),
        "outcome": turns.outcome.astype(np.float64), "lane": np.where(turns.lane < 0, np.nan, turns.lane),
        "held_by": np.full(count, np.nan),
    }  # fmt: skip
    none = [list[float]()] * count
    columns: dict[str, Column] = {name: np.full(count, np.nan) for name in (*NUMBERS, *GRADE_COLUMNS)}
    columns |= dict.fromkeys(LIST_COLUMNS, ragged(none, none))
    texts: dict[str, Any] = dict.fromkeys(TEXTS, [None] * count)
    if not store.trees:
        return RecordBatch(columns | own, np.zeros(count, dtype=bool), texts)
    trees = TreeRows(own, store, plan)
    return RecordBatch(columns | own | trees.columns, np.zeros(count, dtype=bool), texts | trees.texts)
