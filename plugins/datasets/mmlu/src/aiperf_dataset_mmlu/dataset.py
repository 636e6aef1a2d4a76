"""MMLU: questions with four choices in 57 subjects."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from itertools import cycle

from aiperf_benchmarks.benchmark import Benchmark
from aiperf_benchmarks.problems import LETTERS, ProblemRow
from aiperf_benchmarks.protocol import AskedProblem, Protocol
from aiperf_benchmarks.words import words

SUBJECTS = (
    "abstract_algebra", "anatomy", "astronomy", "business_ethics", "clinical_knowledge", "college_biology",
    "college_chemistry", "college_computer_science", "college_mathematics", "college_medicine", "college_physics",
    "computer_security", "conceptual_physics", "econometrics", "electrical_engineering", "elementary_mathematics",
    "formal_logic", "global_facts", "high_school_biology", "high_school_chemistry", "high_school_computer_science",
    "high_school_european_history", "high_school_geography", "high_school_government_and_politics",
    "high_school_macroeconomics", "high_school_mathematics", "high_school_microeconomics", "high_school_physics",
    "high_school_psychology", "high_school_statistics", "high_school_us_history", "high_school_world_history",
    "human_aging", "human_sexuality", "international_law", "jurisprudence", "logical_fallacies", "machine_learning",
    "management", "marketing", "medical_genetics", "miscellaneous", "moral_disputes", "moral_scenarios", "nutrition",
    "philosophy", "prehistory", "professional_accounting", "professional_law", "professional_medicine",
    "professional_psychology", "public_relations", "security_studies", "sociology", "us_foreign_policy", "virology",
    "world_religions",
)  # fmt: skip
_CHOICES, _SEED = 4, 0
"""Choices of a question; the seed of the draw of examples."""


class Mmlu(Benchmark):
    """The subject is named before the first example; examples are from the split dev, their answers balanced."""

    protocol = Protocol(
        columns=("question", "choices", "answer"), split="test", shot_splits=("dev", "validation"), subsets=True,
        task_column="subject", tasks=SUBJECTS, shots=5, most_shots=32, cot=False, both=True, tokens=5, tokens_cot=4000,
        stop=("\n",),
    )  # fmt: skip

    def content(self, row: ProblemRow) -> str:
        return _question(row)

    def expected(self, row: ProblemRow) -> str:
        return f" {_letter(row)}"

    def asked(self, row: ProblemRow, task: str, shots: Sequence[ProblemRow]) -> AskedProblem:
        said = words(__package__ or "")
        lead = said["instruction"].format(subject=task.replace("_", " ")) + (said["reasoning"] if self.cot else "") + "\n\n"
        primer = f"{said['primer']}\n" if self.cot else ""
        last = f"{_question(row)}\n{primer}Answer:"
        pairs = [(f"{_question(shot)}\nAnswer:", f" {_letter(shot)}") for shot in shots]
        text = "".join((lead, *(f"{question}{answer}\n\n" for question, answer in pairs), last))
        if not pairs:
            return AskedProblem(text, text)
        return AskedProblem(text, last, ((lead + pairs[0][0], pairs[0][1]), *pairs[1:]))

    def example_rows(self, rows: Iterator[tuple[str, ProblemRow]], count: int) -> dict[str, tuple[ProblemRow, ...]]:
        return {task: tuple(balanced(found, count)) for task, found in super().example_rows(rows, count).items()}


def balanced(rows: Sequence[ProblemRow], count: int) -> list[ProblemRow]:
    """*count* of the rows, or all: one after the other from each right answer, as lighteval's few-shot sampler draws them.

    The answers with most rows come first, those with as many in a drawn order; a row is drawn from those of its answer.
    """
    draw, pools = random.Random(_SEED), dict[str, list[ProblemRow]]()
    for row in rows:
        pools.setdefault(row.texts("choices", _CHOICES)[row.choice("answer", _CHOICES)], []).append(row)
    sizes: dict[int, list[str]] = {}
    for answer in sorted(pools):
        sizes.setdefault(len(pools[answer]), []).append(answer)
    order: list[str] = []
    for size in sorted(sizes, reverse=True):
        draw.shuffle(sizes[size])
        order += sizes[size]
    taken: list[ProblemRow] = []
    for answer in cycle(order):
        if len(taken) == min(count, len(rows)):
            break
        if pool := pools[answer]:
            taken.append(pool.pop(draw.randrange(len(pool))))
    return taken


def _question(row: ProblemRow) -> str:
    choices = row.texts("choices", _CHOICES)
    lines = (f"\n{letter}. {choice}" for letter, choice in zip(LETTERS, choices, strict=False))
    return f"Question: {row.text('question')}{''.join(lines)}"


def _letter(row: ProblemRow) -> str:
    return LETTERS[row.choice("answer", _CHOICES)]


__all__ = ["Mmlu"]
