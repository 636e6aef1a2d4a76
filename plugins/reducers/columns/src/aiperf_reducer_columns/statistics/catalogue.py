"""The metrics of a run: loaded, checked, and in an order in which each stands behind the metrics that it reads."""

from __future__ import annotations

import contextlib
import copy
import graphlib
import logging
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from aiperf.parts.loading import isolated, left_out, load
from aiperf.parts.registry import strongest
from aiperf.sdk import environment
from aiperf.sdk.descriptor import PluginRef
from aiperf.sdk.endpoint import Capabilities, Endpoint
from aiperf.sdk.errors import ConfigError, PluginError, UsageError

from aiperf.sdk.metric import (  # isort: skip
    Aggregation, Analysis, AnyUnit, Metric, MetricDeclaration, MetricFamily, Needs, PluginFold, PluginUnit, RunDistribution,
    RunMetric, Unit,
    unit_size,
)  # fmt: skip
from aiperf.sdk.model import asks_several, names
from aiperf.sdk.plan import Plan

log = logging.getLogger("aiperf.reducer")


class Offer(NamedTuple):
    """A metric and its plugin.  The greatest rank has the tag (:meth:`aiperf.registry.registry.Registry.rank`)."""

    plugin: PluginRef
    metric: MetricDeclaration
    rank: tuple[int, int, int] = (0, 0, 0)


class Catalogue:
    """The run's metrics in an order in which each comes behind what it needs; those that can't be computed are out.

    *warnings* has a sentence on each that should have been there.
    """

    def __init__(
        self, offers: Iterable[Offer], has: Needs, warnings: Iterable[str] = (), numbers: Mapping[str, AnyUnit] | None = None
    ) -> None:
        """*warnings*: on metrics that could not be loaded.  *numbers*: of the endpoint."""
        self.warnings, self.numbers = list(warnings), numbers or {}
        self.unfit: dict[str, Needs] = {}
        """Metrics that don't apply to this run, and what they lack."""
        self.shadowed: dict[str, list[str]] = {}
        """By ``category:name`` of a plugin, the plugins that lost a tag to it."""
        self._owners: dict[str, str] = {}
        self._sources: dict[str, list[str]] = {}  # by tag, those of the metrics that it needs
        claims: dict[str, list[Offer]] = {}
        for offer in self._with_known_units(list(offers)):
            if lacking := offer.metric.requires & ~has:
                self.unfit[offer.metric.tag] = lacking
            else:
                claims.setdefault(offer.metric.tag, []).append(offer)
        self.metrics = self._ordered({tag: metric for tag in claims if (metric := self._settled(tag, claims[tag])) is not None})

    def _with_known_units(self, offers: list[Offer]) -> list[Offer]:
        """Without the metrics whose unit has another meaning elsewhere.

        The kernel's and the endpoint's units stand, else that of the greatest rank; of equal ranks none does.
        """
        fixed = {unit.value: unit_size(unit) for unit in (*self.numbers.values(), *Unit)}
        claims: dict[str, list[tuple[Offer, tuple[str, float] | None]]] = {}
        for offer in offers:
            for unit in {offer.metric.unit, offer.metric.shown}:
                claims.setdefault(unit.value, []).append((offer, unit_size(unit)))
        out: list[Offer] = []
        for value, of_value in claims.items():
            rivals, _ = strongest(of_value, lambda claim: claim[0].rank)
            standing = {fixed[value]} if value in fixed else {size for _, size in rivals}
            if wrong := [offer for offer, size in of_value if {size} != standing]:
                owners = dict.fromkeys(["aiperf"] * (value in fixed) + [offer.plugin.package for offer, _ in of_value])
                tags = names([offer.metric.tag for offer in wrong])
                self.warnings.append(f"the unit {value} has different meanings in {names([*owners])}; left out: {tags}")
                out += wrong
        return [offer for offer in offers if offer not in out] if out else offers

    def _settled(self, tag: str, claims: list[Offer]) -> MetricDeclaration | None:
        """The metric that has the tag; None where two plugins have an equal claim to it."""
        rivals, losers = strongest(claims, lambda offer: offer.rank)
        if len(rivals) > 1:
            owners = " and ".join(f"{offer.plugin.key} ({offer.plugin.package})" for offer in rivals)
            pins = " or ".join(f"--plugin {offer.plugin.key}={offer.plugin.distribution}" for offer in rivals)
            self.warnings.append(f"metric {tag} is left out: {owners} both provide it; choose with {pins}")
            return None
        (winner,) = rivals
        self._owners[tag] = winner.plugin.package
        for loser in losers:
            self.warnings.append(f"metric {tag} of {loser.plugin.package} is shadowed by that of {winner.plugin.package}")
            self.shadowed.setdefault(winner.plugin.key, []).append(loser.plugin.package)
        return winner.metric

    def only(self, tags: Collection[str]) -> Catalogue:
        """The catalogue with these metrics alone."""
        part = copy.copy(self)
        part.metrics = {tag: metric for tag, metric in self.metrics.items() if tag in tags}
        return part

    def owner(self, tag: str) -> str:
        return self._owners[tag]

    def isolated(
        self, tag: str, report: Callable[[str], object], passing: tuple[type[Exception], ...] = ()
    ) -> contextlib.AbstractContextManager[None]:
        """Stop exceptions of the metric, but those in *passing*; the log and *report* get a sentence."""

        def switch_off(sentence: str) -> None:
            log.warning("%s", sentence)
            report(sentence)

        return isolated(f"metric {tag} of {self._owners[tag]}", switch_off, "is switched off", passing=passing)

    def switch_off(self, tags: Iterable[str]) -> None:
        """Take these out, and what needs them."""
        off = set(tags)
        for tag in self.metrics:  # each comes behind what it needs
            if off.intersection(self._sources[tag]):
                off.add(tag)
        self.metrics = {tag: metric for tag, metric in self.metrics.items() if tag not in off}

    def _ordered(self, fit: dict[str, MetricDeclaration]) -> dict[str, MetricDeclaration]:
        """Behind their needs; a metric with a missing need, or in a circle, goes, and then those that need it.

        What needs something that doesn't apply to this run doesn't apply either, and nothing is said of it.
        """
        while True:
            givers = {tag: giver for giver, metric in fit.items() if isinstance(metric, Analysis) for tag in metric.gives}
            self._sources = {
                tag: [need if need in fit else givers.get(need, need) for need in metric.needs if need not in self.numbers]
                for tag, metric in fit.items()
            }
            missing = {tag: need for tag, needs in self._sources.items() for need in needs if _is_missing(need, fit[tag], fit)}
            if missing:
                for tag, need in missing.items():
                    if need in self.unfit:
                        self.unfit[tag] = self.unfit[need]
                    elif Needs.NUMBERS in fit[tag].requires:
                        self.unfit[tag] = Needs.NUMBERS
                    else:
                        why = "is known only at the end of the run" if need in fit else "isn't there"
                        self.warnings.append(f"metric {tag} of {self._owners[tag]} is left out: it needs {need}, which {why}")
                    del fit[tag]
                continue
            try:
                order = list(graphlib.TopologicalSorter(self._sources).static_order())
            except graphlib.CycleError as error:
                circle: list[str] = error.args[1]
                self.warnings.append(cycle_message(circle))
                for tag in set(circle):
                    del fit[tag]
                continue
            return {tag: fit[tag] for tag in order}


