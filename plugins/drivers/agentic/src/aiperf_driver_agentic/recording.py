"""What drivers know of a recorded tree: its streams, the times of its requests, and the order that these gave."""

from __future__ import annotations

from bisect import bisect_left

from aiperf.sdk.driver import RequestStarter
from aiperf.sdk.trees import Branch, Stream


class Recording:
    """An entry of the data set.

    name: the trace's id.  streams: the root's first; a conversation that starts no others has one.  times: start and end in ns
    of each request, by its place among the turns of all streams; None where one of them isn't recorded.
    """

    def __init__(self, requests: RequestStarter, entry: int) -> None:
        self.name, turns = requests.name(entry), requests.turns(entry)
        self.streams = tuple(requests.streams(entry)) or (Stream(self.name, 0, turns),)
        times = [requests.recorded_ns(entry, place) for place in range(turns)]
        known = [each for each in times if each is not None]
        self.times = known if len(known) == turns and turns else None

    def branch_of(self, stream: int) -> tuple[int, Branch]:
        """The branch that starts a stream, which is no root, and its number in the parent."""
        branches = self.streams[self.streams[stream].parent].branches
        return next((number, branch) for number, branch in enumerate(branches) if stream in branch.children)

    def ended_before(self, stream: int, place: int) -> tuple[tuple[int, int], ...]:
        """The requests of other streams that had to return before the one at *place* left: their streams and places.

        Of each other stream of its scope it is the latest request that began before this one and had ended by then.  One that
        ended before another of these began is left out, because that one has waited for it.
        """
        if self.times is None:
            return ()
        start_ns, scope = self.times[place][0], self.streams[stream].scope
        latest = [
            (other, last) for other, one in enumerate(self.streams)
            if other != stream and one.scope == scope and (last := self._latest(other, start_ns)) is not None
        ]  # fmt: skip
        times = self.times
        begun_ns = max((times[last][0] for _, last in latest), default=0)
        return tuple(
            (other, last) for at, (other, last) in enumerate(latest)
            if times[last][1] > begun_ns or not self._precedes(last, latest[:at] + latest[at + 1 :])
        )  # fmt: skip

    def _precedes(self, place: int, others: list[tuple[int, int]]) -> bool:
        """Whether the request ended before one of the others began; of two at one instant the first stream's has."""
        assert self.times is not None
        start_ns, end_ns = self.times[place]
        for _, other in others:
            began_ns, ended_ns = self.times[other]
            if end_ns <= began_ns and (ended_ns > start_ns or place < other):
                return True
        return False

    def _latest(self, stream: int, start_ns: int) -> int | None:
        """The place of the stream's latest request that began before *start_ns* and had ended by then."""
        assert self.times is not None
        one, times = self.streams[stream], self.times
        at = bisect_left(times, start_ns, one.first, one.end, key=lambda row: row[0])
        while at > one.first:
            at -= 1
            if times[at][1] <= start_ns:
                return at
        return None
