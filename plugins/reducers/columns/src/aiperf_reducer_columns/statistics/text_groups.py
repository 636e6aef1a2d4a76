"""Groups by text of several reducers as one: their keys get common numbers, in the order of the keys."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from aiperf.sdk.plan import PhasePlan
from aiperf.sdk.summary import GroupSummary, Result
from msgspec.structs import replace

from aiperf_reducer_columns.statistics.by_text import MOST_KEYS, ByText, TextMetrics, places_of, texts_of
from aiperf_reducer_columns.statistics.catalogue import Catalogue
from aiperf_reducer_columns.statistics.described import PERCENTILES
from aiperf_reducer_columns.statistics.fold import NOWHERE, place_of
from aiperf_reducer_columns.statistics.grouped import Grouped, MergedGroups
from aiperf_reducer_columns.statistics.phase_counts import listed
from aiperf_reducer_columns.statistics.plugin_folds import FoldState, MergedFolds
from aiperf_reducer_columns.statistics.totals import parts


class _Keys(NamedTuple):
    """The keys of a phase's text that are shown, and whether there are more."""

    shown: dict[str, int]
    beyond: bool


class TextGroups:
    """*reducers*: the groups and the plugins' folds of each.  *percentiles*: of the statistics of each group."""

    def __init__(
        self, catalogue: Catalogue, reducers: Sequence[tuple[Sequence[Grouped], Sequence[FoldState]]],
        percentiles: Sequence[float] = PERCENTILES,
    ) -> None:  # fmt: skip
        self._catalogue, self._percentiles = catalogue, percentiles
        self._keys: dict[tuple[int, str], _Keys] = {}
        for each in (group for groups, _ in reducers for group in groups if group.keys):
            known = self._keys.get((each.phase, each.grouping), _Keys({}, beyond=False))
            keys = sorted({*known.shown, *each.keys})
            shown = {key: number for number, key in enumerate(keys[:MOST_KEYS])}
            beyond = known.beyond or each.beyond or len(keys) > MOST_KEYS
            self._keys[each.phase, each.grouping] = _Keys(shown, beyond)
        self._groups: dict[tuple[int, str], list[Grouped]] = {}
        self._states: list[FoldState] = []
        for groups, states in reducers:
            self._take(groups, states)
        self.plugin_folds = MergedFolds(catalogue, self._states)
        """The folds of plugins, also those of phases, slices and URLs."""
        self.made: list[GroupSummary] = []
        """The groups of the phases whose results were made."""
        self.warnings: list[str] = []

    def _take(self, groups: Sequence[Grouped], states: Sequence[FoldState]) -> None:
        places = {(each.phase, each.grouping): places_of(each.keys, self._of(each)) for each in groups if each.keys}
        for each in groups:
            if each.keys:
                place = places[each.phase, each.grouping]
                tallies = {place_of(place, group): tally for group, tally in each.tallies.items()}
                tallies.pop(NOWHERE, None)
                samples = {tag: samples.renumbered(place) for tag, samples in each.samples.items()}
                self._groups.setdefault((each.phase, each.grouping), []).append(
                    replace(each, tallies=tallies, samples=samples)
                )
        for state in states:
            found = places.get((state.phase, state.grouping))
            group = state.group if found is None else place_of(found, state.group)
            if group != NOWHERE:
                self._states.append(state if group == state.group else replace(state, group=group))

    def _of(self, each: Grouped) -> dict[str, int]:
        return self._keys[each.phase, each.grouping].shown

    def results(self, phase: PhasePlan, seconds: float | None) -> dict[str, Result]:
        """Make the groups of a phase, whose duration is *seconds*; results under the tags of their metrics' ``group_tags``."""
        found: dict[str, Result] = {}
        for text, metrics in texts_of(self._catalogue).items():
            keys = self._keys.get((phase.index, ByText(text).name))
            if keys is None:
                continue
            if keys.beyond:
                self.warnings.append(
                    f"{text} has more than {MOST_KEYS:,} values in phase {phase.name}: results by {text} are of the first"
                    " by name"
                )
            for group in self._summaries(text, metrics, phase.index, [*keys.shown], seconds):
                self.made.append(group)
                found.update(_tagged(self._catalogue, group))
        return found

    def _summaries(
        self, text: str, metrics: TextMetrics, phase: int, keys: Sequence[str], seconds: float | None
    ) -> Iterator[GroupSummary]:
        last, name = len(keys) - 1, ByText(text).name
        merged = MergedGroups(self._groups[phase, name], 0, last, self._percentiles)
        folds = self.plugin_folds.results(phase, name, last)
        known = self._catalogue.only(metrics.folded - self.plugin_folds.off.keys())
        for group, tally, results in parts(known, merged, range(len(keys)), lambda _: seconds, plugin_folds=folds):
            shown = {tag: result for tag, result in results.items() if tag.removeprefix("adj_") in metrics.shown}
            yield GroupSummary(text, keys[group], phase, shown, tally.started, tally.outcomes, listed(tally.errors))


def _tagged(catalogue: Catalogue, group: GroupSummary) -> Iterator[tuple[str, Result]]:
    """Results under tags of their own, without a place on the console."""
    for tag, result in group.results.items():
        metric = catalogue.metrics.get(tag)
        pattern = None if metric is None else metric.group_tags.get(group.text)
        if pattern is not None and (own := pattern.replace("{key}", group.key)) not in catalogue.metrics:
            yield own, replace(result, tag=own, title=f"{result.title}, {group.key}", short="", order=None)
