"""Sessions of a tracelab file as recorded sessions: times from the first request, block ids, subagents at their place."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from pathlib import Path

from aiperf.sdk.environment import flag, number
from aiperf_traces.sessions import RecordedRequest, RecordedSession, Subagent
from msgspec import Struct

from aiperf_dataset_tracelab.rounds import Round, safe_id, sessions_of
from aiperf_dataset_tracelab.subagents import Links, SpawnWindow, linked

_LEAST_SPAWN_MS = 10_000
"""Shorter calls of tools that start agents are errors and empty returns, as a rule."""
_DIGITS = 6
"""Digits of a time in seconds."""


class _Switches(Struct, frozen=True):
    """How subagents are found, by the variables AIPERF_DATASET_TRACELAB_….

    least_ms: the shortest call of Claude that starts one.  joins: look for subagents at all; codex: for those of Codex.
    """

    least_ms: float
    joins: bool
    codex: bool


def switches() -> _Switches:
    """The settings of this process.

    Raises:
        ConfigError: A variable has another value than those that are possible.
    """
    return _Switches(
        number("AIPERF_DATASET_TRACELAB_MIN_SPAWN_MS", 0, 1e12, _LEAST_SPAWN_MS),
        flag("AIPERF_DATASET_TRACELAB_SUBAGENT_JOIN", True), flag("AIPERF_DATASET_TRACELAB_CODEX_SUBAGENT_JOIN", True),
    )  # fmt: skip


class _Blocks:
    """Ids of blocks, which never come again in a session or its subagents, unless they are kept."""

    def __init__(self, size: int) -> None:
        self._size, self._next = size, 1

    def of(self, rounds: Sequence[Round]) -> Iterator[array[int]]:
        """The ids of each round's prompt: those that the server had of the round before, and new ones."""
        before = array("q")
        for one in rounds:
            whole = one.input_tokens // self._size
            kept = before[: min(one.prefix_tokens // self._size, whole)]
            first, self._next = self._next, self._next + whole - len(kept)
            before = kept + array("q", range(first, self._next))
            yield before


class Recording:
    """What a file holds.

    links: what started what.  undated: rounds without any time, which are left out.  stray: rows of no session.

    Raises:
        BadDataset: The file can't be read, or a row is wrong; the message gives path and line.
        ConfigError: A variable AIPERF_DATASET_TRACELAB_… has another value than those that are possible.
    """

    def __init__(self, path: Path, block_tokens: int) -> None:
        rounds, self.stray = sessions_of(path)
        how = switches()
        self.links: Links = linked(rounds if how.joins else {}, how.least_ms, codex=how.codex)
        self.undated = sum(one.sent_s is None for session in rounds.values() for one in session)
        self._rounds, self._block_tokens, self._children = rounds, block_tokens, self.links.children()

    def sessions(self) -> Iterator[tuple[RecordedSession, float]]:
        """Sessions with the subagents that they started, and when their first requests were sent, in seconds since 1970.

        They come in the order of the file; subagents that have no place in the session that started them come last, as
        sessions of their own.
        """
        started = {child for children in self._children.values() for child in children}
        placed: set[str] = set()
        for name in (each for each in self._rounds if each not in started):
            yield from self._session(name, placed)
        without_place = started - placed
        for name in (each for each in self._rounds if each in without_place):
            yield from self._session(name, placed)

    def _session(self, name: str, placed: set[str]) -> Iterator[tuple[RecordedSession, float]]:
        """The session, unless it has no time; its subagents go to *placed*."""
        ordered = _ordered(self._rounds[name])
        if not ordered:
            return
        blocks, began_s = _Blocks(self._block_tokens), ordered[0].sent_s or 0.0
        requests = _requests(ordered, blocks, began_s)
        behind: dict[int, list[Subagent]] = {}
        for child, window in self._children.get(name, {}).items():
            agent = _subagent(child, _ordered(self._rounds[child]), window, blocks, began_s)
            place = None if agent is None else _place(requests, agent.at_s)
            if agent is not None and place is not None:
                behind.setdefault(place, []).append(agent)
                placed.add(child)
        entries: list[RecordedRequest | Subagent] = []
        for place, request in enumerate(requests):
            entries.append(request)
            entries += sorted(behind.get(place, ()), key=lambda agent: agent.at_s)
        yield RecordedSession(safe_id(name), self._block_tokens, entries), began_s


def _ordered(rounds: Sequence[Round]) -> list[Round]:
    """The rounds with a time, as they were sent; of one time by their index, then as they stand in the file."""
    return sorted((one for one in rounds if one.sent_s is not None), key=lambda one: (one.sent_s, one.index))


def _requests(rounds: Sequence[Round], blocks: _Blocks, began_s: float) -> list[RecordedRequest]:
    requests: list[RecordedRequest] = []
    end_s: float | None = None
    for one, ids in zip(rounds, blocks.of(rounds), strict=True):
        at_s = (one.sent_s or 0.0) - began_s
        requests.append(RecordedRequest(
            at_s=_rounded(at_s), input_tokens=max(1, one.input_tokens), output_tokens=max(1, one.output_tokens), blocks=ids,
            model=one.model, answer_s=None if one.answer_s is None else _rounded(one.answer_s),
            think_s=None if end_s is None else _rounded(max(at_s - end_s, 0.0)), tool_result=one.tool_result,
            stop="tool_use" if one.calls_tool else "end_turn",
        ))  # fmt: skip
        end_s = at_s + (one.answer_s or 0.0)
    return requests


def _subagent(name: str, rounds: Sequence[Round], window: SpawnWindow, blocks: _Blocks, began_s: float) -> Subagent | None:
    """The session *name* as the subagent of that window; None where it has no times."""
    if not rounds:
        return None
    at_s = _rounded(window.start_s - began_s)
    requests = _requests(rounds, blocks, began_s)
    for request in requests:
        request.at_s = max(request.at_s, at_s)  # both are rounded
    return Subagent(safe_id(name), at_s, requests, window.duration_ms, requests[0].model)


def _place(requests: Sequence[RecordedRequest], at_s: float) -> int | None:
    """The last request that was sent by then; None where there is none."""
    return next((place for place in range(len(requests) - 1, -1, -1) if requests[place].at_s <= at_s), None)


def _rounded(seconds: float) -> float:
    return round(seconds, _DIGITS)


__all__ = ["Recording", "switches"]
