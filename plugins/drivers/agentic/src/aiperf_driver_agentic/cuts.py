"""Cuts of recorded trees: what was sent before an instant is history, and what comes behind it is measured.

Spec: agentic §5.
"""

from __future__ import annotations

from collections.abc import Iterator

from aiperf.sdk.trees import Branch
from msgspec import Struct

from aiperf_driver_agentic.recording import Recording


class Cut(Struct, frozen=True):
    """A tree as it stands at an instant.

    at_ns: the instant on the trace's clock, None for a trace without times.  share: where it lies between the first start and
    the last one, or among the root's turns.  going: the place of the next turn of each stream that has begun and goes on.
    begun: streams that have begun, those that have ended among them.  branches: (stream, number) of branches that have begun.
    primers: the place of the last request before the instant of each stream that goes on and has one.
    """

    at_ns: int | None
    share: float
    going: dict[int, int]
    begun: frozenset[int]
    branches: frozenset[tuple[int, int]]
    primers: dict[int, int]

    def lead_ns(self, recording: Recording, place: int) -> int:
        """How long before the instant a request was sent; 0 without times."""
        return 0 if self.at_ns is None or recording.times is None else self.at_ns - recording.times[place][0]


def cut(recording: Recording, least: float, most: float, drawn: float) -> Cut | None:
    """The tree cut between the shares *least* and *most* of its time, at *drawn* (from 0 up to 1) between the two.

    None where nothing is left behind the cut, or all that is left waits for something else.
    """
    if recording.times is None:
        return _cut_by_turns(recording, least, most, drawn)
    starts = [start for start, _ in recording.times]
    first_ns, span_ns = min(starts), max(starts) - min(starts)
    share = least + (most - least) * drawn
    at_ns = round(first_ns + span_ns * least + (span_ns * most - span_ns * least) * drawn)
    begun, branches = {0}, set[tuple[int, int]]()
    going: dict[int, int] = {}
    for stream, one in enumerate(recording.streams):
        if stream not in begun:
            continue
        place = next((place for place in range(one.first, one.end) if starts[place] >= at_ns), None)
        if place is not None:
            going[stream] = place
        for number, branch in enumerate(one.branches):
            if _live(branch, at_ns, None if branch.after is None else starts[one.first + branch.after]):
                branches.add((stream, number))
                begun.update(branch.children)
    primers = {stream: place - 1 for stream, place in going.items() if place > recording.streams[stream].first}
    found = Cut(at_ns, share, going, frozenset(begun), frozenset(branches), primers)
    return found if set(going) - set(waiting(recording, found)) else None


def waiting(recording: Recording, found: Cut) -> Iterator[int]:
    """The streams whose next turn joins children that go on."""
    for stream, place in found.going.items():
        one = recording.streams[stream]
        for number, branch in enumerate(one.branches):
            joins = branch.joins is not None and one.first + branch.joins == place and (stream, number) in found.branches
            if joins and any(child in found.going for child in branch.children):
                yield stream
                break


def _live(branch: Branch, at_ns: int, spawned_ns: int | None) -> bool:
    """Whether the branch had begun by *at_ns*.  *spawned_ns*: start of the turn that starts it."""
    by_start = branch.start_ms is not None and at_ns >= round(branch.start_ms * 1e6)
    return by_start or spawned_ns is None or spawned_ns < at_ns


def _cut_by_turns(recording: Recording, least: float, most: float, drawn: float) -> Cut | None:
    """A cut behind a turn of the root, whose children up to then have ended."""
    root = recording.streams[0]
    count = root.turns
    if count < 2:
        return None
    low, high = (min(int(share * count), count - 2) for share in (least, most))
    turn = low + int(drawn * (high - low + 1))
    ended, begun = set[tuple[int, int]](), {0}
    for stream, one in enumerate(recording.streams):
        if stream not in begun:
            continue
        for number, branch in enumerate(one.branches):
            if stream or branch.after is None or branch.after <= turn:
                ended.add((stream, number))
                begun.update(branch.children)
    return Cut(None, turn / count, {0: turn + 1}, frozenset(begun), frozenset(ended), {0: turn})
