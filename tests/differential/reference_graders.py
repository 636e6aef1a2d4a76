"""What the reference's graders make of answers; run by the Python of its environment.

Standard input has a list of cases, each the grader's name, the expected answer and the response; the last line of standard
output has a list of grades, each correct, unparsed and extracted answer; or the error as a text.
"""

from __future__ import annotations

import asyncio
import json
import sys
from importlib import import_module
from types import SimpleNamespace
from typing import Any

PLACES = {
    "exact_match": "exact_match.ExactMatchGrader",
    "multiple_choice": "multiple_choice.MultipleChoiceGrader",
    "mmlu_pro": "mmlu_pro.MMLUProGrader",
    "math": "math.MathGrader",
    "lighteval_gsm8k": "gsm8k_grader.LightevalGSM8KGrader",
}
"""The graders whose code needs nothing but the reference itself."""


def grader(name: str) -> Any:
    module, _, kind = PLACES[name].rpartition(".")
    return getattr(import_module(f"aiperf.accuracy.graders.{module}"), kind)(run=SimpleNamespace())


async def main() -> None:
    made: dict[str, Any] = {}
    grades: list[Any] = []
    for name, expected, response in json.load(sys.stdin):
        if name not in made:
            made[name] = grader(name)
        try:
            grade = await made[name].grade(response, expected)
        except Exception as error:  # noqa: BLE001  # another program's code
            grades.append(f"{type(error).__name__}: {error}")
        else:
            grades.append([grade.correct, grade.unparsed, grade.extracted_answer])
    print("\n" + json.dumps(grades))


asyncio.run(main())
