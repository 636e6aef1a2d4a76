"""What the scenario doesn't allow, in the order in which it is told."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import msgspec
from aiperf import Plan
from aiperf.sdk.descriptor import canonical
from aiperf.sdk.scenario import AskedSettings, Conflict

from aiperf_scenario_agentx.rules import (
    AGENTIC,
    ANY_REPOSITORY,
    CACHE_BUST,
    LOCAL,
    PUBLIC,
    REPOSITORY,
    SHORTEST_S,
    SYSTEM_CAP_S,
    USUAL_S,
)

_MODES = ("--scheduling-mode", "--request-rate", "--request-rate-series", "--user-centric-rate", "--fixed-schedule")
"""Options that choose a scheduling mode."""
_OFF = ("false", "no", "off", "0")


def modes(asked: AskedSettings) -> list[str]:
    """The options that were given and choose a scheduling mode."""
    return [flag for flag in _MODES if (given := asked.given(flag)) is not None and given.on is not False]


def in_lanes(asked: AskedSettings) -> bool:
    """Whether lanes are replayed: no other scheduling mode is chosen."""
    mode = asked.given("--scheduling-mode")
    own = ["--scheduling-mode"] if mode is not None and canonical(mode.text) == AGENTIC else []
    return modes(asked) == own


def scheduling(plan: Plan, asked: AskedSettings) -> Iterator[Conflict]:
    phase = plan.load.phases[-1]
    if phase.schedule == AGENTIC:
        return
    for flag in modes(asked) or ["--scheduling-mode"]:
        value = asked.given(flag)
        text = phase.schedule if value is None else "" if value.on is not None else value.text
        why = "a lane follows the times of its trace, and nothing else says when requests start"
        yield Conflict(asked.flag(flag), text, "agentic replay", why)


def streaming(plan: Plan, asked: AskedSettings) -> Iterator[Conflict]:
    if not plan.target.streaming:
        flag = asked.flag("--streaming")
        given = flag if asked.given("--streaming") is not None else f"--endpoint-type {plan.plugins.endpoint.name}"
        yield Conflict(given, "", "streamed answers", "its metrics are times to the first token and between tokens")


def ignore_eos(plan: Plan, asked: AskedSettings) -> Iterator[Conflict]:
    value = _found(plan.target.extra)
    if value is not None and not _on(value):
        text = f"ignore_eos:{msgspec.json.encode(value).decode()}"
        why = "answers must be as long as the recorded ones"
        yield Conflict(asked.flag("--extra-inputs"), text, "ignore_eos:true", why)


def delays(plan: Plan, asked: AskedSettings) -> Iterator[Conflict]:
    given = asked.given("--ignore-trace-delays")
    if given is not None and given.on is not False:
        yield Conflict(given.typed, "", "the recorded delays", "an agent's tools and people take their time")


def inputs(plan: Plan, asked: AskedSettings) -> Iterator[Conflict]:
    given = asked.given("--synthesis-max-isl")
    if given is not None:
        yield Conflict(given.typed, given.text, "prompts as recorded", "its load is that of long contexts")


def data_format(plan: Plan, asked: AskedSettings) -> Iterator[Conflict]:
    name = _data(plan)
    if name in (LOCAL, ANY_REPOSITORY, *PUBLIC):
        return
    typed = asked.given("--public-dataset", "--custom-dataset-type", "--input-file")
    required = f"recorded agents: --public-dataset {PUBLIC[-1]} or another set with subagents"
    if plan.data.source is None and typed is None and asked.given("--hf-weka-dataset") is None:
        yield Conflict("--public-dataset", "(none)", required, "prompts that are made have no agents", final=True)
        return
    flag, text = ("--custom-dataset-type", name) if typed is None else (typed.typed, typed.text)
    yield Conflict(flag, text, required, f"the data set {name} has no traces of agents with their subagents")


def corpus(plan: Plan, asked: AskedSettings) -> Iterator[Conflict]:
    name, why = _data(plan), "results of another corpus can't be compared"
    if name == LOCAL or (name in PUBLIC and plan.data.source is not None):
        given = asked.given("--input-file")
        text = plan.data.source or "" if given is None else given.text
        yield Conflict(asked.flag("--input-file"), text, f"a public set, such as {PUBLIC[-1]}", why)
    if name == ANY_REPOSITORY:
        given = asked.given("--hf-weka-dataset")
        text = "" if given is None else given.text
        if text != REPOSITORY:
            yield Conflict(asked.flag("--hf-weka-dataset"), text, REPOSITORY, why)


def cache_bust(plan: Plan, asked: AskedSettings) -> Iterator[Conflict]:
    target = str(plan.data.cache_bust)
    if target != CACHE_BUST:
        why = "a tree must find its own prefixes in the cache, and no other's"
        final = plan.data.cache_bust.isolates
        yield Conflict(asked.flag("--cache-bust"), target, CACHE_BUST, why, final=final)


def duration(plan: Plan, asked: AskedSettings) -> Iterator[Conflict]:
    phase, given = plan.load.phases[-1], asked.given("--benchmark-duration")
    if phase.duration_ns is None or phase.duration_ns < SHORTEST_S * 10**9:
        text = "(none)" if given is None else given.text
        required = f"{SHORTEST_S} s or more; without the option it is {USUAL_S} s"
        yield Conflict(asked.flag("--benchmark-duration"), text, required, "lanes need time to reach a steady state")


def turn_cap(plan: Plan, asked: AskedSettings) -> Iterator[Conflict]:
    given = asked.given("--inter-turn-delay-cap-seconds")
    if given is not None:
        yield Conflict(given.typed, given.text, "delays without a cap of their own", "idle time is capped for the whole run")


def system_cap(plan: Plan, asked: AskedSettings) -> Iterator[Conflict]:
    given = asked.given("--system-idle-gap-cap-seconds")
    if given is not None and _number(given.text) != SYSTEM_CAP_S:
        yield Conflict(given.typed, given.text, f"{SYSTEM_CAP_S}", "all runs must skip the same idle time")


def lists(plan: Plan, asked: AskedSettings) -> Iterator[Conflict]:
    for flag in asked.lists:
        yield Conflict(flag, "with several values", "one value of each option", SWEEP)


SWEEP = "a submission is one run, and a sweep has several"
"""The reason of the lock on lists, by which a finished run knows that it was one of them."""
LOCKS: tuple[Callable[[Plan, AskedSettings], Iterator[Conflict]], ...] = (
    scheduling, streaming, ignore_eos, delays, inputs, data_format, corpus, cache_bust, duration, turn_cap, system_cap, lists,
)  # fmt: skip


def ignores_end(texts: Iterable[str]) -> Any:
    """The value of ``ignore_eos`` in texts of ``--extra-inputs``; None where none has it."""
    for text in texts:
        name, colon, value = text.partition(":")
        if colon and name.strip().lower() == "ignore_eos":
            return value.strip()
        if text.lstrip()[:1] == "{":
            try:
                found = _found(msgspec.json.decode(text))
            except msgspec.DecodeError:  # told where the option is read
                continue
            if found is not None:
                return found
    return None


def _found(fields: Any) -> Any:
    """The first ``ignore_eos`` in the fields, and in objects among them."""
    if not isinstance(fields, Mapping):
        return None
    if fields.get("ignore_eos") is not None:
        return fields["ignore_eos"]
    return next((found for each in fields.values() if (found := _found(each)) is not None), None)


def _on(value: Any) -> bool:
    return value.strip().lower() not in _OFF if isinstance(value, str) else bool(value)


def _data(plan: Plan) -> str:
    """The public name of the data set, else the name of its format."""
    return plan.data.name or plan.plugins.dataset.name


def _number(text: str) -> float | None:
    try:
        return float(text.strip().removesuffix("s"))
    except ValueError:
        return None
