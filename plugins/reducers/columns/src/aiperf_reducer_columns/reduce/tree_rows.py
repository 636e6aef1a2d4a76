"""Requests of trees: the stream of each, its place in the tree and its ids."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence

import numpy as np
from aiperf.parts import journal
from aiperf.parts.journal import Store
from aiperf.sdk.columns import ABSENT, TREE_COLUMNS, TREE_TEXTS, Column, Floats
from aiperf.sdk.plan import Plan
from aiperf.sdk.trees import Stream


def prefix_of(plan: Plan, phase: int) -> str:
    """The ids of sessions of a phase, without their numbers."""
    return journal.session_prefix(plan.run.run_id, plan.load.phases[phase].home)


class TreeRows:
    """The requests of a batch, of a run whose data set has trees; *numbers*: their columns as they are stored.

    columns: TREE_COLUMNS, and ``turn`` counted in its stream.  texts: ids of streams in place of the sessions', and TREE_TEXTS.
    """

    def __init__(self, numbers: Mapping[str, Floats], store: Store, plan: Plan) -> None:
        places = (numbers[name].astype(np.int64).tolist() for name in ("entry", "turn", "phase", "session"))
        held = np.nan_to_num(numbers["held_by"], nan=-1.0).astype(np.int64).tolist()
        known: dict[int, tuple[tuple[Stream, ...], list[int]]] = {}
        rows: list[tuple[float, ...]] = []
        self._names: list[str] = []
        self._ids: list[str] = []
        self._parents: list[str | None] = []
        self._roots: list[str] = []
        self._held: list[str | None] = []
        prefixes: dict[int, str] = {}
        for entry, turn, phase, session, by in zip(*places, held, strict=True):
            if entry not in known:
                streams = store.streams(entry)
                known[entry] = streams, [stream.first for stream in streams]
            streams, firsts = known[entry]
            number = bisect_right(firsts, turn) - 1 if streams else 0
            prefix = prefixes.setdefault(phase, prefix_of(plan, phase))
            root = journal.stream_id(prefix, session, 0)
            self._roots.append(root)
            self._ids.append(journal.stream_id(prefix, session, number))
            if not streams:
                rows.append((turn, 0, 0, -1, ABSENT))
                self._held.append(None)
                self._names.append(store.id(entry))
                self._parents.append(None)
                continue
            stream = streams[number]
            other = bisect_right(firsts, by) - 1
            rows.append((turn - stream.first, number, stream.depth, stream.parent, by - firsts[other] if by >= 0 else ABSENT))
            self._held.append(journal.stream_id(prefix, session, other) if by >= 0 else None)
            self._names.append(stream.id)
            told = stream.parent >= 0 and not stream.before
            self._parents.append(journal.stream_id(prefix, session, stream.parent) if told else None)
        table = np.array(rows, dtype=np.float64).reshape(-1, 1 + len(TREE_COLUMNS))
        self.columns: dict[str, Column] = {"turn": table[:, 0], **dict(zip(TREE_COLUMNS, table.T[1:], strict=True))}
        self._depths = [int(row[2]) for row in rows]
        self._positions = [f"{'child' if row[2] else 'root'} {'later' if row[0] else 'first'}" for row in rows]

    @property
    def texts(self) -> dict[str, Sequence[str | None]]:
        """By name, one for each request."""
        parent, root, depth, position, held = TREE_TEXTS
        return {
            "conversation_id": self._names, "session_id": self._ids, parent: self._parents, root: self._roots,
            depth: list(map(str, self._depths)), position: self._positions, held: self._held,
        }  # fmt: skip
