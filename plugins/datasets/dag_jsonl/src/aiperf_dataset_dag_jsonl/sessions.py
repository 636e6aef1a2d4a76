"""The lines of a dag_jsonl file: what each may have, and how they name one another (spec: datasets §3.14)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from aiperf import BadDataset
from aiperf.sdk.model import names
from aiperf_rows.row_files import lines
from msgspec import Meta, Struct

_ARRAYS = "message_array_with_responses"
_Positive = Annotated[int, Meta(ge=1)]
_Time = Annotated[float, Meta(ge=0)]


class Fork(Struct, forbid_unknown_fields=True):
    """A child that goes on from its parent's history.  background: the parent goes on, too."""

    child: str
    background: bool = False


class Spawn(Struct, forbid_unknown_fields=True):
    """Children that begin anew.  join_at: the turn that waits for them; None is the next one."""

    children: list[str]
    join_at: int | None = None


class Round(Struct, forbid_unknown_fields=True):
    """A round of an orchestrator.  think_time_ms: before it; None is the orchestrator's."""

    spawns: list[str]
    think_time_ms: _Time | None = None


class DagTurn(Struct, forbid_unknown_fields=True):
    """A request.  delay: ms before it."""

    messages: list[dict[str, Any]]
    model: str | None = None
    max_tokens: _Positive | None = None
    tools: list[dict[str, Any]] | None = None
    extra: dict[str, Any] = {}
    delay: _Time = 0
    forks: list[str | Fork] = []
    spawns: list[str | Spawn] = []

    def forked(self) -> list[Fork]:
        """The forks in one form."""
        return [Fork(one) if isinstance(one, str) else one for one in self.forks]

    def spawned(self) -> list[Spawn]:
        """The spawns in one form."""
        return [Spawn([one]) if isinstance(one, str) else one for one in self.spawns]


class DagRow(Struct, forbid_unknown_fields=True):
    """A line of the file."""

    session_id: str
    turns: list[DagTurn] = []
    context_mode: Literal["deltas_without_responses", "message_array_with_responses"] | None = None
    pre_session_spawns: list[str] = []
    orchestrator: bool = False
    spawns: list[str] = []
    rounds: _Positive | list[Round] | None = None
    think_time_ms: _Time | None = None
    think_time_sigma: Annotated[float, Meta(gt=0, lt=10)] | None = None
    think_time_min_ms: _Time | None = None
    think_time_max_ms: _Time | None = None

    @property
    def arrays(self) -> bool:
        """Whether each turn sends its own messages alone."""
        return self.context_mode == _ARRAYS

    def children(self) -> Iterator[tuple[str, str]]:
        """The names of the sessions that it starts, with where."""
        yield from ((child, "pre_session_spawns") for child in self.pre_session_spawns)
        for index, turn in enumerate(self.turns):
            yield from ((fork.child, f"forks of turn {index}") for fork in turn.forked())
            yield from ((child, f"spawns of turn {index}") for spawn in turn.spawned() for child in spawn.children)
        yield from ((child, "spawns") for child in self.spawns)
        for index, one in enumerate(self.rounds if isinstance(self.rounds, list) else ()):
            yield from ((child, f"round {index}") for child in one.spawns)


_decode = msgspec.json.Decoder(DagRow).decode


