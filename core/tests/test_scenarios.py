"""Scenarios: what they fill in and refuse, and how several verdicts become one."""

from __future__ import annotations

import logging
import shlex

import pytest
from aiperf.cli.commandline import CommandLine, options_of
from aiperf.cli.settings import run_settings
from aiperf.errors import AiperfError, ConfigErrors
from aiperf.planning import configure
from aiperf.registry.registry import Registry
from aiperf.sdk.scenario import Conflict, ScenarioVerdict, checked_verdict, joined
from test_load_options import PLUGINS, plan, row

RULES = row("scenarios", "rules", "scenario_fakes:Rules")
NAMED = "--scenario rules"


def refused(line: str, name: str = "Rules") -> list[list[str]]:
    """The lines of each error of a run with the scenario, or with another one of these fakes called ``rules``."""
    with pytest.raises(AiperfError) as caught:
        plan(f"{NAMED} {line}", row("scenarios", "rules", f"scenario_fakes:{name}"))
    errors = caught.value.errors if isinstance(caught.value, ConfigErrors) else [caught.value]
    return [error.lines() for error in errors]


def test_it_fills_in_what_was_not_given(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        made = plan(f"{NAMED} --extra-inputs loud:false", RULES)
    assert made.target.streaming and made.load.phases[-1].duration_ns == 60 * 10**9
    assert made.target.extra == {"loud": False, "calm": True}
    assert made.plugins.scenario is not None and made.run.overridden == ()
    assert made.run.config["scenario"] == "rules" and "unsafe_override" not in made.run.config
    filled = "the rules fills in --streaming, --benchmark-duration 60 and --extra-inputs calm:true"
    assert filled in caplog.messages


def test_what_was_given_stays() -> None:
    assert plan(f"{NAMED} --benchmark-duration 90", RULES).load.phases[-1].duration_ns == 90 * 10**9


def test_an_option_stands_for_another() -> None:
    assert plan(f"{NAMED} --warmup-grace-period 7", RULES).load.phases[-1].grace_ns == 7 * 10**9


def test_all_that_is_not_allowed_is_told_together() -> None:
    assert refused("--no-streaming --benchmark-duration 5") == [
        ["--no-streaming: the rules requires streamed answers: it counts tokens"],
        [
            "--benchmark-duration 5: the rules requires 60 or more: it takes time",
            "  change what is named here, or add --unsafe-override: the run then doesn't count for the rules",
        ],
    ]


def test_an_override_makes_warnings_of_them(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        made = plan(f"{NAMED} --benchmark-duration 5 --unsafe-override", RULES)
    assert made.run.overridden == (Conflict("--benchmark-duration", "5", "60 or more", "it takes time"),)
    (warning,) = [each for each in caplog.messages if "the rules" in each]
    assert warning.endswith("--unsafe-override allows it, and the run doesn't count for the rules")


def test_an_override_does_not_allow_what_is_final() -> None:
    wrong = "--dataset-sampling-strategy random --benchmark-duration 5"
    assert [lines[0].partition(" ")[0] for lines in refused(f"{wrong} --unsafe-override")] == ["--dataset-sampling-strategy"]
    assert [len(lines) for lines in refused(wrong)] == [1, 1], "nothing says that an override would help"


def test_an_override_alone_has_no_effect(caplog: pytest.LogCaptureFixture) -> None:
    made = plan("--unsafe-override --request-count 5", RULES)
    assert made.run.overridden == () and "--unsafe-override has no effect without --scenario" in caplog.messages


def test_a_name_that_nobody_has_is_told_with_those_there_are() -> None:
    with pytest.raises(AiperfError) as caught:
        plan("--scenario rulez", RULES)
    assert "no scenario plugin is called 'rulez'" in str(caught.value.lines()) and "rules" in str(caught.value.lines()[1:])


def test_an_option_that_nobody_has_is_no_filling() -> None:
    ((first, *_),) = refused("", "Unknown")
    assert first == "--scenario rules fills in --no-such-thing, which no installed package has"


def test_a_scenario_that_fails_refuses_the_run() -> None:
    (first, *_), *_ = refused("--unsafe-override", "Broken")
    assert "acme 1.0" in first and "it is Monday" in first


def test_a_list_of_values_is_told_to_the_scenario() -> None:
    registry = Registry([*PLUGINS, RULES])
    scan = CommandLine(["--model", "m", *shlex.split(NAMED)]).resolve(options_of(registry.kernel_options, PLUGINS))
    settings = run_settings(registry, scan, lists=["--request-count"])
    with pytest.raises(ConfigErrors) as caught:
        configure.plan(settings, registry)
    (error,) = caught.value.errors
    assert error.message == "--request-count with several values: the rules requires one value: runs are alike"


def test_verdicts_of_several_runs_become_one() -> None:
    def verdict(*reasons: str) -> ScenarioVerdict:
        keys = {"scenario": "x", "valid": not reasons, **({"reasons": list(reasons)} if reasons else {})}
        return ScenarioVerdict("x", not reasons, reasons, aggregate=keys, unjudged={"valid": False, "reasons": ["unknown"]})

    good, bad = verdict(), verdict("a", "b")
    assert joined([good, good]) == {"scenario": "x", "valid": True}
    assert joined([good, bad, verdict("b", "c")]) == {"scenario": "x", "valid": False, "reasons": ["a", "b", "c"]}
    assert joined([good, None]) == {"scenario": "x", "valid": False, "reasons": ["unknown"]}
    assert joined([]) == joined([None]) == {}


def test_a_verdict_is_what_json_can_hold() -> None:
    assert checked_verdict(ScenarioVerdict("x", True, metadata={"list": (1,)})).metadata == {"list": [1]}
    with pytest.raises(TypeError, match="judge gave dict"):
        checked_verdict({})
    with pytest.raises(TypeError):
        checked_verdict(ScenarioVerdict("x", True, metadata={"object": object()}))
