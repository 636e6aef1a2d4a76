"""What is known of the targets of a source: counts of samples, their times, and whether counters stood still behind a phase."""

from __future__ import annotations

import statistics
from array import array
from collections import defaultdict
from collections.abc import Sequence

from aiperf.sdk.series import FailedSample, Sample, SourceHeader, TargetHeader, Window
from aiperf.sdk.summary import TargetSummary
from msgspec import Struct
from msgspec.structs import replace

from aiperf_series_by_time.windows import UNSEEN, Windows

_LATE_NS = 1_000_000_000
"""A phase was seen in part where its end is later by more than this, and by more than two intervals, than the last sample; of
counters of requests, the last phase where no sample came behind its end."""


class Tally(Struct):
    """A target.  first_ns, last_ns: monotonic, of samples that did not fail.  counts: it has counters of requests.
    behind: by number of the phase, how many samples came behind its end, and whether such counters grew in the last one."""

    about: TargetSummary
    first_ns: int | None = None
    last_ns: int = UNSEEN
    counts: bool = False
    behind: dict[int, tuple[int, bool]] = {}

    def summary(self, phases: Sequence[Window]) -> TargetSummary:
        """The target over these phases, which all have a length."""
        first_ns, last_ns = self.first_ns, self.last_ns
        if first_ns is None:
            return self.about
        late_ns = max(_LATE_NS, round(2e9 * self.about.interval_s))
        late = {each.phase: (first_ns - each.begin_ns) / 1e9 for each in phases if each.begin_ns < first_ns <= each.end_ns}
        last = len(phases) - 1
        unseen = {last} if self.counts and last not in self.behind else set()
        partial = tuple(each.phase for i, each in enumerate(phases) if each.end_ns > last_ns + late_ns or i in unseen)
        unsettled = tuple(each.phase for number, each in enumerate(phases) if self._moved(number, number == last))
        return replace(self.about, late=late, partial=partial, unsettled=unsettled)

    def _moved(self, number: int, last: bool) -> bool:
        """Whether the counters may have grown on behind the last sample that belongs to the phase."""
        samples, grown = self.behind.get(number, (0, False))
        return grown if samples > 1 else self.counts and last and samples == 1


class _Times:
    """Sums over the samples of a target.  gaps_ns: between updates."""

    def __init__(self) -> None:
        self.samples = self.failed = self.missed = self.updates = self.latency_ns = 0
        self.first_ns: int | None = None
        self.last_ns = UNSEEN
        self.walls: tuple[int, int] | None = None
        self.updated: tuple[int, int] | None = None
        self.gaps_ns = array("q")
        self.counts = False
        self.behind: dict[int, tuple[int, bool]] = {}
        self.why = ""

    def take(self, sample: Sample, behind: int | None, *, changed: bool, grown: bool, counts: bool) -> None:
        moment = sample.moment
        self.samples += 1
        self.missed += moment.missed
        sent, first_byte = moment.sent_ns, moment.first_byte_ns
        self.latency_ns += moment.took_ns if sent is None or first_byte is None else first_byte - sent
        self.first_ns, self.last_ns = moment.at_ns if self.first_ns is None else self.first_ns, moment.at_ns
        self.walls = moment.wall_ns if self.walls is None else self.walls[0], moment.wall_ns
        if changed:
            if self.updated is not None:
                self.gaps_ns.append(moment.wall_ns - self.updated[1])
            self.updated = moment.wall_ns if self.updated is None else self.updated[0], moment.wall_ns
            self.updates += 1
        self.counts |= counts
        if behind is not None:
            self.behind[behind] = self.behind.get(behind, (0, False))[0] + 1, grown

    def tally(self, about: TargetHeader) -> Tally:
        (first, last), (first_update, last_update) = self.walls or (None, None), self.updated or (None, None)
        gaps = self.gaps_ns
        return Tally(
            TargetSummary(
                about.name, about.interval_s, self.samples, self.failed, self.missed, self.updates, first, last, first_update,
                last_update, latency_ms=self.latency_ns / self.samples / 1e6 if self.samples else None,
                update_interval_ms=sum(gaps) / len(gaps) / 1e6 if gaps else None,
                median_update_interval_ms=statistics.median(gaps) / 1e6 if gaps else None, why=self.why,
            ),
            self.first_ns, self.last_ns, self.counts, self.behind,
        )  # fmt: skip


class Tallies:
    """All targets of a source, over phases."""

    def __init__(self, phases: Windows) -> None:
        self._phases = phases
        self._targets: defaultdict[int, _Times] = defaultdict(_Times)

    def take(self, sample: Sample, *, changed: bool, grown: bool, counts: bool) -> None:
        """Count a sample.  changed: any value; grown: a counter of requests; counts: there are such counters."""
        at_ns, phases = sample.moment.at_ns, self._phases
        number = int(phases.begins.searchsorted(at_ns)) - 1
        behind = number if number >= 0 and at_ns > phases.ends[number] else None
        self._targets[sample.target].take(sample, behind, changed=changed, grown=grown, counts=counts)

    def fail(self, failed: FailedSample) -> None:
        times = self._targets[failed.target]
        times.failed += 1
        times.why = failed.why

    def all(self, origin: SourceHeader) -> list[Tally]:
        """The targets of the header, in their order."""
        headers = origin.targets or (TargetHeader("", origin.interval_s),)
        return [self._targets[number].tally(header) for number, header in enumerate(headers)]
