"""Trees of sessions: each start of a session is a stream of its own."""

from __future__ import annotations

from aiperf import BadDataset, Message, Turn
from aiperf.sdk.trees import Branch, Pause, Stream, TreeBuilder

from aiperf_dataset_dag_jsonl.sessions import DagFile, DagRow, DagTurn

_MOST = 100_000
"""Turns of a tree; a file in which each session starts two others twice has more than any run can send."""


class SessionTree:
    """The tree of one root: its *turns*, stream by stream, and its :attr:`streams`.

    cap_ms: the longest delay and think time; None is no bound.
    """

    def __init__(self, file: DagFile, root: str, cap_ms: float | None) -> None:
        self._file, self._cap_ms = file, cap_ms
        self._builder = TreeBuilder()
        self.turns: list[Turn] = []
        self._grow(root, root)
        self.streams: tuple[Stream, ...] = self._builder.streams()

    def _grow(self, name: str, root: str) -> int:
        session = self._file.sessions[name]
        number = self._builder.stream(name, len(session.turns))
        self.turns += [self._turn(turn, alone=session.arrays) for turn in session.turns]
        if len(self.turns) > _MOST or number > _MOST:
            raise BadDataset(f"{self._file.path}: the tree of {root!r} has more than {_MOST:,} turns or starts")

        def grown(children: list[str]) -> tuple[int, ...]:
            return tuple(self._grow(child, root) for child in children)

        if session.orchestrator:
            self._rounds(session, number, root)
            return number
        if session.pre_session_spawns:
            self._builder.branch(number, Branch(grown(session.pre_session_spawns)))
        for index, turn in enumerate(session.turns):
            last = index + 1 == len(session.turns)
            if turn.forks:
                self._builder.branch(number, Branch(grown([one.child for one in turn.forked()]), index, forks=True))
            for spawn in turn.spawned():
                joins = spawn.join_at if spawn.join_at is not None else None if last else index + 1
                self._builder.branch(number, Branch(grown(spawn.children), index, joins))
        return number

    def _rounds(self, session: DagRow, number: int, root: str) -> None:
        """The rounds of an orchestrator; each waits for all children of the one before."""
        if isinstance(session.rounds, list):
            rounds = [(one.spawns, one.think_time_ms) for one in session.rounds]
        else:
            rounds = [(session.spawns, None)] * (session.rounds or 1)
        before: tuple[int, ...] = ()
        for spawns, think_ms in rounds:
            children = tuple(self._grow(child, root) for child in spawns)
            branch = Branch(children, behind=before, pause=self._pause(session, think_ms))
            before = (self._builder.branch(number, branch),)

    def _pause(self, session: DagRow, own_ms: float | None) -> Pause | None:
        cap = self._cap_ms
        if own_ms is not None or session.think_time_sigma is None:
            fixed = session.think_time_ms if own_ms is None else own_ms
            return Pause(fixed if cap is None else min(fixed, cap)) if fixed else None
        most = session.think_time_max_ms
        most = cap if most is None else most if cap is None else min(most, cap)
        return Pause(session.think_time_ms or 0.0, session.think_time_sigma, session.think_time_min_ms, most)

    def _turn(self, turn: DagTurn, *, alone: bool) -> Turn:
        delay = turn.delay if self._cap_ms is None else min(turn.delay, self._cap_ms)
        return Turn(
            items=tuple(map(Message.of, turn.messages)), model=turn.model or "", max_tokens=turn.max_tokens,
            tools=None if turn.tools is None else tuple(turn.tools), extra=turn.extra, delay_ms=delay or None, reset=alone,
        )  # fmt: skip
