"""How far a tree came: whether it ended, was cut by the phase's end, or was begun before the phase."""

from __future__ import annotations

from enum import StrEnum

from aiperf.sdk.trees import Branch

from aiperf_metric_trees.gathering import Request, Tree


class Outcome(StrEnum):
    """ended: begun and ended in the phase, all requests good.  failed: likewise, and a request failed, or a failure ended it
    early.  resumed: begun before the phase, and ended in it.  cut: the phase ended before."""

    ENDED = "ended"
    FAILED = "failed"
    RESUMED = "resumed"
    CUT = "cut"


class Ending:
    """Judges one tree.

    resumed: requests before its first ones are of an earlier phase.  settled: nothing of it was to come.
    """

    def __init__(self, tree: Tree) -> None:
        self._streams, self._plan = tree.streams, tree.plan.streams
        self._delays = tree.plan.delays_ns
        self._waits_ns = 0.0
        requests = [each for stream in tree.streams.values() for each in stream]
        self._last_end_ns = max((each.end_ns for each in requests if each.over), default=0.0)
        self._started_by = {
            child: (number, branch)
            for number, stream in enumerate(self._plan)
            for branch in stream.branches
            for child in branch.children
        }
        self.resumed = any(self._goes_on(number) for number in tree.streams)
        whole = all(each.over for each in requests)
        self._open = False
        self.settled = whole and self._settled(0)
        if self.settled:
            good = all(each.good for each in requests)
            self.outcome = Outcome.RESUMED if self.resumed else Outcome.ENDED if good else Outcome.FAILED
        elif whole and not self._open and tree.last_start_ns > self._last_end_ns + self._waits_ns:
            self.outcome = Outcome.FAILED  # others went on when it would have gone on, too
        else:
            self.outcome = Outcome.CUT

    def _goes_on(self, number: int) -> bool:
        """Whether a turn before the stream's first request, or the one that started it, is of an earlier phase."""
        if self._streams[number][0].turn:
            return True
        while number in self._started_by:
            number, branch = self._started_by[number]
            if branch.after is not None:
                return answered(self._streams.get(number, []), branch.after) is None
        return False

    def _settled(self, number: int) -> bool:
        """Whether the stream, and all that it has started, sends nothing more."""
        stream, sent = self._plan[number], self._streams.get(number, [])
        if not stream.turns:
            return self._all_settled(number, stream.branches)
        if not sent:
            if self.resumed and self._before(number):
                return self._all_settled(number, stream.branches)
            return self._pending(number, 0)
        last = sent[-1]
        failed = number > 0 and not last.good
        if last.turn < stream.turns - 1 and not failed:
            return self._pending(number, last.turn + 1)
        begun = [each for each in stream.branches if _after(each) < last.turn + (not failed)]
        return self._all_settled(number, begun)

    def _all_settled(self, number: int, branches: list[Branch] | tuple[Branch, ...]) -> bool:
        found = [self._settled(child) for branch in branches for child in branch.children]  # each notes what it has to come
        return all(found)

    def _before(self, number: int) -> bool:
        """Whether a stream without requests in this phase may have ended before it: so had what starts it."""
        if number not in self._started_by:
            return True
        parent, branch = self._started_by[number]
        sent = self._streams.get(parent, [])
        return _after(branch) < sent[0].turn if sent else self._before(parent)

    def _pending(self, number: int, turn: int) -> bool:
        """Note that a turn was not sent, and how long it would have waited; False."""
        stream = self._plan[number]
        wait_ns: float = self._delays[stream.first + turn] if self._delays else 0
        if not turn and number in self._started_by:
            _, branch = self._started_by[number]
            wait_ns += 1e6 * max(branch.offsets_ms, default=0.0)
            if branch.pause is not None:
                self._open |= bool(branch.pause.sigma)
                wait_ns += 1e6 * branch.pause.median_ms
        self._waits_ns += wait_ns
        return False


def _after(branch: Branch) -> int:
    return -1 if branch.after is None else branch.after


def answered(requests: list[Request], turn: int) -> Request | None:
    """The request of a turn among those of a stream; None where it was not sent."""
    return next((each for each in requests if each.turn == turn), None)