def _is_missing(need: str, metric: MetricDeclaration, fit: Mapping[str, MetricDeclaration]) -> bool:
    """Whether what the metric needs isn't there, or not yet: a metric of requests can't wait for the run's end."""
    return need not in fit or (not isinstance(metric, RunMetric) and not isinstance(fit[need], Metric))


def cycle_message(cycle: Sequence[str]) -> str:
    """The sentence on metrics that need each other; *cycle*: their tags, the first again at the end, in either direction."""
    tags = list(cycle[:-1])
    start = tags.index(min(tags))
    tags = tags[start:] + tags[:start]
    if len(tags) > 2 and tags[1] > tags[-1]:
        tags = [tags[0], *tags[:0:-1]]
    return f"metrics that need each other are left out: {' → '.join([*tags, tags[0]])}"


def catalogue(plan: Plan, endpoint: Endpoint[Any] | type[Endpoint[Any]]) -> Catalogue:
    """The plan's metrics; a package that can't be imported is left out with one line.

    Raises:
        ConfigError: A metric can't be what its options, or its variables, say; or the endpoint's ``numbers`` are impossible.
    """
    numbers = endpoint.numbers
    if fault := faulty_numbers(numbers):
        raise ConfigError(f"{plan.plugins.endpoint} can't be used: {fault}")
    has = needs_of(plan, endpoint.capabilities) | (Needs.NUMBERS if numbers else Needs.NOTHING)
    offers: list[Offer] = []
    families: list[tuple[PluginRef, MetricFamily]] = []
    warnings: list[str] = []
    absent: list[tuple[PluginRef, PluginError]] = []
    for ref in plan.plugins.metrics:
        try:
            kind = load(ref)
        except PluginError as error:
            absent.append((ref, error))
            continue
        with _left_out(ref, warnings):
            options = plan.plugins.options_of(ref)
            made = kind() if options is None else kind(options)
            if isinstance(made, MetricFamily):
                families.append((ref, made))
            else:
                offers.append(_offer(plan, ref, made))
    warnings = [*left_out(absent), *warnings]
    alone = Catalogue(offers, has, warnings, numbers)
    more: list[Offer] = []
    for ref, family in families:
        with _left_out(ref, warnings):
            more += [_offer(plan, ref, metric) for metric in family.metrics(alone.metrics, alone.unfit)]
    return Catalogue([*offers, *more], has, warnings, numbers) if families else alone


