"""Which sessions were started by which: by the times of the calls that start agents (spec: datasets §3.12)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from aiperf_dataset_tracelab.rounds import Round

_STARTS = frozenset(("Agent", "Task"))
"""Tools of Claude that start an agent and wait for it."""
_CODEX, _SPAWN, _WAIT = "codex", "spawn_agent", "wait_agent"


class SpawnWindow(Struct, frozen=True):
    """A time in which *parent* waited for an agent that it had started.

    duration_ms: how long the agent ran, as the parent's tool measured it.
    """

    start_s: float
    end_s: float
    parent: str
    duration_ms: int

    @property
    def rank(self) -> tuple[float, float, str]:
        """The tightest, then the earliest window is the first one."""
        return self.end_s - self.start_s, self.start_s, self.parent


class Links(Struct, frozen=True):
    """windows: by the session that was started within each.

    found: all windows.  ambiguous: sessions that lie in several.  deeper: sessions started by one that was started itself.
    """

    windows: dict[str, SpawnWindow]
    found: int
    ambiguous: int
    deeper: int

    def children(self) -> dict[str, dict[str, SpawnWindow]]:
        """By session the sessions that it started, in the file's order; none of one that was started itself."""
        found: dict[str, dict[str, SpawnWindow]] = {}
        for child, window in self.windows.items():
            if window.parent not in self.windows:
                found.setdefault(window.parent, {})[child] = window
        return found


def linked(sessions: Mapping[str, Sequence[Round]], least_ms: float, *, codex: bool) -> Links:
    """What started what.

    A session belongs to the tightest, then the earliest window of another session of the same user and project that holds all
    its times.  least_ms: the shortest call of Claude that counts.  codex: sessions of Codex start others, too.
    """
    windows: dict[tuple[str | int | None, str | int | None], list[SpawnWindow]] = {}
    count = 0
    for name, rounds in sessions.items():
        found = list(_of_codex(name, rounds)) if rounds[0].provider == _CODEX else list(_of_claude(name, rounds, least_ms))
        if rounds[0].provider == _CODEX and not codex:
            continue
        count += len(found)
        windows.setdefault(rounds[0].owner, []).extend(found)
    links: dict[str, SpawnWindow] = {}
    ambiguous = 0
    for name, rounds in sessions.items():
        starts = [one.first_s for one in rounds if one.first_s is not None]
        ends = [one.last_s for one in rounds if one.last_s is not None]
        if not starts or not ends:
            continue
        first, last = min(starts), max(ends)
        holding = [
            window
            for window in windows.get(rounds[0].owner, ())
            if window.parent != name and window.start_s <= first and last <= window.end_s
        ]
        if holding:
            links[name] = min(holding, key=lambda window: window.rank)
            ambiguous += len(holding) > 1
    return Links(links, count, ambiguous, sum(window.parent in links for window in links.values()))


def _of_claude(name: str, rounds: Sequence[Round], least_ms: float) -> Iterator[SpawnWindow]:
    for call in (call for one in rounds for call in one.calls if call.tool in _STARTS):
        if call.latency_ms is None or not call.latency_ms >= least_ms:
            continue
        if call.emitted_s is not None and call.result_s is not None:
            yield SpawnWindow(call.emitted_s, call.result_s, name, int(call.latency_ms))


def _of_codex(name: str, rounds: Sequence[Round]) -> Iterator[SpawnWindow]:
    """One window: Codex starts an agent at once and waits later, and which wait is for which agent isn't recorded."""
    calls = [call for one in rounds for call in one.calls]
    starts = [call.emitted_s for call in calls if call.tool == _SPAWN and call.emitted_s is not None]
    ends = [call.result_s for call in calls if call.tool == _WAIT and call.result_s is not None]
    if starts and ends and max(ends) > min(starts):
        yield SpawnWindow(min(starts), max(ends), name, int((max(ends) - min(starts)) * 1000))


__all__ = ["Links", "SpawnWindow", "linked"]