class DagFile:
    """The sessions of a file by their names, checked together.  roots: names of those that nobody starts.

    Raises:
        BadDataset: The message gives path and line, or session and turn.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.sessions: dict[str, DagRow] = {}
        self._lines: dict[str, int] = {}
        for number, line in lines(path):
            text = line.removeprefix(b"\xef\xbb\xbf")
            if text.strip():
                self._add(number, text)
        if not self.sessions:
            raise BadDataset(f"{path} has no conversations", "write one JSON object per line, with session_id and turns")
        self._forked_by: dict[str, str] = {}
        for name in self.sessions:
            self._check(name)
        started = {child for one in self.sessions.values() for child, _ in one.children()}
        self.roots = [name for name in self.sessions if name not in started]
        self._check_circles()
        for name, session in self.sessions.items():
            self._check_system(name, session)
            if session.pre_session_spawns and name in started:
                raise self._wrong(name, "has pre_session_spawns, and another session starts it")

    def _add(self, number: int, text: bytes) -> None:
        try:
            session = _decode(text)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            known = sorted(msgspec.structs.fields(DagRow), key=lambda field: field.name)
            hint = f"a conversation has {names([field.name for field in known])}" if "unknown field" in str(error) else ""
            raise BadDataset(f"{self.path}, line {number}: {_said(error)}", *([hint] if hint else [])) from error
        if session.session_id in self.sessions:
            first = self._lines[session.session_id]
            raise BadDataset(f"{self.path}, line {number}: the session_id {session.session_id!r} is on line {first}, too")
        self.sessions[session.session_id], self._lines[session.session_id] = session, number

    def _wrong(self, name: str, why: str) -> BadDataset:
        return BadDataset(f"{self.path}, line {self._lines[name]}: session {name!r} {why}")

    def _check(self, name: str) -> None:
        session = self.sessions[name]
        for child, where in session.children():
            if child not in self.sessions:
                raise self._wrong(name, f"starts {child!r} ({where}), and no line has that session_id")
        if session.orchestrator:
            self._check_orchestrator(name, session)
        else:
            self._check_plain(name, session)
        for child in session.pre_session_spawns:
            if any(fork.child == child for one in self.sessions.values() for turn in one.turns for fork in turn.forked()):
                raise self._wrong(name, f"starts {child!r} before its turns, which is forked elsewhere")

    def _check_plain(self, name: str, session: DagRow) -> None:
        if not session.turns:
            raise self._wrong(name, "has no turns, and is no orchestrator")
        given = ("spawns", session.spawns), ("rounds", session.rounds), ("think_time_ms", session.think_time_ms)
        for key, value in given:
            if value:
                raise self._wrong(name, f"has {key}, which are for orchestrators: give spawns to a turn, and delay")
        for index, turn in enumerate(session.turns):
            self._check_turn(name, session, index, turn)

    def _check_turn(self, name: str, session: DagRow, index: int, turn: DagTurn) -> None:
        where, last = f"turn {index}", len(session.turns) - 1
        if not turn.messages:
            raise self._wrong(name, f"has no messages in {where}")
        for place, message in enumerate(turn.messages):
            if not isinstance(message.get("role"), str):
                raise self._wrong(name, f"has a message without a role: message {place} of {where}")
        for kind, children in (
            ("forks", [fork.child for fork in turn.forked()]),
            ("spawns", [child for spawn in turn.spawned() for child in spawn.children]),
        ):
            twice = next((child for child in children if children.count(child) > 1), None)
            if twice is not None:
                raise self._wrong(name, f"{kind} {twice!r} twice in {where}")
        for fork in turn.forked():
            if index != last and not fork.background:
                why = "which is not its last: a fork in the foreground ends it"
                raise self._wrong(name, f"forks {fork.child!r} in {where}, {why}")
            if self.sessions[fork.child].arrays:
                raise self._wrong(name, f"forks {fork.child!r}, whose context_mode is {_ARRAYS}: it takes no history")
            other = self._forked_by.setdefault(fork.child, f"{name}/{index}")
            if other != f"{name}/{index}":
                parent, _, turn_of = other.rpartition("/")
                raise self._wrong(name, f"forks {fork.child!r} in {where}, which turn {turn_of} of {parent!r} forks already")
        for spawn in turn.spawned():
            if not spawn.children:
                raise self._wrong(name, f"spawns no children in {where}")
            if spawn.join_at is not None and not index < spawn.join_at <= last:
                later = f"later turns are {index + 1} to {last}" if index < last else "it is the last turn"
                raise self._wrong(name, f"has join_at {spawn.join_at} in {where}: {later}")

    def _check_orchestrator(self, name: str, session: DagRow) -> None:
        listed = isinstance(session.rounds, list)
        if session.turns:
            raise self._wrong(name, "is an orchestrator, and has turns: it sends nothing itself")
        if session.pre_session_spawns:
            raise self._wrong(name, "is an orchestrator, and has pre_session_spawns: give them as spawns")
        if listed and session.spawns:
            raise self._wrong(name, "has spawns beside a list of rounds: each round has its own")
        if (not listed and not session.spawns) or (listed and not session.rounds):
            raise self._wrong(name, "is an orchestrator that starts nothing: give it spawns or rounds")
        if isinstance(session.rounds, list):
            children = [child for one in session.rounds for child in one.spawns]
            if any(not one.spawns for one in session.rounds):
                raise self._wrong(name, "has a round that starts nothing")
        else:
            children = session.spawns
        twice = next((child for child in children if children.count(child) > 1), None)
        if twice is not None:
            raise self._wrong(name, f"starts {twice!r} twice")
        drawn = session.think_time_sigma, session.think_time_min_ms, session.think_time_max_ms
        if session.think_time_ms is not None and session.rounds is None:
            raise self._wrong(name, "has a think time, and no rounds that it could come before")
        if session.think_time_sigma is not None and session.think_time_ms is None:
            raise self._wrong(name, "has think_time_sigma without think_time_ms, its median")
        least, most = drawn[1:]
        if session.think_time_sigma is None and (least is not None or most is not None):
            raise self._wrong(name, "has bounds of its think time, and no think_time_sigma: nothing is drawn")
        if least is not None and most is not None and least > most:
            raise self._wrong(name, f"has think_time_min_ms {least:g} above think_time_max_ms {most:g}")

    def _check_circles(self) -> None:
        """
        Raises:
            BadDataset: A session starts itself, through others or not.
        """
        good: set[str] = set()
        for name in self.sessions:
            path, stack = dict[str, None](), [(name, False)]
            while stack:
                one, left = stack.pop()
                if left:
                    path.pop(one)
                    good.add(one)
                elif one in path:
                    circle = [*list(path)[list(path).index(one) :], one]
                    raise self._wrong(one, f"starts itself: {' -> '.join(circle)}")
                elif one not in good:
                    path[one] = None
                    stack.append((one, True))
                    stack += [(child, False) for child, _ in self.sessions[one].children()]

    def _check_system(self, name: str, session: DagRow) -> None:
        for index, turn in enumerate(session.turns):
            for place, message in enumerate(turn.messages):
                if message["role"] not in ("system", "developer"):
                    continue
                if session.arrays and place:
                    raise self._wrong(name, f"has a system message that is not the first of turn {index}")
                if not session.arrays and (index or name in self._forked_by):
                    why = "another session forks it" if name in self._forked_by else "it may stand in turn 0 alone"
                    raise self._wrong(name, f"has a system message in turn {index}: {why}")


def _said(error: Exception) -> str:
    """What msgspec says of a line, as the end of a sentence."""
    if isinstance(error, msgspec.ValidationError):
        return str(error)
    return f"no JSON: {error}"


__all__ = ["DagFile", "DagRow", "DagTurn"]
