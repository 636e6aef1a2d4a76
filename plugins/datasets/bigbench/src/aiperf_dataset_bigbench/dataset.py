"""BIG-Bench Hard: 27 kinds of tasks that need several steps."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib.resources import files

import msgspec
from aiperf_benchmarks.benchmark import Benchmark
from aiperf_benchmarks.problems import ProblemRow
from aiperf_benchmarks.protocol import AskedProblem, Protocol
from msgspec import Struct

SUBTASKS = (
    "boolean_expressions", "causal_judgement", "date_understanding", "disambiguation_qa", "dyck_languages",
    "formal_fallacies", "geometric_shapes", "hyperbaton", "logical_deduction_three_objects",
    "logical_deduction_five_objects", "logical_deduction_seven_objects", "movie_recommendation", "multistep_arithmetic_two",
    "navigate", "object_counting", "penguins_in_a_table", "reasoning_about_colored_objects", "ruin_names",
    "salient_translation_error_detection", "snarks", "sports_understanding", "temporal_sequences",
    "tracking_shuffled_objects_three_objects", "tracking_shuffled_objects_five_objects",
    "tracking_shuffled_objects_seven_objects", "web_of_lies", "word_sorting",
)  # fmt: skip
_LEAD, _QUESTION, _ANSWER = "Task description: ", "Q: ", "\nA: "


class TaskTexts(Struct, frozen=True):
    """The words of a subtask: its description, then examples, divided by blank lines; with and without reasoning.

    closing: what the answer shall be.
    """

    reasoned: str
    plain: str
    closing: str

    def sections(self, cot: bool) -> list[str]:
        """The description, and the examples."""
        return (self.reasoned if cot else self.plain).split("\n\n")


class Bigbench(Benchmark):
    """Examples are the three of each subtask that were published with the data set."""

    protocol = Protocol(
        columns=("input", "target"), split="test", subsets=True, task_column="task", tasks=SUBTASKS, shots=3, most_shots=3,
        cot=True, both=True, tokens=1024, tokens_cot=1024,
    )  # fmt: skip

    def content(self, row: ProblemRow) -> str:
        return row.text("input")

    def expected(self, row: ProblemRow) -> str:
        return row.text("target")

    def asked(self, row: ProblemRow, task: str, shots: Sequence[ProblemRow]) -> AskedProblem:
        if task not in texts():
            raise row.wrong("task", f"must be a subtask of BIG-Bench Hard; there are {', '.join(SUBTASKS)}")
        said, question = texts()[task], f"{_QUESTION}{self.content(row)}"
        sections = [each for each in said.sections(self.cot)[: self.shots + 1] if each.partition(_ANSWER)[0] != question]
        last = f"{question}{_ANSWER}{said.closing}"
        described = [each for each in sections if not each.startswith(_QUESTION)]
        pairs = [each.split(_ANSWER, 1) for each in sections if each.startswith(_QUESTION)]
        lead = _LEAD + "\n\n".join(described) + "\n\n"
        text = _LEAD + "\n\n".join((*sections, last))
        if not pairs:
            return AskedProblem(text, text)
        first, *others = [(f"{example}{_ANSWER.rstrip()}", answer) for example, answer in pairs]
        return AskedProblem(text, last, ((lead + first[0], first[1]), *others))


@cache
def texts() -> dict[str, TaskTexts]:
    """The words by subtask."""
    data = files(__package__ or "").joinpath("texts.json").read_bytes()
    return msgspec.json.decode(data, type=dict[str, TaskTexts])


__all__ = ["Bigbench"]
