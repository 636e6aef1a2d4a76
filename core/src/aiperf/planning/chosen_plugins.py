"""The plugins that options choose: tokenizer, grader, schedules, arrival patterns, ramps and samplers."""

from __future__ import annotations

from aiperf.planning import modes
from aiperf.planning.endpoints import EndpointChoice
from aiperf.planning.modes import NO_PATTERN
from aiperf.planning.problems import Selection
from aiperf.planning.sources import Source
from aiperf.sdk.descriptor import PluginRef, canonical
from aiperf.sdk.plan import PhasePlan

_PLACEHOLDER_MODELS = ("mock_model", "test_model", "fake_model")
_OFFLINE = "builtin"


def promoted(select: Selection, source: Source) -> bool:
    """Whether the input file is replayed at its recorded times without the flag."""
    problems = select.problems
    named = problems.kernel.scheduling_mode
    schedule = modes.selector(problems, modes.FIXED_SCHEDULE) if modes.fixed(problems) else problems.flag("fixed_schedule")
    if modes.fixed(problems) and source.path is not None and not source.timestamped:
        problems.refuse(
            f"{schedule} needs recorded times, and the first row of {source.path} has no 'timestamp'",
            f"add timestamps (ms), or drop {schedule}",
        )
    if problems.typed("fixed_schedule") or named is not None:
        return False
    if source.trace and source.timestamped and not source.explicit:
        problems.hint(f"{source.path} has recorded times; pass --fixed-schedule to keep to them")
    return source.promotes


def shaped(select: Selection, pattern: str) -> bool:
    """Whether ``--arrival-smoothness`` matters to the pattern; an unknown pattern is reported elsewhere."""
    descriptor = select.registry.find("arrivals", pattern)
    return descriptor is None or bool(descriptor.capabilities.get("smoothness"))


def schedules(select: Selection, phases: tuple[PhasePlan, ...]) -> dict[str, PluginRef]:
    names, named = sorted({phase.schedule for phase in phases}), select.problems.kernel.scheduling_mode
    refs = {name: select.chosen("schedules", name, "scheduling_mode" if name == named else None) for name in names}
    return {name: ref for name, ref in refs.items() if ref is not None}


def arrivals(select: Selection, phases: tuple[PhasePlan, ...]) -> dict[str, PluginRef]:
    refs: dict[str, PluginRef] = {}
    for phase in phases:
        if phase.pattern is None or phase.pattern == NO_PATTERN:  # the latter is refused elsewhere
            continue
        own = phase.kind == "warmup" and select.problems.kernel.warmup_arrival_pattern is not None
        ref = select.chosen("arrivals", phase.pattern, "warmup_arrival_pattern" if own else "arrival_pattern")
        if ref is not None:
            refs[phase.pattern] = ref
    return refs


def ramps(select: Selection, phases: tuple[PhasePlan, ...]) -> dict[str, PluginRef]:
    """The curve of the ramps, if there are any."""
    name = select.problems.kernel.ramp
    rises = any(phase.concurrency_ramp_ns or phase.prefill_ramp_ns or phase.rate_ramp_ns for phase in phases)
    ref = select.chosen("ramps", name, "ramp") if rises else None
    return {} if ref is None else {name: ref}


def sampling(select: Selection) -> str:
    """The chosen order of entries, "" for the data set's own."""
    name = select.problems.kernel.sampling
    ref = None if name is None else select.chosen("samplers", name, "sampling")
    return "" if ref is None else ref.name


def tokenizer(select: Selection, choice: EndpointChoice, models: tuple[str, ...]) -> tuple[PluginRef | None, str | None]:
    """The tokenizer plugin and the name it opens; None where nothing is tokenized, or the tokenizer is unusable."""
    problems, given = select.problems, select.problems.kernel.tokenizer
    flag = problems.flag("tokenizer")
    if choice.descriptor is None or not models or not models[0]:
        return None, None
    if not choice.can.tokenizes_input and not choice.can.produces_tokens:
        if given is not None:
            kind = choice.descriptor.name
            problems.refuse(f"{flag} has no use: the endpoint type {kind!r} neither takes nor gives tokens", f"drop {flag}")
        return None, None
    name = models[0] if given is None else given.strip()
    if not name:
        problems.refuse(f"{flag} is given an empty name", f"write {flag} {_OFFLINE}, which needs no download")
        return None, None
    if given is None and canonical(name) in _PLACEHOLDER_MODELS and select.registry.find("tokenizers", _OFFLINE):
        problems.warn(f"{name} is a placeholder, not a model: counting with {flag} {_OFFLINE}")
        name = _OFFLINE
    opener = _opener(select, name)
    if opener is None:
        select.missing.add("tokenizers")
        what = f"{flag} {name!r}" if given is not None else f"the tokenizer of the model {name!r}"
        installed = select.registry.names("tokenizers")
        hints = [f"installed: {', '.join(installed) or 'none'}"]
        if _OFFLINE in installed:
            hints.append(f"{flag} {_OFFLINE} counts with the o200k_base vocabulary and needs no download")
        problems.refuse(f"no installed tokenizer package opens {what}", *hints)
        return None, None
    return select.chosen("tokenizers", opener, "tokenizer"), name


def _opener(select: Selection, name: str) -> str | None:
    """The plugin for a tokenizer's name: the plugin of that name, else one that opens any name."""
    named = select.registry.find("tokenizers", name)
    if named is not None and not named.capabilities.get("any_name"):
        return named.name
    openers = [plugin for plugin in select.registry.all("tokenizers") if plugin.capabilities.get("any_name")]
    return max(openers, key=lambda plugin: plugin.priority).name if openers else None


def grader(select: Selection, choice: EndpointChoice) -> PluginRef | None:
    problems, name = select.problems, select.problems.kernel.accuracy_grader
    if name is None:
        return None
    if choice.descriptor is not None and not choice.can.produces_tokens:
        flag, kind = problems.flag("accuracy_grader"), choice.descriptor.name
        problems.refuse(f"{flag} needs answers in words, and the endpoint type {kind!r} gives none", f"drop {flag}")
    return select.chosen("graders", name, "accuracy_grader")
