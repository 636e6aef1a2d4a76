"""Answers whose grades are known, labelled by hand."""

from __future__ import annotations

from typing import Literal

from aiperf.sdk.descriptor import PluginRef
from aiperf.sdk.options import EncodedOptions
from aiperf.sdk.verdict import Evidence
from aiperf.testing import GradedAnswer, GraderContract, VerdictContract, sample_evidence
from aiperf_grading.cases import reasoned

from aiperf_grader_code_execution.grader import CodeExecution
from aiperf_grader_code_execution.options import CodeExecutionOptions
from aiperf_grader_code_execution.verdict import UnisolatedCode

_ECHO = '{"public_test_cases": [{"input": "3\\n4", "output": "7"}, {"input": "1\\n2", "output": "3\\n"}]}'
_ADD = (
    '{"public_test_cases": [{"input": "[1, 2]\\n3", "output": "[1, 2, 3]"}],'
    ' "private_test_cases":'
    ' "[{\\"input\\": \\"[]\\\\n1\\", \\"output\\": \\"[1]\\"}]", "metadata": "{\\"func_name\\": \\"add\\"}"}'
)
_SUM = "print(int(input()) + int(input()))"
_METHOD = "class Solution:\n    def add(self, items, item):\n        return [*items, item]"
_FLOAT = '{"public_test_cases": [{"input": "", "output": "0.5 yes\\n2"}]}'
_RIGHT = (
    (_ECHO, f"```python\n{_SUM}\n```"),
    (_ADD, f"```python\n{_METHOD}\n```"),
    (_ECHO, f"```\n{_SUM}\n```"),
    (_ECHO, f"Wrong:\n```\nprint(1)\n```\nRight:\n```python\n{_SUM}\n```\nDone."),
    (_ECHO, "```python\nprint(1.0 * (int(input()) + int(input())))\n```"),
    (_ECHO, "```py\nimport sys\nprint(sum(map(int, sys.stdin)))\n```"),
    (_ECHO, "```python\nimport numbers, collections\nprint(int(input()) + int(input()), end='')\n```"),
    (_ECHO, "```python\nif __name__ == '__main__':\n    print(int(input()) + int(input()), '')\n```"),
    (_ECHO, "```python\nprint(sum(int(input()) for _ in range(2)))\nraise SystemExit\n```"),
    (_ECHO, "```python\nimport sys\nprint('noise', file=sys.stderr)\nprint(int(input()) + int(input()))\n```"),
    (_ECHO, "# The plan\nWe add.\n\n```python title=x\na, b = int(input()), int(input())\nprint(f'{a + b}')\n```"),
    (_ADD, "```python\ndef add(items, item):\n    print('noise')\n    return items + [item]\n```"),
    (_ADD, "```python\nadd = lambda items, item: (*items, item)\n```"),
    (_FLOAT, "```python\nprint('0.5 yes ')\nprint('2.0')\n```"),
    (_FLOAT, "```python\nprint('0.5  yes'.replace('  ', ' '))\nprint(2)\n```"),
)
_WRONG = (
    (_ECHO, "```python\nprint(7)\n```"),
    (_ECHO, "```python\nsyntax error\n```"),
    (_ECHO, "```python\nprint(int(input()) + int(input()))\nraise SystemExit(3)\n```"),
    (_ECHO, "```python\nprint('7')\nprint('7')\n```"),
    (_ECHO, "```python\nprint(int(input()) + int(input()) + int(input()))\n```"),
    (_ECHO, "```javascript\nconsole.log(7)\n```"),
    (_ECHO, f"```python\n{_SUM}\n```\n```\n7\n3\n```"),
    (_ECHO, "```python\nimport no_such_module\n```"),
    (_ECHO, "```python\nprint('seven')\n```"),
    (_ADD, "```python\ndef other():\n    pass\n```"),
    (_ADD, "```python\ndef add(items, item):\n    return 1\n```"),
    (_ADD, "```python\ndef add(items, item):\n    return {1}\n```"),
    (_ADD, "```python\nprint('[1, 2, 3]')\n```"),
    (_FLOAT, "```python\nprint('0.5 Yes')\nprint(2)\n```"),
)
_BAD_GOLD = ("{}", "[]", "no JSON", '{"public_test_cases": [1]}', '{"private_test_cases": "gASVBQ=="}')
_NOTHING = (_SUM, "```python\n\n```", "I'm sorry, but I can't.", "", "` `", "```python", "42", "\\boxed{7}", "[" * 5_000,
            "~~~\nprint(7)\n~~~")
VECTORS = (
    *(GradedAnswer(expected, answer, correct=True) for expected, answer in _RIGHT),
    *(GradedAnswer(expected, answer, correct=False) for expected, answer in _WRONG),
    *(GradedAnswer(_ECHO, answer, correct=False, unparsed=True) for answer in _NOTHING),
    *(GradedAnswer(gold, f"```\n{_SUM}\n```", correct=False, unparsed=True) for gold in _BAD_GOLD),
    GradedAnswer(_ECHO, "", correct=True, case=reasoned(_ECHO, f"```\n{_SUM}\n```")),
)
"""All answers.  Each costs a process for each test case, so the contract, which grades its cases many times, has few."""


class CodeExecutionContract(GraderContract):
    grader = CodeExecution
    options = CodeExecutionOptions(allowed="unisolated")
    cases = (VECTORS[0], VECTORS[1], VECTORS[len(_RIGHT)], VECTORS[len(_RIGHT) + len(_WRONG)])


def _evidence(allowed: Literal["isolated", "unisolated"]) -> Evidence:
    value = f"{CodeExecution.__module__}:CodeExecution"
    grader = PluginRef("graders", "code_execution", value, "aiperf-grader-code-execution", "0.1.0")
    options = {grader.key: EncodedOptions.of(CodeExecutionOptions(allowed=allowed))}
    return sample_evidence(plan=sample_evidence().plan.replacing(grader=grader, options=options))


class UnisolatedCodeContract(VerdictContract):
    verdict = UnisolatedCode
    cases = (
        (sample_evidence(), ()),
        (_evidence("isolated"), ()),
        (_evidence("unisolated"), ("unisolated_code",)),
    )
