"""Companions: in which runs they take part, what they are told, and that none of them can harm a run."""

from __future__ import annotations

import logging
import shlex
from pathlib import Path
from typing import Any

import pytest
from aiperf.cli.commandline import CommandLine, options_of
from aiperf.cli.settings import profile_settings
from aiperf.errors import AiperfError, ConfigError, ConfigErrors
from aiperf.planning import configure
from aiperf.registry.registry import Registry
from aiperf.run.companions import Companions
from aiperf.sdk.companion import Companion, Waiting
from aiperf.sdk.descriptor import Descriptor, OptionSpec
from aiperf.sdk.options import Options, option
from aiperf.sdk.plan import PhasePlan, Plan, Secrets
from aiperf_testing.plans import sample_plan, sample_ref

TOLD: list[str] = []
PHASE = PhasePlan("profiling", "profiling", 1, "burst")


class TeaOptions(Options):
    cups: int = option("--cups", default=0, help="Cups.")
    milk: bool = option("--milk", default=False, help="Milk.")


class Tea(Companion[TeaOptions | None]):
    """Tells what it is told, and has a pot that takes two looks."""

    looks = 0

    @classmethod
    def check(cls, plan: Plan, options: TeaOptions | None) -> None:
        if options is not None and options.cups == 13:
            raise ConfigError("13 cups are too many", "drink less")
        if options is not None and options.cups == 14:
            raise ZeroDivisionError("odd")

    def begin(self) -> None:
        TOLD.append("begin")

    def waiting(self) -> Waiting | None:
        self.looks += 1
        return Waiting("Waiting for tea", self.looks, 2, "looks") if self.looks <= 2 else None

    def phase_begins(self, phase: PhasePlan) -> None:
        TOLD.append(f"begins {phase.index}")

    def phase_began(self, phase: PhasePlan, at_ns: int) -> None:
        TOLD.append(f"began {phase.index} at {at_ns}")

    def phase_ended(self, phase: PhasePlan, at_ns: int) -> None:
        TOLD.append(f"ended {phase.index} at {at_ns}")

    def finish(self) -> None:
        TOLD.append("finish")

    def close(self) -> None:
        TOLD.append("close")


class Clumsy(Tea):
    def phase_begins(self, phase: PhasePlan) -> None:
        raise ZeroDivisionError("odd")

    def waiting(self) -> Any:
        return None


class Odd(Tea):
    def waiting(self) -> Any:
        return "soon"


class Unmade(Tea):
    def __init__(self, *_: Any) -> None:
        raise SystemExit(3)


class Refuses(Tea):
    def begin(self) -> None:
        raise AiperfError("there is no tea", "buy some")


def companions(folder: Path, *kinds: type[Tea]) -> tuple[Companions, list[str]]:
    """Companions of a run, and what they report."""
    TOLD.clear()
    said: list[str] = []
    refs = tuple(sample_ref("companions", f"{__name__}:{kind.__name__}") for kind in kinds)
    return Companions(sample_plan(folder, companions=refs), Secrets(), folder / "log", said.append, said.append), said


def test_a_companion_hears_of_every_point_of_a_run(tmp_path: Path) -> None:
    made, said = companions(tmp_path, Tea)
    made.each(lambda each: each.begin(), passing=AiperfError)
    waited = []
    while what := made.waiting():
        waited.append((what, made.far()))
    made.each(lambda each: each.phase_begins(PHASE))
    made.each(lambda each: each.phase_began(PHASE, 7))
    made.each(lambda each: each.phase_ended(PHASE, 9))
    made.each(lambda each: each.finish())
    made.close()
    made.close()
    assert waited == [("Waiting for tea", (1, 2, "looks")), ("Waiting for tea", (2, 2, "looks"))]
    assert TOLD == ["begin", "begins 1", "began 1 at 7", "ended 1 at 9", "finish", "close"] and said == []


def test_a_companion_that_fails_is_named_closed_and_left_out(tmp_path: Path) -> None:
    made, said = companions(tmp_path, Clumsy, Tea, Odd, Unmade)
    assert made.waiting() == "Waiting for tea", "the others are asked"
    for _ in range(2):
        made.each(lambda each: each.phase_begins(PHASE))
    assert said == [
        "the plugin companions:unmade of acme 1.2 can't be used: SystemExit: 3",
        "the plugin companions:odd of acme 1.2 failed: AttributeError: 'str' object has no attribute 'what'",
        "the plugin companions:clumsy of acme 1.2 failed: ZeroDivisionError: odd",
    ]
    assert TOLD == ["close", "close", "begins 1", "begins 1"]


