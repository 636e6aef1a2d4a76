"""The program in the answer passes every test case."""

from __future__ import annotations

import json
from decimal import Decimal, InvalidOperation
from typing import Any

from aiperf.sdk.errors import ConfigError
from aiperf.sdk.grader import Case, Grade, Grader

from aiperf_grader_code_execution.material import BadMaterialError, Material, TestCase, last_block, material_of
from aiperf_grader_code_execution.options import CodeExecutionOptions
from aiperf_grader_code_execution.runs import CASE_S, Outcome, missing, run

_OPTION = "--accuracy-allow-code-execution"


def limit_s(cases: int) -> float:
    """The time for all test cases of an answer, in s."""
    return min(300.0, CASE_S * cases + 35)


class CodeExecution(Grader[CodeExecutionOptions]):
    """Runs the last fenced block of the answer on the test cases, each in a process of its own; without a block it is unparsed.

    Raises:
        ConfigError: Nobody has allowed it, or the process can't be isolated here.
    """

    def __init__(self, options: CodeExecutionOptions) -> None:
        super().__init__(options)
        if options is None or options.allowed is None:
            raise ConfigError(
                "the grader code_execution runs programs that the server wrote, and nothing allows it",
                f"add {_OPTION} isolated, or choose another --accuracy-grader",
            )
        self._isolated = options.allowed == "isolated"
        if self._isolated and (why := missing()) is not None:
            raise ConfigError(
                f"{_OPTION} isolated: this machine can't isolate a process: {why}",
                f"allow user namespaces and seccomp, or write {_OPTION} unisolated",
            )

    def grade(self, case: Case) -> Grade:
        try:
            material = material_of(case.expected)
        except BadMaterialError as error:
            return Grade(correct=False, unparsed=True, explanation=f"the test cases can't be read: {error}")
        if not material.cases:
            return Grade(correct=False, unparsed=True, explanation="the problem has no test case")
        code = last_block(case.response)
        if code is None or not code.strip():
            why = "no fenced block" if code is None else "nothing in its last block"
            return Grade(correct=False, unparsed=True, explanation=f"the answer has {why}")
        left_s = limit_s(len(material.cases))
        for number, test in enumerate(material.cases, 1):
            given = _given(material, test)
            outcome = run(code, material.function, given, isolated=self._isolated, limit_s=min(left_s, CASE_S))
            left_s -= outcome.took_s
            said = self._fault(material, test, outcome) if left_s > 0 else "all cases together took too long"
            if said is not None:
                return Grade(correct=False, extracted=code, explanation=f"test case {number} of {len(material.cases)}: {said}")
        how = "" if self._isolated else ", unisolated"
        return Grade(correct=True, extracted=code, explanation=f"{len(material.cases)} test cases passed{how}")

    def unfit(self, expected: str) -> str | None:
        try:
            return None if material_of(expected).cases else "it has no test case"
        except BadMaterialError as error:
            return f"its test cases can't be read: {error}"

    def _fault(self, material: Material, test: TestCase, outcome: Outcome) -> str | None:
        if outcome.fault is not None:
            return outcome.fault
        same = same_output if material.function is None else same_value
        return None if same(test.output, outcome.output) else "another output"


def _given(material: Material, test: TestCase) -> str:
    if material.function is None:
        return test.input
    return json.dumps([json.loads(line) for line in test.input.split("\n") if line.strip()])


def same_value(expected: str, output: str) -> bool:
    """Whether two JSON values are equal."""
    try:
        return bool(_value(expected) == _value(output))
    except ValueError:
        return False


def _value(text: str) -> Any:
    return json.loads(text)


def same_output(expected: str, output: str) -> bool:
    """Whether two outputs have the same lines, without spaces around them; numbers as numbers."""
    wanted, found = expected.strip().split("\n"), output.strip().split("\n")
    return len(wanted) == len(found) and all(_same_line(*pair) for pair in zip(wanted, found, strict=True))


def _same_line(wanted: str, found: str) -> bool:
    if wanted.strip() == found.strip():
        return True
    left, right = wanted.split(), found.split()
    try:
        return len(left) == len(right) and all(Decimal(one) == Decimal(other) for one, other in zip(left, right, strict=True))
    except InvalidOperation:
        return False