def faulty_numbers(numbers: Mapping[str, AnyUnit]) -> str | None:
    """A sentence on a faulty declaration of an endpoint's ``numbers``; None where there is no fault."""
    if not numbers:
        return None
    from aiperf.sdk.columns import BOUND_COLUMNS, GRADE_COLUMNS, LIST_COLUMNS, NUMBERS, POLL_GAP  # numpy

    sizes = {unit.value: unit_size(unit) for unit in Unit}
    for name, unit in numbers.items():
        if not re.fullmatch(r"[a-z][a-z0-9_]*", name) or not isinstance(unit, Unit | PluginUnit):
            return f"its number {name!r} must have a name such as joules and a Unit or PluginUnit, not {unit!r}"
        if name in (*NUMBERS, *LIST_COLUMNS, *BOUND_COLUMNS, *GRADE_COLUMNS, POLL_GAP):
            return f"its number {name!r} is a column of aiperf"
        if sizes.setdefault(unit.value, unit_size(unit)) != unit_size(unit):
            return f"the unit {unit.value} of its number {name!r} has another meaning in aiperf or another number"
    return None


def _left_out(ref: PluginRef, warnings: list[str]) -> contextlib.AbstractContextManager[None]:
    """An exception of a plugin's metric becomes a line of *warnings*."""
    return isolated(f"metric {ref.name} of {ref.package}", warnings.append, "is left out", passing=(ConfigError, UsageError))


def _offer(plan: Plan, ref: PluginRef, metric: object) -> Offer:
    """The metric, held to what it must say of itself before anything relies on it."""
    if not isinstance(metric, Metric | RunMetric | Analysis):
        raise TypeError(f"{type(metric).__name__} is neither a Metric nor a RunMetric")
    for name in ("tag", "title", "unit"):
        if not hasattr(metric, name):
            raise TypeError(f"{type(metric).__name__} has no {name}")
    _ = metric.scale  # units that don't measure the same thing
    if any(text not in metric.by or "{key}" not in tag for text, tag in metric.group_tags.items()):
        raise TypeError("its group_tags need {key} in each tag, and texts that stand in by")
    if isinstance(metric, RunDistribution) and not set(metric.reads) <= set(metric.needs):
        raise TypeError("its reads must stand in needs")
    if isinstance(metric, Metric) and not isinstance(metric.fold, Aggregation):
        if not isinstance(metric.fold, type) or not issubclass(metric.fold, PluginFold):
            raise TypeError("its fold is neither an Aggregation nor a class derived from PluginFold")
        if metric.adjusted or metric.since is not None or metric.arriving:
            raise TypeError("adjusted, since and arriving need the kernel's statistics, not a fold of its own")
    return Offer(ref, metric, plan.plugins.metric_ranks.get(ref.key, (0, 0, 0)))


def needs_of(plan: Plan, capabilities: Capabilities) -> Needs:
    """What the run has."""
    has, target = Needs.NOTHING, plan.target
    for need, given in (
        (Needs.STREAMING, target.streaming),
        (Needs.TOKENS_OUT, capabilities.gives_tokens(streaming=target.streaming)),
        (Needs.TOKENS_IN, capabilities.tokenizes_input),
        (Needs.CLIENT_TOKENS, not target.use_server_token_count and plan.plugins.tokenizer is not None),
        (Needs.PACED, any(phase.paced for phase in plan.load.phases if phase.kind == "profiling")),
        (Needs.REPLAYED, any(phase.replay is not None for phase in plan.load.phases if phase.kind == "profiling")),
        (Needs.EXPERIMENTAL, environment.experimental()),
        (Needs.GRADED, plan.plugins.grader is not None),
        (Needs.LENGTHS, plan.plugins.grader is None),
        (Needs.ONE_ANSWER, not plan.data.several_answers and not asks_several(target.extra)),
    ):
        has |= need if given else Needs.NOTHING
    return has