def test_only_before_the_load_an_error_of_ours_ends_the_run(tmp_path: Path) -> None:
    made, said = companions(tmp_path, Refuses)
    with pytest.raises(AiperfError, match="there is no tea"):
        made.each(lambda each: each.begin(), passing=AiperfError)
    made.each(lambda each: each.begin())
    assert said == ["the plugin companions:refuses of acme 1.2 failed: there is no tea; buy some"]


def row(category: str, name: str, value: str = "os:path", **more: Any) -> Descriptor:
    return Descriptor(category, name, value, "acme", "1.0", **more)


CUPS = (OptionSpec("cups", ("--cups",), "Cups.", "int", "one"), OptionSpec("milk", ("--milk",), "Milk.", "flag", "none"))
PLUGINS = [
    row("endpoints", "chat", "aiperf.sdk.endpoint:Endpoint", capabilities={"path": "/chat"}), row("datasets", "synthetic"),
    row("transports", "kernel"), row("uis", "none"), row("engines", "local", capabilities={"shares_memory": True}),
    row("reducers", "counts", "aiperf.sdk.reducer:Reducer"), row("drivers", "burst"), row("schedules", "burst"),
    row("samplers", "sequential"),
    row("samplers", "shuffle"), row("ramps", "linear"), row("arrivals", "poisson"), row("url_strategies", "round_robin"),
]  # fmt: skip
TEA = row("companions", "tea", f"{__name__}:Tea", capabilities={"needs_option": "cups"}, options_model=f"{__name__}:TeaOptions",
    options=CUPS)  # fmt: skip
ANY = row("companions", "any", f"{__name__}:Tea")
SAMPLER = row("companions", "sampler", f"{__name__}:Tea", capabilities={"needs_plugins": "telemetry"})
GAUGE = row("telemetry", "gauge")


def planned(line: str, *more: Descriptor) -> Plan:
    registry = Registry([*PLUGINS, *more])
    words = ["--model", "m", "--request-count", "1", *shlex.split(line)]
    read = CommandLine(words).resolve(options_of(registry.kernel_options, more))
    return configure.plan(profile_settings(registry, read), registry)[0]


@pytest.mark.parametrize(("line", "more", "named"), [
    ("", (TEA, ANY), ["any"]), ("--milk", (TEA, ANY), ["any"]), ("--cups 0", (TEA, ANY), ["any"]),
    ("--cups 2", (TEA, ANY), ["any", "tea"]), ("", (SAMPLER,), []), ("", (SAMPLER, GAUGE), ["sampler"]),
])  # fmt: skip
def test_a_companion_is_in_the_runs_that_its_manifest_names(line: str, more: tuple[Descriptor, ...], named: list[str]) -> None:
    plugins = planned(line, *more).plugins
    assert [ref.name for ref in plugins.companions] == named
    assert ("companions:tea" in plugins.options) is ("--" in line)


def test_options_of_a_companion_that_does_not_take_part_are_not_imported() -> None:
    missing = row("companions", "tea", "nowhere:Tea", capabilities={"needs_option": "cups"}, options_model="nowhere:Options",
        options=CUPS)  # fmt: skip
    assert planned("", missing).plugins.companions == ()
    with pytest.raises(AiperfError, match="No module named 'nowhere'"):
        planned("--cups 2", missing)


def test_a_companion_may_refuse_the_plan(caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(ConfigErrors) as caught:
        planned("--cups 13", TEA)
    assert [error.lines() for error in caught.value.errors] == [["13 cups are too many", "  drink less"]]
    caplog.set_level(logging.WARNING, "aiperf")
    assert planned("--cups 14", TEA).plugins.companions
    assert caplog.messages == ["the plugin companions:tea of acme 1.0 failed: ZeroDivisionError: odd"]


def test_sources_that_nobody_samples_are_named_once_with_the_package(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, "aiperf")
    assert planned("", GAUGE, ANY).plugins.telemetry == ()
    assert caplog.messages == ["no installed package samples telemetry:gauge: pip install aiperf-suite"]
    caplog.clear()
    broken = row("companions", "sampler", "nowhere:Tea", capabilities={"needs_plugins": "telemetry"})
    assert planned("", GAUGE, broken).plugins.companions == ()
    cause = "can't be imported: No module named 'nowhere'; it is left out"
    assert caplog.messages == [f"the plugin companions:sampler of acme 1.0 {cause}"]
