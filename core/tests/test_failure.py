"""What a run says last in which no request succeeded."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from aiperf.run.failure import ended, last_line, too_many
from aiperf.run.start import Outcome, Signals
from aiperf.sdk.model import ErrorDetails
from aiperf.sdk.scenario import ScenarioVerdict
from aiperf.sdk.summary import ErrorCount, Summary
from aiperf.sdk.verdict import Finding, FindingLevel
from aiperf_testing.journals import plan_for
from aiperf_testing.summaries import sample_summary
from msgspec.structs import replace


def failed(*errors: tuple[str, int | None, int], findings: Sequence[Finding] = (), **more: Any) -> Summary:
    counts = tuple(ErrorCount(ErrorDetails(message, "Error", code), count) for message, code, count in errors)
    summary = sample_summary()
    measurement = replace(summary.measurement, findings=tuple(findings))
    return replace(summary, valid=0, failed=6, errors=counts, measurement=measurement, **more)


def finding(sentence: str, requests: int) -> Finding:
    return Finding("cause", FindingLevel.ADVICE, sentence, numbers={"requests": requests, "failed": 6})


@pytest.mark.parametrize(
    ("summary", "line"),
    [
        (failed(("a", 500, 6), findings=[finding("it fails", 6)]), "it fails"),
        (failed(("a", 500, 2), ("b", 503, 4), findings=[finding("2 of 6: it fails", 2), finding("4 of 6: wait", 4)]),
            "4 of 6: wait"),
        (failed(("a", None, 6)), "each failed alike: a"),
        (failed(("a", None, 2), ("b", None, 4)), "4 of 6 failed requests: b"),
        (failed(outcomes={"aborted": 3}), "3 had no whole answer when the load ended: raise --benchmark-duration or"
            " --benchmark-grace-period"),
        (failed(outcomes={"aborted": 3}, incomplete_reason="why"), "3 had no whole answer when the run was ended early"),
        (failed(incomplete_reason="why"), "the run ended before one was measured"),
        (failed(), "none failed either: see the arrivals in the report"),
        (failed(("a\x1b[31m\nb", None, 6)), "each failed alike: a [31m b"),
    ],
)  # fmt: skip
def test_the_line_has_the_cause_of_most_failures(summary: Summary, line: str) -> None:
    assert last_line(summary) == line


@pytest.mark.parametrize(
    ("good", "outcomes", "typed", "sentence"),
    [
        (1, {"failed": 59}, None, "59 of 60 requests failed, more than half; --share sets another limit"),
        (30, {"failed": 30}, None, None),
        (10, {"failed": 5, "cut": 3, "empty": 2, "client_limit": 1}, None, "11 of 21 requests failed, more than half; --share"),
        (10, {"failed": 5, "cancelled": 90, "aborted": 9}, None, None),  # these did not fail
        (1, {"failed": 2}, None, "2 of 3 requests failed, more than half; --share"),
        (1, {"failed": 59}, 1.0, None),
        (59, {"failed": 1}, 0.0, "1 of 60 requests failed, a larger share than --share 0"),
        (8, {"failed": 1}, 0.0, None),  # of few requests a share says little
        (1, {"failed": 8}, 0.0, "8 of 9 requests failed, a larger share than --share 0.5"),
        (0, {"failed": 60}, None, None),  # the last line says more
        (0, {}, None, None),
    ],
)
def test_a_share_of_failures_makes_the_exit_code_1(
    good: int, outcomes: dict[str, int], typed: float | None, sentence: str | None
) -> None:
    summary = replace(sample_summary(), valid=good, outcomes={"completed": good} | outcomes)
    phase = plan_for(Path()).load.phases[0]
    found = too_many(summary, replace(phase, concurrency=None), typed, "--share")
    assert found is sentence is None or (found or "").startswith(sentence or "?")


def test_a_run_that_its_scenario_faults_has_the_exit_code_1(capsys: pytest.CaptureFixture[str]) -> None:
    verdict = ScenarioVerdict("mine", False, ("late",), fault="the run doesn't count for mine: late")
    summary = replace(sample_summary(), scenario=verdict)
    found = ended(summary, plan_for(Path()), Outcome(Signals()), "--share", failed=False)
    assert (found.code, found.fault) == (1, verdict.fault) and f"aiperf: {verdict.fault}" in capsys.readouterr().err
    counted = replace(summary, scenario=replace(verdict, fault=""))
    assert ended(counted, plan_for(Path()), Outcome(Signals()), "--share", failed=False).code == 0
