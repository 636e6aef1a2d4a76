"""What the reference's graders make of answers; run by the Python of its environment.

Standard input has a list of cases, each the grader's name, the expected answer and the response; the last line of standard
output has a list of grades, each correct, unparsed and extracted answer; or the error as a text.  Where a grader can't be made,
that line is the reason as a text.
"""

from __future__ import annotations

import asyncio
import json
import sys
from importlib import import_module
from types import SimpleNamespace
from typing import Any

import absent

PLACES = {
    "exact_match": "exact_match.ExactMatchGrader",
    "multiple_choice": "multiple_choice.MultipleChoiceGrader",
    "mmlu_pro": "mmlu_pro.MMLUProGrader",
    "math": "math.MathGrader",
    "lighteval_gsm8k": "gsm8k_grader.LightevalGSM8KGrader",
    "lighteval_expr": "lighteval_grader.LightevalExprGrader",
    "lighteval_latex": "lighteval_grader.LightevalLatexGrader",
    "lighteval_gpqa": "lighteval_grader.LightevalGPQAGrader",
    "code_execution": "code_execution.CodeExecutionGrader",
}


def grader(name: str) -> Any:
    module, _, kind = PLACES[name].rpartition(".")
    if name == "code_execution":
        # Its worker closes a pipe by the number of its descriptor in every fork, and so pipes of its own sandbox: every program
        # fails (the known report that LiveCodeBench is always 0.0).  Where it believes to be on Windows it has no such pipe.
        import_module("aiperf.accuracy.graders._codegen_worker_client").IS_WINDOWS = True  # type: ignore[attr-defined]
    given = SimpleNamespace(cfg=SimpleNamespace(accuracy=None))
    return getattr(import_module(f"aiperf.accuracy.graders.{module}"), kind)(run=given)


async def main() -> Any:
    made: dict[str, Any] = {}
    grades: list[Any] = []
    for name, expected, response in json.load(sys.stdin):
        try:
            if name not in made:
                made[name] = grader(name)
        except RuntimeError as error:
            return str(error)
        try:
            grade = await made[name].grade(response, expected)
        except Exception as error:  # noqa: BLE001  # another program's code
            grades.append(f"{type(error).__name__}: {error}")
        else:
            grades.append([grade.correct, grade.unparsed, grade.extracted_answer])
    for one in made.values():
        if hasattr(one, "aclose"):
            await one.aclose()
    return grades


absent.install()
found = asyncio.run(main())
print("\n" + json.dumps(found))
